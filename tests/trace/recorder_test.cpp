#include "runtime/trace/recorder.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/base/foreign_text.h"

namespace hpe::trace {
namespace {

using std::chrono::microseconds;

constexpr clock::time_point at(int us) { return clock::time_point(microseconds(us)); }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto p = text.find(part); p != std::string::npos; p = text.find(part, p + 1)) ++found;
  return found;
}

std::string scratch(const char* name) { return ::testing::TempDir() + name; }

TEST(recorder, has_name_time_and_row_of_each_event) {
  recorder r(scratch("unused"));
  r.name_group(3, "device 2: \"quoted\"");
  r.name_row({3, 7}, "stream 7");
  r.add(category::kernel, r.keep(std::string("st") + "ep"), {3, 7}, at(10), at(35), 0);
  r.add(category::copy, "copy to device", {3, 7}, at(40), at(41), 4096);
  const std::string text = r.text();
  EXPECT_EQ(count(text, R"("name":"step","cat":"kernel")"), 1U) << text;
  EXPECT_EQ(count(text, R"("tid":7,"ts":10.000,"dur":25.000,"args":{"bytes":0})"), 1U) << text;
  EXPECT_EQ(count(text, R"("args":{"bytes":4096})"), 1U) << text;
  EXPECT_EQ(count(text, R"("name":"device 2: \"quoted\"")"), 1U) << text;
}

TEST(recorder, texts_of_any_bytes_are_valid_json) {
  const auto json = [](const std::string& text) { return json_text(text); };
  EXPECT_EQ(json("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d"), "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d\"");
  EXPECT_EQ(json("a\"\\\n\x01"), R"("a\"\\\u000a\u0001")");
  // Invalid UTF-8: a Latin-1 character, truncated characters, overlong forms, a surrogate, a code point beyond the last
  // one, and stray bytes.
  for (const char* const bytes : {"\xe9", "\xc3", "\xe2\x82", "\xf0\x9f\x8c", "\xc0\xaf", "\xe0\x80\x80",
                                  "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\x80", "\xff"}) {
    std::string replaced = "\"<";
    for (std::size_t i = 0; i < std::string(bytes).size(); ++i) replaced += "\ufffd";
    EXPECT_EQ(json(std::string("<") + bytes + ">"), replaced + ">\"") << bytes;
  }
}

TEST(recorder, a_trace_replaces_an_earlier_one_when_it_is_complete) {
  const std::string file = scratch("earlier-trace");
  std::ofstream(file) << "an earlier trace";
  recorder r(file);
  r.add(category::call, "step", {}, at(10), at(35), 0);
  EXPECT_TRUE(std::ifstream(file).peek() == 'a');
  r.write();
  std::ifstream written(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), r.text());
}

TEST(recorder, keeps_the_first_and_sums_the_rest_by_name) {
  constexpr std::size_t room = 8;
  recorder r(scratch("unused"), room);
  for (int i = 0; i < 12; ++i) r.add(category::mpi, i < 8 ? "early" : "late", {}, at(i), at(i + 1), 0);
  r.add(category::call, "last", {}, at(20), at(22), 0);
  EXPECT_EQ(count(r.text(), "early"), room);
  EXPECT_EQ(count(r.text(), R"([{"name":"late","cat":"mpi","calls":4,"seconds":0.000004000},)"
                            R"({"name":"last","cat":"call","calls":1,"seconds":0.000002000}])"),
            1U)
      << r.text();
  EXPECT_EQ(count(r.text(), R"("events_without_room":5)"), 1U) << r.text();
}

TEST(recorder, an_end_before_its_begin_is_no_negative_time) {
  recorder r(scratch("unused"));
  r.add(category::fault, "touch", {}, at(10), at(4), 0);
  EXPECT_EQ(count(r.text(), R"("dur":0.000)"), 1U) << r.text();
}

TEST(recorder, threads_and_handlers_record_at_the_same_time) {
  static recorder r(scratch("unused"));
  struct sigaction action {};
  action.sa_handler = [](int) { r.add(category::fault, "handled", this_thread(), clock::now(), clock::now(), 0); };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  constexpr int each = 1000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < each; ++i) {
        r.add(category::call, "called", this_thread(), clock::now(), clock::now(), 0);
        if (i % 10 == 0) ::raise(SIGUSR1);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(count(r.text(), "called"), 4U * each);
  EXPECT_EQ(count(r.text(), "handled"), 4U * each / 10);
}

TEST(recorder, writes_events_that_before_writing_adds) {
  const std::string file = scratch("recorder_test.json");
  recorder r(file);
  r.before_writing([&] { r.add(category::copy, "just over", {}, at(1), at(2), 0); });
  r.write();
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(count(text, "just over"), 1U);
}

TEST(recorder, says_where_it_cannot_write) {
  recorder r("/nowhere/at/all.json");
  try {
    r.write();
    FAIL() << "it wrote";
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_SYSTEM);
    EXPECT_NE(std::string(e.what()).find("/nowhere/at/all.json"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace hpe::trace
