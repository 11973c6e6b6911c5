// `hpe sort` as users call it.

#include <gtest/gtest.h>

#include "apps/sort/sort_main.h"

namespace {

struct outcome {
  int status;
  std::string out, err;
};

outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "sort");
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int status = sort_main(static_cast<int>(arguments.size()), arguments.data());
  std::fflush(stdout);
  std::fflush(stderr);
  return {status, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(sort_command, sorts_every_type_and_says_so) {
  for (const char* type : {"i32", "u32", "i64", "u64", "f32", "f64", "u32_u32", "u64_u64", "f32_u32"}) {
    const outcome o = run({"--type", type, "--length", "20001", "--repeats", "1"});
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_TRUE(contains(o.out, "20001 elements in ")) << o.out;
    EXPECT_TRUE(contains(o.out, "the result is right")) << o.out;
  }
}

TEST(sort_command, explains) {
  const outcome o = run({"--length=30011", "--repeats=1", "--explain"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(contains(o.out, " parts, merged in ")) << o.out;
}

TEST(sort_command, refuses_what_cannot_be_meant) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--lenght", "3"},
                                                                                     {"--length"},
                                                                                     {"--length", "many"},
                                                                                     {"--type", "i16"},
                                                                                     {"--repeats", "0"},
                                                                                     {"--devices", "99"}}) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << words.front();
    EXPECT_TRUE(contains(o.err, "hpe sort: ")) << o.err;
  }
  EXPECT_TRUE(contains(run({"--help"}).out, "usage: hpe sort"));
}

}  // namespace
