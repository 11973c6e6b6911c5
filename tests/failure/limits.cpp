// Limits of the operating system. If a limit is reached when hpe starts, hpe fails and names the limit; if it is
// reached later, hpe continues with fewer resources.

#include <sys/resource.h>

#include <cstring>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/failure/child.h"
#include "tests/no_more_threads.h"

namespace {

using namespace failure_test;

void check_start_fails(std::initializer_list<const char*> words) {
  const hpeStatus status = hpeInit();
  const std::string text = hpeGetLastErrorMessage();
  check(status == HPE_ERROR_INITIALIZATION, std::string(hpeStatusName(status)) + ": " + text);
  for (const char* const word : words) check(text.find(word) != std::string::npos, text);
}

struct refused {
  __rlimit_resource resource;
  rlim_t value;
  const char* name;
};
std::ostream& operator<<(std::ostream& out, const refused& r) { return out << r.name << ' ' << r.value; }

class Limits : public testing::TestWithParam<refused> {};

TEST_P(Limits, TheLimitsOfAddressSpaceAndFilesAreReportedAtTheStart) {
  const ended child = run_child([] {
    const auto& [resource, value, name] = GetParam();
    rlimit limit{};
    ::getrlimit(resource, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = value;
    check(::setrlimit(resource, &limit) == 0);
    check_start_fails({name, "HPE_SEGMENT_SIZE"});
    limit.rlim_cur = before;
    check(::setrlimit(resource, &limit) == 0);
    check(hpeInit() == HPE_SUCCESS, hpeGetLastErrorMessage());
  });
  EXPECT_TRUE(child.well()) << child;
}

INSTANTIATE_TEST_SUITE_P(All, Limits,
                         testing::Values(refused{RLIMIT_FSIZE, rlim_t{1} << 30, "RLIMIT_FSIZE"},
                                         refused{RLIMIT_FSIZE, 0, "RLIMIT_FSIZE"},
                                         refused{RLIMIT_AS, rlim_t{1} << 33, "address space"}));

TEST(Limits, TheLimitOfThreadsIsReportedAtTheStart) {
  const ended child = run_child([] {
    {
      const hpe::testing::no_more_threads here;
      check_start_fails({"thread"});
    }
    check(hpeInit() == HPE_SUCCESS, hpeGetLastErrorMessage());
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(Limits, OfThreadsDoNotKeepCopiesFromBeingMade) {
  const ended child = run_child([] {
    constexpr std::size_t bytes = std::size_t{24} << 20;
    const hpe::array<char> data(bytes);
    std::vector<char> sent(bytes);
    for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<char>(i * 7 + i / 251);
    std::vector<char> received(bytes);
    const hpe::testing::no_more_threads here;
    for (int i = 0; i < 2; ++i) {
      check(hpeMemcpy(data.data(), sent.data(), bytes) == HPE_SUCCESS, hpeGetLastErrorMessage());
      check(hpeMemcpy(received.data(), data.data(), bytes) == HPE_SUCCESS, hpeGetLastErrorMessage());
      check(std::memcmp(sent.data(), received.data(), bytes) == 0);
      sent[5] = 1;
    }
  });
  EXPECT_TRUE(child.well()) << child;
}

// hpe's threads reserve memory for small allocations when they start, so a limit that the program sets later does not
// affect touches.
TEST(Limits, OfMemoryThatAreSetLaterDoNotKeepTouchesWaiting) {
  if (sanitizer_needs_mappings) GTEST_SKIP() << why_not_sanitized;
  const ended child = run_child([] {
    constexpr std::size_t count = std::size_t{4} << 20;
    const hpe::array<std::uint32_t> data(count, hpe::on_device(1));
    hpe::launch_on(1, test_kernel().increment, hpe::grid(4), {data.data(), data.size(), 1, 0}, hpe::inout(data));
    rlimit limit{};
    check(::getrlimit(RLIMIT_DATA, &limit) == 0);
    limit.rlim_cur = 1 << 16;
    check(::setrlimit(RLIMIT_DATA, &limit) == 0);
    for (std::size_t i = 0; i < count; i += 1 << 14) check(data[i] == 1);
  });
  EXPECT_TRUE(child.well()) << child;
}

}  // namespace
