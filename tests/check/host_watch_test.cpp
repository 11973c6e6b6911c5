#include "runtime/check/host_watch.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "runtime/check/reports.h"
#include "tests/check/four_pages.h"

using namespace hpe::check;

namespace {

hpeTouchWatcher handlers{};

hpeStatus show_touches(const hpeTouchWatcher* watcher, bool* can_step) {
  handlers = *watcher;
  *can_step = true;
  return HPE_SUCCESS;
}

/// The test itself calls the functions that hpe calls at faults.
class HostWatch : public with_four_pages {
 protected:
  HostWatch() {
    EXPECT_EQ(host_watch::start(show_touches), HPE_SUCCESS);
    static auto* const all = new std::vector<host_watch*>;  // a process usually has one, which is never deleted
    all->push_back(host_watch::of_process());
    checker_.allocate(at(0), 4 * page, false, false, place("cudaMallocHost"));
  }

  static host_watch& watch() { return *host_watch::of_process(); }
  static std::shared_ptr<const call_place> place(const char* call) {
    return std::make_shared<const call_place>(call_place::here(call));
  }
  /// Queues a copy that writes, or reads, bytes of the memory.
  past_ptr copy(std::uint32_t line, std::uintptr_t begin, std::uintptr_t end, bool writes) {
    const auto made = place("cudaMemcpyAsync");
    const auto work = checker_.queue(line, line, {}, {}, {.uses_memory = true}, made);
    const access_range range{at(begin), at(end), writes ? use::write : use::read, 0};
    const operation_run run{std::make_shared<const checked_operation>(checked_operation{made->call, made}), work};
    checker_.add(run, {&range, 1});
    watch().watch({at(begin), at(end), writes}, work->when);
    return work->when;
  }
  void wait(const past_ptr& work) {
    checker_.wait(work);
    watch().end_waited(checker_);
  }
  hpeTouchAnswer fault(std::uintptr_t offset, bool writes) const {
    const hpeTouch touch{memory_ + offset, at(offset), 4, writes, nullptr};
    return handlers.faulted(&touch);
  }
  std::vector<std::string> kinds() {
    std::vector<std::string> result;
    for (const finding& each : checker_.take()) result.push_back(each.kind);
    return result;
  }

  checker checker_{ignored_findings(""), [](std::uint64_t, std::uint64_t) { return true; },
                   [](std::uint64_t) { return true; }, [] { return watch().take_touches(); }};
};

using words = std::vector<std::string>;

}  // namespace

TEST_F(HostWatch, ClosesPagesFromTheCallUntilTheWait) {
  const past_ptr reads = copy(checker_.add_line(0), 0, 100, false);
  const past_ptr writes = copy(checker_.add_line(0), page, 3 * page, true);
  EXPECT_EQ(protections(), "r--w");
  EXPECT_TRUE(watch().is_in_use(at(0), at(1)));
  wait(reads);
  EXPECT_EQ(protections(), "w--w");
  EXPECT_FALSE(watch().is_in_use(at(0), at(1)));
  wait(writes);
  EXPECT_EQ(protections(), "wwww");
}

TEST_F(HostWatch, FindsTheTouchesThatConflict) {
  const std::uint32_t line = checker_.add_line(0);
  const past_ptr work = copy(line, page, page + 100, true);
  EXPECT_EQ(fault(page + 200, false), HPE_TOUCH_STEP);
  EXPECT_EQ(protections(), "wwww");
  handlers.stepped();
  EXPECT_EQ(protections(), "w-ww");
  EXPECT_EQ(kinds(), words{}) << "beside the bytes";
  EXPECT_EQ(fault(page + 96, false), HPE_TOUCH_STEP);
  handlers.stepped();
  EXPECT_EQ(kinds(), words{"host-touch"});
  wait(work);
  const past_ptr next = copy(line, 0, 100, false);
  EXPECT_EQ(fault(0, true), HPE_TOUCH_STEP);
  handlers.stepped();
  EXPECT_EQ(kinds(), words{"source-changed"});
  wait(next);
  EXPECT_EQ(fault(0, true), HPE_TOUCH_REPEAT) << "the fault came before the page was opened";
  EXPECT_EQ(fault(3 * page, true), HPE_TOUCH_NOT_WATCHED);
  EXPECT_EQ(kinds(), words{});
}

TEST_F(HostWatch, WatchesARangeForTheLatestWorkOfALine) {
  const std::uint32_t line = checker_.add_line(0);
  const past_ptr first = copy(line, 0, page, true);
  const past_ptr second = copy(line, 0, page, true);
  wait(first);
  EXPECT_EQ(protections(), "-www");
  wait(second);
  EXPECT_EQ(protections(), "wwww");
}

TEST_F(HostWatch, OpensPagesForACallAndKnowsItsBytes) {
  const past_ptr work = copy(checker_.add_line(0), 0, 2 * page, true);
  EXPECT_FALSE(handlers.opens(memory_ + 3 * page, 1));
  EXPECT_TRUE(handlers.opens(memory_ + page, 10));
  EXPECT_EQ(protections(), "-www");
  handlers.called(memory_ + 3 * page, 10, true);
  EXPECT_EQ(kinds(), words{});
  handlers.called(memory_ + page, 10, true);
  EXPECT_EQ(kinds(), words{"host-touch"});
  EXPECT_TRUE(handlers.refused()) << "the other page";
  EXPECT_EQ(protections(), "wwww");
  wait(work);
}

TEST_F(HostWatch, ForgetsFreedMemory) {
  const past_ptr work = copy(checker_.add_line(0), 0, 2 * page, true);
  watch().forget(at(0), at(page));
  EXPECT_EQ(protections(), "wwww") << "the copy used both pages";
  EXPECT_EQ(fault(0, false), HPE_TOUCH_NOT_WATCHED);
  wait(work);
}

TEST_F(HostWatch, OpensBuffersOfMessagesInFunctionsOfMpi) {
  const past_ptr device = copy(checker_.add_line(0), 2 * page, 3 * page, true);
  const past_ptr conflicting = copy(checker_.add_line(0), 0, 100, true);
  host_watch::enter_messages();
  const auto message = checker_.queue(checker_.add_line(-1), 0, {}, {}, {}, place("MPI_Irecv"));
  watch().begin_message({at(0), at(page), true});
  EXPECT_EQ(protections(), "ww-w") << "the checker compares the copy with the message";
  watch().watch_message({at(0), at(page), true}, message->when);
  EXPECT_EQ(protections(), "ww-w");
  host_watch::leave_messages();
  EXPECT_EQ(protections(), "-w-w");
  std::thread([&] {
    host_watch::enter_messages();
    EXPECT_EQ(protections(), "ww-w");
    host_watch::leave_messages();
  }).join();
  EXPECT_EQ(protections(), "-w-w");
  wait(message->when);
  EXPECT_EQ(protections(), "ww-w");
  wait(device);
  wait(conflicting);
}

TEST_F(HostWatch, LetsOtherProcessesReadWhatMpiSends) {
  const past_ptr device = copy(checker_.add_line(0), 0, 100, true);
  host_watch::enter_messages();
  const auto message = checker_.queue(checker_.add_line(-1), 0, {}, {}, {}, place("MPI_Isend"));
  watch().begin_message({at(200), at(2 * page), false});
  watch().watch_message({at(200), at(2 * page), false}, message->when);
  host_watch::leave_messages();
  EXPECT_EQ(protections(), "rrww") << "the copy writes other bytes of the first page";
  wait(message->when);
  EXPECT_EQ(protections(), "-www");
  wait(device);
}

TEST_F(HostWatch, SeveralThreadsTouchPagesWhileUsesBeginAndEnd) {
  constexpr int rounds = 200;
  std::atomic<int> left{2};
  const auto use = [&](std::uintptr_t begin) {
    const std::uint32_t line = checker_.add_line(0);
    for (int n = 0; n < rounds; ++n) wait(copy(line, begin, begin + 2 * page, n % 2 == 0));
    --left;
  };
  const auto touch = [&] {
    while (left != 0)
      for (std::uintptr_t n = 0; n < 3; ++n)
        if (fault(n * page, true) == HPE_TOUCH_STEP) handlers.stepped();
  };
  std::vector<std::thread> all;
  all.emplace_back(use, 0);
  all.emplace_back(use, page);
  all.emplace_back(touch);
  all.emplace_back(touch);
  for (std::thread& each : all) each.join();
  EXPECT_EQ(protections(), "wwww");
  const past_ptr last = copy(checker_.add_line(0), 0, 3 * page, true);
  EXPECT_EQ(protections(), "---w");
  wait(last);
}

TEST_F(HostWatch, EndsWithTheProgram) {
  static_cast<void>(copy(checker_.add_line(0), 0, 4 * page, true));
  watch().end_all();
  EXPECT_EQ(protections(), "wwww");
}

TEST_F(HostWatch, ProtectsNothingIfHpeShowsNoTouches) {
  EXPECT_EQ(host_watch::start([](const hpeTouchWatcher*, bool*) { return HPE_ERROR_SYSTEM; }), HPE_ERROR_SYSTEM);
  copy(checker_.add_line(0), 0, 4 * page, true);
  EXPECT_EQ(protections(), "wwww");
  EXPECT_FALSE(watch().is_in_use(at(0), at(1)));
}
