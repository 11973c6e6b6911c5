// Work that functions of the program queue (hpeEnqueue, hpeEnqueueLocked), on the stand-in for the CUDA driver, which
// LD_LIBRARY_PATH names. hpe compares the memory that the calls declare as only read.

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/check/findings.h"
#include "runtime/core/runtime.h"

namespace hpe::core {
namespace {

template <class Entry>
Entry* entry(const char* name) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Entry*>(::dlsym(driver, name));
}

void start(checked_launches which = checked_launches::some) {
  static_cast<void>(runtime::instance([&](options& chosen) {
    chosen.devices = "cuda:1";
    chosen.check = true;
    chosen.check_launches = which;
  }));
}

char* array(std::size_t bytes) {
  void* made = nullptr;
  EXPECT_EQ(hpeMallocOn(&made, bytes, 0), HPE_SUCCESS) << hpeGetLastErrorMessage();
  EXPECT_EQ(hpeMemset(made, 3, bytes), HPE_SUCCESS) << hpeGetLastErrorMessage();
  return static_cast<char*>(made);
}

std::vector<check::finding> found() { return runtime::instance().checks()->take_findings(); }

struct fill {
  char* at;
  unsigned char value;
};

// Queues two fills: the first one of a byte, the second one of the next byte.
int queue_fills(void* stream, void* argument) {
  const fill& what = *static_cast<const fill*>(argument);
  auto* const set = entry<decltype(cuMemsetD8Async)>("cuMemsetD8Async");
  const auto at = reinterpret_cast<CUdeviceptr>(what.at);
  if (const CUresult wrong = set(at, what.value, 1, static_cast<CUstream>(stream))) return wrong;
  return set(at + 1, what.value, 1, static_cast<CUstream>(stream));
}

// Waits for its work, as hpeEnqueueLocked allows.
int queue_fills_and_wait(void* stream, void* argument) {
  const int wrong = queue_fills(stream, argument);
  return wrong != 0 ? wrong
                    : entry<decltype(cuStreamSynchronize)>("cuStreamSynchronize")(static_cast<CUstream>(stream));
}

int queue_nothing(void* /*stream*/, void* /*argument*/) { return 0; }
int fail(void* /*stream*/, void* /*argument*/) { return 1; }

using enqueue_function = decltype(hpeEnqueue)*;

void enqueue(enqueue_function by, hpeEnqueueFunction function, fill what, std::vector<hpeAccess> accesses) {
  EXPECT_EQ(by(0, function, &what, accesses.data(), accesses.size()), HPE_SUCCESS) << hpeGetLastErrorMessage();
}

struct way_of_queueing {
  enqueue_function function;
  const char* name;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const way_of_queueing& way, std::ostream* to) { *to << way.name; }

class EnqueuedWork : public testing::TestWithParam<way_of_queueing> {
 protected:
  const enqueue_function by_ = GetParam().function;
};

TEST_P(EnqueuedWork, ThatChangesReadOnlyMemoryIsFound) {
  start();
  constexpr std::size_t bytes = std::size_t{4} << 20, at = 3 << 20;
  char* const p = array(bytes);
  enqueue(by_, queue_fills, {p + at, 7}, {{p, bytes, HPE_IN}});
  const auto all = found();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].kind, "undeclared-write");
  EXPECT_EQ(all[0].now->what, std::string("work of ") + GetParam().name);
  EXPECT_LE(all[0].offset, at);
  EXPECT_GT(all[0].offset + all[0].bytes, at + 1);
  EXPECT_EQ(p[at + 1], 7);
}

// Fills before and behind the work, by the host, by hpe and by other work, are none of its own.
TEST_P(EnqueuedWork, ThatDeclaresItsWritesIsNotFound) {
  start(checked_launches::all);
  constexpr std::size_t bytes = 1 << 20;
  char* const p = array(bytes);
  char* const q = array(bytes);
  for (int n = 0; n < 8; ++n) {
    p[n] = static_cast<char>(n);
    enqueue(by_, queue_fills, {p + 100, static_cast<unsigned char>(n)}, {{p, bytes, HPE_INOUT}});
    enqueue(by_, queue_fills, {q, static_cast<unsigned char>(n)}, {{p, bytes, HPE_IN}, {q, bytes, HPE_INOUT}});
    enqueue(by_, queue_nothing, {}, {{p, bytes, HPE_IN}});
    EXPECT_EQ(hpeMemset(p + 200, n, 100), HPE_SUCCESS);
    enqueue(by_, queue_fills, {p + 100, static_cast<unsigned char>(n)}, {{p, 100, HPE_IN}, {p + 100, 2, HPE_OUT}});
  }
  EXPECT_TRUE(found().empty());
  EXPECT_EQ(by_(0, queue_nothing, nullptr, nullptr, HPE_ALL), HPE_SUCCESS);
  EXPECT_TRUE(found().empty());
}

TEST_P(EnqueuedWork, IsComparedTheFirstThreeTimesAndThoseWhoseNumberIsAPowerOfTwo) {
  start();
  char* const p = array(4096);
  std::vector<int> seen;
  for (int number = 1; number <= 17; ++number) {
    enqueue(by_, queue_fills, {p, static_cast<unsigned char>(number + 3)}, {{p, 4096, HPE_IN}});
    if (!found().empty()) seen.push_back(number);
  }
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 8, 16}));
  // hpe::launch passes the same function for all kernels with equal parameters: another place counts of its own.
  enqueue(by_, queue_fills, {p, 99}, {{p, 4096, HPE_IN}});
  EXPECT_EQ(found().size(), 1U);
}

TEST_P(EnqueuedWork, ThatFailsIsNotCompared) {
  start();
  char* const p = array(4096);
  const hpeAccess access{p, 4096, HPE_IN};
  EXPECT_EQ(by_(0, fail, nullptr, &access, 1), HPE_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(found().empty());
  enqueue(by_, queue_fills, {p, 7}, {access});
  EXPECT_EQ(found().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(By, EnqueuedWork,
                         testing::Values(way_of_queueing{&hpeEnqueue, "hpeEnqueue"},
                                         way_of_queueing{&hpeEnqueueLocked, "hpeEnqueueLocked"}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(LockedWork, MayWaitForItsWorkAndIsFound) {
  start();
  char* const p = array(4096);
  enqueue(hpeEnqueueLocked, queue_fills_and_wait, {p, 7}, {{p, 4096, HPE_IN}});
  EXPECT_EQ(found().size(), 1U);
}

}  // namespace
}  // namespace hpe::core
