// hpe refuses a wrong value in the environment with an error that names the variable; the program may continue and try
// again.

#include <cstdlib>

#include "hpe/hpe.hpp"
#include "tests/failure/child.h"

namespace {

using namespace failure_test;

struct bad_option {
  const char* variable;
  const char* value;
  const char* words;
};

std::ostream& operator<<(std::ostream& out, const bad_option& o) { return out << o.variable << '=' << o.value; }

class Options : public testing::TestWithParam<bad_option> {};

TEST_P(Options, AreRefusedWithTheirName) {
  const auto& [variable, value, words] = GetParam();
  const ended child = run_child(
      [variable = variable, words = words] {
        for (int i = 0; i < 2; ++i) {
          const hpeStatus status = hpeInit();
          const std::string text = hpeGetLastErrorMessage();
          check(status == HPE_ERROR_INITIALIZATION, std::string(hpeStatusName(status)) + ": " + text);
          check(text.find(variable) != std::string::npos && text.find(words) != std::string::npos, text);
        }
        void* p = nullptr;
        check(hpeMalloc(&p, 10) == HPE_ERROR_INITIALIZATION && p == nullptr);
        check(hpeFree(nullptr) == HPE_SUCCESS);
        ::unsetenv(variable);
        check(hpeInit() == HPE_SUCCESS, hpeGetLastErrorMessage());
        const hpe::array<int> a(1000);
        a[5] = 1;
      },
      {{variable, value}});
  EXPECT_TRUE(child.well()) << child;
}

INSTANTIATE_TEST_SUITE_P(
    All, Options,
    testing::Values(
        bad_option{"HPE_DEVICES", "nonsense", "nonsense"}, bad_option{"HPE_DEVICES", "soft:0", "at least one"},
        bad_option{"HPE_DEVICES", "soft:99", "soft:99"}, bad_option{"HPE_DEVICES", "soft:2x", "soft:2x"},
        bad_option{"HPE_BLOCK_SIZE", "3000", "power of two"}, bad_option{"HPE_BLOCK_SIZE", "4M", "power of two"},
        bad_option{"HPE_BLOCK_SIZE", "-4k", "-4k"}, bad_option{"HPE_LOG", "loud", "debug"},
        bad_option{"HPE_LOG", "", "debug"}, bad_option{"HPE_OVERSUBSCRIBE", "1", "on, off and auto"},
        bad_option{"HPE_SPREAD_CUT", "", "auto nor even"}, bad_option{"HPE_CALIBRATION", "never", "on, again and off"},
        bad_option{"HPE_PROFILE", "2", "on, off, 1 and 0"}, bad_option{"HPE_SEGMENT_SIZE", "33M", "multiple"},
        bad_option{"HPE_SEGMENT_SIZE", "1000000T", "HPE_SEGMENT_SIZE"},
        bad_option{"HPE_HOST_MEMORY", "1M", "at least 16777216"},
        bad_option{"HPE_HOST_MEMORY", "1G", "must be set together"},
        bad_option{"HPE_SPILL", "/tmp", "must be set together"}, bad_option{"HPE_STAGING_CHUNK", "5", "multiple"},
        bad_option{"HPE_STAGING_BUFFERS", "0", "1 to"}, bad_option{"HPE_PREFETCH_WINDOW", "far", "far"},
        bad_option{"HPE_BLOCK_SIZE", "2k", "power of two"}, bad_option{"HPE_STAGING_CHUNK", "0", "multiple"},
        bad_option{"HPE_STAGING_CHUNK", "6k", "multiple"}, bad_option{"HPE_STAGING_CHUNK", "1048580k", "up to 1G"},
        bad_option{"HPE_STAGING_BUFFERS", "1025", "to 1024"}, bad_option{"HPE_COPY_THREADS", "65", "from 0 to 64"},
        bad_option{"HPE_SOFTD", "/no/such", "/no/such"}, bad_option{"HPE_SOFT_HOST_LINK", "fast", "fast"}));

// The least and the largest value of each option whose value is limited.
class OptionLimits : public testing::TestWithParam<bad_option> {};

TEST_P(OptionLimits, AreAccepted) {
  const auto& [variable, value, more] = GetParam();
  const ended child = run_child(
      [] {
        check(hpeInit() == HPE_SUCCESS, hpeGetLastErrorMessage());
        const hpe::array<int> a(100000);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int>(i);
        check(a[99999] == 99999);
      },
      {{variable, value}, {"HPE_SEGMENT_SIZE", more}});
  EXPECT_TRUE(child.well()) << child;
}

INSTANTIATE_TEST_SUITE_P(
    All, OptionLimits,
    testing::Values(bad_option{"HPE_BLOCK_SIZE", "4k", "64G"}, bad_option{"HPE_BLOCK_SIZE", "2M", "64G"},
                    bad_option{"HPE_STAGING_CHUNK", "4k", "64G"}, bad_option{"HPE_STAGING_CHUNK", "1G", "64G"},
                    bad_option{"HPE_STAGING_BUFFERS", "1", "64G"}, bad_option{"HPE_STAGING_BUFFERS", "1024", "64G"},
                    bad_option{"HPE_COPY_THREADS", "64", "64G"}));

}  // namespace
