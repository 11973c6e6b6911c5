#include "runtime/check/checker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

#include "runtime/base/error.h"
#include "runtime/check/reports.h"

using namespace hpe::check;

namespace {

constexpr std::uint64_t base = 0x10000;
constexpr std::size_t bytes = 1000;

class Checker : public testing::Test {
 protected:
  static std::shared_ptr<const call_place> place(const char* call) {
    return std::make_shared<const call_place>(call_place::here(call));
  }
  static operation_ptr kernel(const char* name) {
    checked_operation made{name, place("cudaLaunchKernel"), true, {{2, base + 10}}};
    made.source_of = [](std::uint32_t site, use) { return "kernel.cu:" + std::to_string(site); };
    return std::make_shared<const checked_operation>(std::move(made));
  }
  std::shared_ptr<const checked_work> queue(std::uint32_t line, std::vector<past_ptr> after = {}) {
    return checker_.queue(line, 10 + line, after, {}, {.uses_memory = true}, place("cudaLaunchKernel"));
  }
  void allocate() { checker_.allocate(base, bytes, true, true, place("cudaMalloc")); }
  void add(const operation_run& run, std::uint64_t begin, std::uint64_t end, use how, std::uint32_t site = 7) {
    const access_range range{begin, end, how, site};
    checker_.add(run, {&range, 1});
  }
  std::vector<std::string> kinds() {
    std::vector<std::string> result;
    for (const finding& each : checker_.take()) result.push_back(each.kind + " " + std::to_string(each.count));
    return result;
  }

  checker checker_{ignored_findings("# none\nleak nothing\n* a_kernel_to_ignore\n"),
                   [](std::uint64_t, std::uint64_t) { return true; },
                   [](std::uint64_t address) { return address >= 0x100000; },
                   [this] { return std::exchange(touches_, {}); }};
  std::vector<host_touch> touches_;

  void touch(std::uint64_t begin, std::uint64_t end, bool writes, bool is_vague = false) {
    touches_.push_back({begin, end, writes, is_vague, ::gettid(), hpe::trace::call_stack::here()});
  }
};

using words = std::vector<std::string>;

}  // namespace

// A name of the program may contain any bytes.
TEST(Findings, TheirJsonIsValidForAnyBytes) {
  finding f;
  f.kind = "leak";
  f.sentence = "caf\xe9 and caf\xc3\xa9";
  EXPECT_NE(json_of({f}).find("caf\xef\xbf\xbd and caf\xc3\xa9"), std::string::npos) << json_of({f});
}

TEST_F(Checker, KnowsThatFreedMemoryCanBecomeOtherMemory) {
  constexpr std::uint64_t other = 0x100000;  // is_other
  const std::uint32_t line = checker_.add_line(0);
  const auto free =
      std::make_shared<const checked_operation>(checked_operation{"cudaFreeAsync", place("cudaFreeAsync")});
  checker_.allocate(base, bytes, false, true, place("cudaMalloc"));
  checker_.release(base, place("cudaFree"));
  add({kernel("kernel fill"), queue(line)}, base, base + 100, use::write);
  EXPECT_EQ(kinds(), words{"use-after-free 1"});
  checker_.allocate(other, bytes, false, true, place("cudaMalloc"));
  checker_.release(other, place("cudaFree"));
  add({kernel("kernel fill"), queue(line)}, other, other + 100, use::write);
  EXPECT_EQ(kinds(), words{}) << "a variable of a module";
  checker_.allocate(other, bytes, false, true, place("cudaMallocAsync"));
  checker_.release_in_line(other, {free, queue(line)});
  add({kernel("kernel fill"), queue(line)}, other, other + 100, use::write);
  EXPECT_EQ(kinds(), words{"use-after-free 1"}) << "the pool keeps the memory";
}

TEST_F(Checker, TellsBothSidesOfARaceOnce) {
  allocate();
  const std::uint32_t first = checker_.add_line(0), second = checker_.add_line(0);
  const auto fill = kernel("kernel fill"), add_one = kernel("kernel add");
  add({fill, queue(first)}, base, base + 100, use::write, 3);
  for (int i = 0; i < 3; ++i) {
    const operation_run run{add_one, queue(second)};
    add(run, base + 10, base + 20, use::read, 4);
    add({fill, queue(first)}, base, base + 100, use::write, 3);
  }
  // The loop calls the kernel at another place: without lines, the two findings have the same text, and are one.
  const std::vector<finding> found = checker_.take();
  ASSERT_GE(found.size(), 2U);
  std::uint64_t reads = 0;
  std::set<std::string> texts;
  for (finding each : found) {
    if (each.sentence == found[0].sentence) reads += each.count;
    each.count = 1;
    EXPECT_TRUE(texts.insert(text_of(each)).second) << text_of(each);
  }
  EXPECT_EQ(found[0].kind, "stream-race");
  EXPECT_EQ(found[0].sentence, "kernel add reads bytes that kernel fill wrote, and nothing orders them");
  EXPECT_EQ(found[0].offset, 10U);
  EXPECT_EQ(found[0].bytes, 10U);
  EXPECT_EQ(found[0].now->argument, 2);
  EXPECT_EQ(found[0].now->source, "kernel.cu:4");
  EXPECT_EQ(found[0].earlier->source, "kernel.cu:3");
  EXPECT_EQ(found[0].earlier->stream, 10U + first);
  EXPECT_EQ(found[0].allocation->what, "cudaMalloc");
  EXPECT_EQ(reads, 3U);
  EXPECT_EQ(found[1].count, 3U) << "the write after the read";
  const std::string text = text_of(found[1]), json = json_of(found);
  EXPECT_NE(text.find("(3 times)"), std::string::npos) << text;
  EXPECT_NE(json.find(R"("kind":"stream-race","count":3)"), std::string::npos) << json;
}

TEST_F(Checker, AcceptsOrderedWork) {
  allocate();
  const std::uint32_t first = checker_.add_line(0), second = checker_.add_line(0);
  const auto a = queue(first);
  add({kernel("a"), a}, base, base + bytes, use::write);
  add({kernel("b"), queue(second, {a->when})}, base, base + bytes, use::write);
  checker_.wait(checker_.last(second));
  add({kernel("c"), queue(first)}, base, base + bytes, use::write);
  EXPECT_EQ(kinds(), words{});
}

TEST_F(Checker, TellsNodesOfAGraphWithoutAnEdge) {
  allocate();
  const auto order = std::make_shared<step_order>();
  order->before = {{false, false, false}, {true, false, false}, {false, false, false}};
  const auto launch = queue(checker_.add_line(0));
  add({kernel("a"), launch, order, 0}, base, base + 4, use::write);
  add({kernel("b"), launch, order, 1}, base, base + 4, use::write);
  EXPECT_EQ(kinds(), words{});
  add({kernel("c"), launch, order, 2}, base, base + 4, use::read);
  EXPECT_EQ(kinds(), words{"graph-race 1"});
}

TEST_F(Checker, TellsAccessesOutsideOfAllocations) {
  allocate();
  const auto work = queue(checker_.add_line(0));
  add({kernel("a"), work}, base + bytes - 4, base + bytes + 4, use::write);
  add({kernel("other memory"), work}, 0x100000, 0x100004, use::write);
  add({kernel("a_kernel_to_ignore"), work}, base + bytes, base + bytes + 4, use::write);
  const std::vector<finding> found = checker_.take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, "out-of-range");
  EXPECT_EQ(found[0].sentence, "a writes 4 bytes 0 bytes behind the end of an allocation of 1000 bytes");
}

TEST_F(Checker, TellsUsesAfterTheFree) {
  allocate();
  const std::uint32_t first = checker_.add_line(0), second = checker_.add_line(0);
  checker_.release(base, place("cudaFree"));
  add({kernel("a"), queue(first)}, base, base + 4, use::read);
  EXPECT_EQ(kinds(), words{"use-after-free 1"});
  allocate();
  add({kernel("a"), queue(first)}, base, base + 4, use::write);
  EXPECT_EQ(kinds(), words{});

  const auto free =
      std::make_shared<const checked_operation>(checked_operation{"cudaFreeAsync", place("cudaFreeAsync")});
  checker_.release_in_line(base, {free, queue(second)});
  EXPECT_EQ(kinds(), words{"stream-race 1"}) << "the free is not ordered after the write";
  add({kernel("a"), queue(second)}, base, base + 4, use::read);
  EXPECT_EQ(kinds(), words{"use-after-free 1"});
}

TEST_F(Checker, TellsTouchesOfBytesThatQueuedWorkUses) {
  checker_.allocate(base, bytes, false, true, place("cudaMallocHost"));
  const std::uint32_t line = checker_.add_line(0);
  const auto copy = std::make_shared<const checked_operation>(checked_operation{"cudaMemcpyAsync", place("copy")});
  const auto reads = queue(line), writes = queue(line);
  add({copy, reads}, base + 10, base + 20, use::read);
  touch(base, base + 10, true);
  touch(base + 10, base + 20, false);
  touch(base + 15, base + 30, true);
  const std::vector<finding> found = checker_.take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, "source-changed");
  EXPECT_EQ(found[0].sentence, "CPU code writes memory that cudaMemcpyAsync may still read");
  EXPECT_EQ(found[0].offset, 15U);
  EXPECT_EQ(found[0].bytes, 5U);
  add({kernel("kernel fill"), writes}, base + 18, base + 20, use::write);
  EXPECT_EQ(kinds(), words{"host-touch 1"}) << "the kernel ran after the touch, but was queued before it";
  checker_.wait(writes->when);
  touch(base, base + 30, true);
  EXPECT_EQ(kinds(), words{});
  add({kernel("kernel fill"), queue(line)}, base, base + 20, use::write);
  EXPECT_EQ(kinds(), words{}) << "the kernel was queued after the touch";
}

TEST_F(Checker, TellsTouchesOfHostFunctionsAsPartsOfTheirWork) {
  allocate();
  const std::uint32_t first = checker_.add_line(0), second = checker_.add_line(0);
  const auto fill = kernel("kernel fill");
  const auto before = queue(first), function = queue(first), after = queue(first), other = queue(second);
  add({fill, before}, base, base + 10, use::write);
  add({fill, other}, base + 20, base + 30, use::write);
  checker_.begin_host_function({nullptr, function});
  touch(base, base + 10, true);
  checker_.end_host_function();
  add({fill, after}, base, base + 10, use::write);
  EXPECT_EQ(kinds(), words{}) << "the work of one stream has an order";
  checker_.begin_host_function({nullptr, queue(first)});
  touch(base + 25, base + 26, false);
  checker_.end_host_function();
  EXPECT_EQ(kinds(), words{"host-touch 1"});
}

TEST_F(Checker, TakesNodesOfAGraphAndItsHostFunctionsInTheOrderOfTheEdges) {
  allocate();
  const auto work = queue(checker_.add_line(0));
  const auto steps = std::make_shared<const step_order>(
      step_order{{{false, false, false}, {true, false, false}, {false, false, false}}});
  add({kernel("kernel fill"), work, steps, 0}, base, base + 10, use::write);
  checker_.begin_host_function({nullptr, work, steps, 1});
  touch(base, base + 1, false);
  checker_.end_host_function();
  EXPECT_EQ(kinds(), words{});
  checker_.begin_host_function({nullptr, work, steps, 2});
  touch(base, base + 1, false);
  checker_.end_host_function();
  EXPECT_EQ(kinds(), words{"host-touch 1"});
}

TEST_F(Checker, DoesNotTellWhatCpuCodeCanKnow) {
  allocate();
  const std::uint32_t line = checker_.add_line(0);
  const auto flags = queue(line);
  const std::array<access_range, 2> ranges{access_range{base, base + 100, use::write, 1},
                                           access_range{base + 100, base + 104, use::atomic, 2}};
  checker_.add({kernel("kernel fill"), flags}, ranges);
  touch(base + 100, base + 104, false);
  touch(base, base + 100, false);
  EXPECT_EQ(kinds(), words{}) << "CPU code has seen the flag that the kernel sets";
  const auto later = queue(line);
  touch(base + 100, base + 104, false);
  touch(base, base + 100, false);
  EXPECT_EQ(kinds(), words{});
  checker_.add({kernel("kernel fill"), later}, ranges);
  EXPECT_EQ(kinds(), words{}) << "the same, if the accesses of the kernel are known later";
}

TEST_F(Checker, TellsTouchesOfWholeVectorsOnlyIfAllBytesConflict) {
  allocate();
  const auto work = queue(checker_.add_line(0));
  add({kernel("kernel fill"), work}, base, base + 40, use::write);
  touch(base + 32, base + 64, false, true);
  EXPECT_EQ(kinds(), words{}) << "a function of libc may have read only what lies behind";
  touch(base, base + 32, false, true);
  EXPECT_EQ(kinds(), words{"host-touch 1"});
}

TEST_F(Checker, TellsReadsOfBytesThatNothingWrote) {
  allocate();
  const auto work = queue(checker_.add_line(0));
  const auto copy = std::make_shared<const checked_operation>(checked_operation{"cudaMemcpy", place("cudaMemcpy")});
  add({kernel("a"), work}, base, base + 10, use::write);
  add({copy, work}, base, base + 20, use::read);
  EXPECT_EQ(kinds(), words{}) << "a copy of bytes that are written in part";
  add({kernel("a"), work}, base, base + 20, use::read);
  EXPECT_EQ(kinds(), words{"never-written 1"});
  add({copy, work}, base + 500, base + 600, use::read);
  EXPECT_EQ(kinds(), words{"never-written 1"});
}

TEST_F(Checker, TellsAtTheEndWhatIsNotWaitedForAndNotFreed) {
  allocate();
  checker_.allocate(base + 0x1000, 8, true, false, place("a variable"));
  const std::uint32_t line = checker_.add_line(0);
  static_cast<void>(queue(line));
  const std::vector<finding> found = checker_.finish();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, "never-waited");
  EXPECT_EQ(found[1].kind, "leak");
}

TEST_F(Checker, SaysWhatIsWrongInAListOfFindingsToIgnore) {
  const auto message = [](const char* text) -> std::string {
    try {
      const ignored_findings made(text);
    } catch (const hpe::error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message("leak a\n\nrace b").find("line 3 of the findings to ignore: there is no kind \"race\""),
            std::string::npos);
  EXPECT_NE(message("leak # a").find("a text that occurs in the finding is missing behind \"leak\""),
            std::string::npos);
}

// A read of bytes that the same launch has also written.
TEST(FreshMemory, IsReadBeforeAWriteOnlyIfNoOtherLineWrites) {
  for (const bool has_other_write : {false, true}) {
    bool is_unchanged = true;
    checker all(
        ignored_findings(""), [&](std::uint64_t, std::uint64_t) { return is_unchanged; },
        [](std::uint64_t) { return false; });
    all.allocate(base, bytes, true, false, std::make_shared<const call_place>(call_place::here("cudaMalloc")));
    const auto place = std::make_shared<const call_place>(call_place::here("cudaLaunchKernel"));
    checked_operation add_one{"kernel add", place, true, {{1, base}}};
    add_one.writes_elsewhere = [&](std::uint32_t) { return has_other_write; };
    const auto work = all.queue(all.add_line(0), 1, {}, {}, {.uses_memory = true}, place);
    const auto fresh = all.find_fresh(add_one.pointers);
    is_unchanged = false;
    const std::array<access_range, 2> ranges{{{base, base + 100, use::read, 7}, {base, base + 100, use::write, 7}}};
    all.add({std::make_shared<const checked_operation>(std::move(add_one)), work}, ranges, fresh);
    EXPECT_EQ(all.take().size(), has_other_write ? 0U : 1U);
  }
}
