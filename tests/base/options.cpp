#include "runtime/base/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "hpe/error.hpp"

namespace {

using hpe::parse_size;

std::string complaint(const std::function<void()>& action, hpeStatus status) {
  try {
    action();
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), status);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// Sets an environment variable as long as the object exists.
class environment {
 public:
  environment(const char* variable, const char* value) : variable_(variable) { ::setenv(variable, value, 1); }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() { ::unsetenv(variable_); }

 private:
  const char* variable_;
};

TEST(ParseSize, ReadsNumbersAndSuffixes) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("123"), 123u);
  EXPECT_EQ(parse_size("4k"), 4096u);
  EXPECT_EQ(parse_size("2M"), 2097152u);
  EXPECT_EQ(parse_size("3g"), std::uint64_t{3} << 30);
  EXPECT_EQ(parse_size("1T"), std::uint64_t{1} << 40);
  EXPECT_EQ(parse_size("0x200000000000"), std::uint64_t{0x200000000000});
  EXPECT_EQ(parse_size("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_size("16777215T"), std::uint64_t{16777215} << 40);
}

TEST(ParseSize, RefusesTextsThatAreNoSizes) {
  for (const char* text : {"", "k", "-1", "+1", " 1", "1 ", "1kk", "1kB", "1P", "1.5M", "0x", "x",
                           "18446744073709551616", "16777216T", "99999999999999999999999"}) {
    const std::string sentence = complaint([&] { (void)parse_size(text); }, HPE_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(sentence.find('"' + std::string(text) + '"'), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("k, M, G or T"), std::string::npos) << sentence;
  }
}

TEST(Options, DefaultsHoldWhereTheEnvironmentSaysNothing) {
  const environment empty("HPE_STAGING_BUFFERS", "");
  const hpe::options o = hpe::options::from_environment();
  EXPECT_EQ(o.staging_buffers, hpe::options().staging_buffers) << "an empty variable leaves the default";
  EXPECT_EQ(o.segment_size, std::uint64_t{1} << 40);
}

TEST(Options, ComeFromTheEnvironment) {
  const environment devices("HPE_DEVICES", "soft:2x4");
  const environment size("HPE_SEGMENT_SIZE", "64G");
  const hpe::options o = hpe::options::from_environment();
  EXPECT_EQ(o.devices, "soft:2x4");
  EXPECT_EQ(o.segment_size, std::uint64_t{64} << 30);
}

TEST(Options, AWrongValueNamesItsVariable) {
  const environment size("HPE_SOFT_MEMORY", "lots");
  const std::string sentence = complaint([] { (void)hpe::options::from_environment(); }, HPE_ERROR_INITIALIZATION);
  EXPECT_NE(sentence.find("HPE_SOFT_MEMORY"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("\"lots\""), std::string::npos) << sentence;
}

TEST(Options, EachWordOfAChoiceIsRead) {
#define HPE_OPTION_CHOICE(field, type, variable, initial, words, sentence)        \
  for (const std::string_view word : hpe::describe_option(variable).values) {     \
    const environment set(variable, std::string(word).c_str());                   \
    EXPECT_EQ(word_of(hpe::options::from_environment().field), word) << variable; \
  }
#include "runtime/base/options.def"
  const environment debug("HPE_LOG", "debug");
  const environment capability("HPE_CUDA_CAPABILITY", "7.5");
  const environment cut("HPE_SPREAD_CUT", "even");
  const hpe::options o = hpe::options::from_environment();
  EXPECT_EQ(o.log, hpe::log_level::debug);
  EXPECT_EQ(o.capability, hpe::compute_capability::sm_75);
  EXPECT_EQ(o.spread_cut, hpe::cut_method::even);
  EXPECT_EQ(o.cuda, hpe::cuda_place::automatic);
}

TEST(Options, ASwitchIsOnOrOffOrANumber) {
#define HPE_OPTION_SWITCH(field, variable, initial, sentence)                                           \
  for (const auto& [text, is_on] :                                                                      \
       {std::pair("on", true), std::pair("off", false), std::pair("1", true), std::pair("0", false)}) { \
    const environment set(variable, text);                                                              \
    EXPECT_EQ(hpe::options::from_environment().field, is_on) << variable << text;                       \
  }
#include "runtime/base/options.def"
  EXPECT_FALSE(hpe::options::from_environment().spread);
}

TEST(Options, AWrongWordIsReportedWithThePossibleOnes) {
  int lists = 0;
  for (const hpe::option_description& line : hpe::describe_options()) {
    if (line.values.empty()) continue;
    ++lists;
    EXPECT_NE(std::find(line.values.begin(), line.values.end(), line.initial), line.values.end()) << line.variable;
    for (const char* const wrong : {"", "2", "On", "on ", "nonsense"}) {
      const environment set(line.variable.c_str(), wrong);
      const std::string told = complaint([] { (void)hpe::options::from_environment(); }, HPE_ERROR_INITIALIZATION);
      EXPECT_TRUE(told.starts_with(line.variable + "=\"" + wrong + "\" is n")) << told;
      for (const std::string_view word : line.values) EXPECT_NE(told.find(word), std::string::npos) << told;
    }
  }
  EXPECT_GE(lists, 20);
  const auto told_of = [](const char* variable) {
    const environment set(variable, "x");
    return complaint([] { (void)hpe::options::from_environment(); }, HPE_ERROR_INITIALIZATION);
  };
  EXPECT_EQ(told_of("HPE_SCOPE"), "HPE_SCOPE=\"x\" is none of auto, all and args");
  EXPECT_EQ(told_of("HPE_OVERSUBSCRIBE"), "HPE_OVERSUBSCRIBE=\"x\" is none of on, off and auto");
  EXPECT_EQ(told_of("HPE_STRICT"), "HPE_STRICT=\"x\" is none of on, off, 1 and 0");
}

TEST(Options, AnInvalidValueCountsAsTheDefaultIfAnotherPartReportsIt) {
  const environment wrong("HPE_LOG", "loud");
  const environment size("HPE_SOFT_MEMORY", "lots");
  const environment right("HPE_MPI", "off");
  const hpe::options o = hpe::options::valid_in_environment();
  EXPECT_EQ(o.log, hpe::log_level::warn);
  EXPECT_EQ(o.soft_memory, hpe::options().soft_memory);
  EXPECT_EQ(o.mpi, hpe::mpi_use::off);
}

TEST(Options, AMisspeltVariableIsReportedWithTheNearestOption) {
  const environment misspelt("HPE_DEVICE", "soft:4");
  const environment right("HPE_DEVICES", "soft:2");
  const environment of_the_program("HPE_TEST_SEED", "7");
  EXPECT_EQ(hpe::misspelt_options(),
            std::vector<std::string>{"HPE_DEVICE is not an option; did you mean HPE_DEVICES?"});
}

// At most two letters are inserted, removed or replaced, and only in names of hpe's options.
TEST(Options, WordsFarFromEveryOptionAreNotReported) {
  const auto sentences = [](const char* name) {
    const environment one(name, "1");
    return hpe::misspelt_options();
  };
  EXPECT_TRUE(sentences("XPE_DEVICES").empty());
  EXPECT_TRUE(sentences("HPE_DEVICES").empty());
  EXPECT_TRUE(sentences("HPE_DEVICESABC").empty()) << "three letters more";
  EXPECT_TRUE(sentences("HPE_DEV").empty());
  for (const char* const name : {"HPE_DEVICESAB", "HPE_DEVIC", "HPE_DEVICXY", "HPE_XDEVICS", "HPE_DVEICES"})
    EXPECT_EQ(sentences(name),
              std::vector<std::string>{std::string(name) + " is not an option; did you mean HPE_DEVICES?"});
}

TEST(Options, AreFoundByTheirVariable) {
  for (const hpe::option_description& each : hpe::describe_options())
    EXPECT_EQ(&hpe::describe_option(each.variable), &each) << each.variable;
}

TEST(Options, AreDescribedOneByOne) {
  std::set<std::string> variables;
  for (const hpe::option_description& line : hpe::describe_options()) {
    EXPECT_TRUE(line.variable.starts_with("HPE_")) << line.variable;
    EXPECT_TRUE(variables.insert(line.variable).second) << line.variable << " is there twice";
    EXPECT_TRUE(line.sentence.ends_with('.')) << line.variable;
    EXPECT_FALSE(line.group.empty()) << line.variable;
  }
  const auto& table = hpe::describe_options();
  const auto segment =
      std::find_if(table.begin(), table.end(), [](const auto& l) { return l.variable == "HPE_SEGMENT_SIZE"; });
  ASSERT_NE(segment, table.end());
  EXPECT_EQ(segment->initial, "1T");
}

}  // namespace
