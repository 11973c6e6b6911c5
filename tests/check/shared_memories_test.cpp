// Several processes are checkers of one process here, with different names.

#include "runtime/check/shared_memories.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "runtime/base/error.h"
#include "runtime/check/checker.h"

using namespace hpe::check;

namespace {

constexpr std::size_t bytes = 4096;

std::string new_name() {
  static int made = 0;
  return "hpe-check-test-" + std::to_string(::getpid()) + "-" + std::to_string(++made);
}

/// A process that shares an allocation of `bytes`. Its work is in lines, which stand for streams.
class sharing_process {
 public:
  /// `number`: 0 owns the memory. For each ID, kill() finds a process: this one, or its group.
  sharing_process(int number, const std::string& memory)
      : memory_(memory),
        is_owner_(number == 0),
        base_(0x10000 * (1 + static_cast<std::uint64_t>(number))),
        checker_(
            ignored_findings(""), [](std::uint64_t, std::uint64_t) { return false; },
            [](std::uint64_t) { return false; }, {},
            {number == 0   ? ::getpid()
             : number == 1 ? ::getppid()
                           : 1,
             "rank " + std::to_string(number)}) {
    checker_.allocate(base_, bytes, false, false, place_);
  }
  void share() { checker_.share(base_, memory_, is_owner_); }

  std::uint32_t add_line() { return checker_.add_line(0); }
  std::shared_ptr<const checked_work> queue(std::uint32_t line) {
    return checker_.queue(line, 10 + line, {}, {}, {.uses_memory = true}, place_);
  }
  void run(const std::shared_ptr<const checked_work>& work, const std::string& what, std::size_t begin, std::size_t end,
           use how) {
    run(work, what, {{begin, end, how, 0}});
  }
  /// The ranges are offsets.
  void run(const std::shared_ptr<const checked_work>& work, const std::string& what, std::vector<access_range> ranges) {
    for (access_range& each : ranges) each.begin += base_, each.end += base_;
    checker_.add({std::make_shared<const checked_operation>(checked_operation{what, place_, true}), work}, ranges);
  }
  void run_host_function(const std::shared_ptr<const checked_work>& work, const std::function<void()>& meanwhile) {
    checker_.begin_host_function({nullptr, work});
    meanwhile();
    checker_.end_host_function();
  }
  void wait(const std::shared_ptr<const checked_work>& work) { checker_.wait(work->when); }
  void free() { checker_.release(base_, std::make_shared<const call_place>(call_place::here("cudaFree"))); }
  checker& its_checker() { return checker_; }

  std::vector<finding> take() { return checker_.take(); }
  std::vector<std::string> sentences() {
    std::vector<std::string> result;
    for (const finding& each : checker_.take()) result.push_back(each.kind + ": " + each.sentence);
    return result;
  }

 private:
  const std::string memory_;
  const bool is_owner_;
  const std::uint64_t base_;
  const std::shared_ptr<const call_place> place_ =
      std::make_shared<const call_place>(call_place::here("cudaLaunchKernel"));
  checker checker_;
};

class SharedMemories : public testing::Test {
 protected:
  SharedMemories() {
    owner_.share();
    user_.share();
  }

  const std::string memory_ = new_name();
  sharing_process owner_{0, memory_}, user_{1, memory_};
  const std::uint32_t line_ = owner_.add_line(), user_line_ = user_.add_line();
};

using words = std::vector<std::string>;

}  // namespace

TEST_F(SharedMemories, TellsBothSidesOfARace) {
  const auto fill = owner_.queue(line_);
  owner_.run(fill, "kernel fill", 0, 40, use::write);
  const auto copy = user_.queue(user_line_);
  user_.run(copy, "cudaMemcpyAsync", 32, 64, use::read);
  const std::vector<finding> found = user_.take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].sentence,
            "cudaMemcpyAsync of rank 1 reads bytes that kernel fill of rank 0 wrote, and nothing orders them");
  EXPECT_EQ(found[0].missing, "a wait of rank 0 for stream 10, and then a message to rank 1, between the two calls");
  EXPECT_EQ(found[0].offset, 32U);
  EXPECT_EQ(found[0].bytes, 8U);
  EXPECT_EQ(found[0].allocation_bytes, bytes);
  EXPECT_EQ(found[0].earlier->how, "write");
  EXPECT_EQ(found[0].earlier->stream, 10U);
  EXPECT_FALSE(found[0].earlier->place.empty());
  EXPECT_EQ(owner_.sentences(), words{});
}

TEST_F(SharedMemories, AcceptsWorkForWhichTheOtherProcessHasWaited) {
  const auto fill = owner_.queue(line_);
  owner_.run(fill, "kernel fill", 0, 64, use::write);
  owner_.wait(fill);
  const auto twice = user_.queue(user_line_);
  user_.run(twice, "kernel twice", 0, 64, use::read);
  user_.wait(twice);
  const auto again = owner_.queue(line_);
  user_.run(user_.queue(user_line_), "kernel twice", 0, 32, use::read);
  owner_.run(again, "kernel fill", 32, 64, use::write);
  EXPECT_EQ(user_.sentences(), words{});
  EXPECT_EQ(owner_.sentences(), words{});
}

TEST_F(SharedMemories, TellsARaceWhenTheAccessesOfTheEarlierWorkArriveLast) {
  const auto fill = owner_.queue(line_), twice = user_.queue(user_line_);
  user_.run(twice, "kernel twice", 0, 64, use::read);
  user_.wait(twice);
  owner_.run(fill, "kernel fill", 0, 64, use::write);
  EXPECT_EQ(
      owner_.sentences(),
      words{"rank-race: kernel twice of rank 1 reads bytes that kernel fill of rank 0 wrote, and nothing orders them"});
}

// The wait may have been before the other process has queued its work.
TEST_F(SharedMemories, AcceptsAccessesThatArriveAfterTheWait) {
  const auto fill = owner_.queue(line_);
  owner_.wait(fill);
  user_.run(user_.queue(user_line_), "kernel twice", 0, 64, use::read);
  owner_.run(fill, "kernel fill", 0, 64, use::write);
  EXPECT_EQ(owner_.sentences(), words{});
}

TEST_F(SharedMemories, AHostFunctionCanLearnThatWorkHasEnded) {
  const auto function = user_.queue(user_line_), behind = user_.queue(user_line_);
  const auto fill = owner_.queue(line_);
  owner_.run(fill, "kernel fill", 0, 64, use::write);
  user_.run_host_function(function, [&] { owner_.wait(fill); });
  user_.run(behind, "kernel twice", 0, 64, use::read);
  EXPECT_EQ(user_.sentences(), words{});
}

TEST_F(SharedMemories, AHostFunctionCanTellThatWorkHasEnded) {
  const auto fill = owner_.queue(line_), function = owner_.queue(line_);
  owner_.run(fill, "kernel fill", 0, 64, use::write);
  owner_.run_host_function(function, [&] { user_.run(user_.queue(user_line_), "kernel twice", 0, 64, use::read); });
  EXPECT_EQ(user_.sentences(), words{});
}

TEST_F(SharedMemories, TellsAFreeWhileAnotherProcessUsesTheMemory) {
  const auto fill = user_.queue(user_line_), late = user_.queue(user_line_);
  user_.run(fill, "kernel fill", 0, 64, use::write);
  owner_.free();
  EXPECT_EQ(
      owner_.sentences(),
      words{"rank-race: cudaFree of rank 0 frees bytes that kernel fill of rank 1 wrote, and nothing orders them"});
  user_.run(late, "kernel late", 0, 4, use::read);
  EXPECT_EQ(
      user_.sentences(),
      words{"rank-race: cudaFree of rank 0 frees bytes that kernel late of rank 1 read, and nothing orders them"});
}

TEST_F(SharedMemories, AKernelIsNoFreeByItsName) {
  user_.run(user_.queue(user_line_), "kernel updateFreeSurface", 0, 64, use::write);
  owner_.run(owner_.queue(line_), "kernel fill", 0, 64, use::write);
  EXPECT_EQ(owner_.sentences().size(), 1U);
  EXPECT_TRUE(user_.its_checker().shared().contains(0x20000));
}

// The process that closes the memory has waited for its own work.
TEST_F(SharedMemories, AcceptsThatAnotherProcessClosesTheMemory) {
  user_.run(user_.queue(user_line_), "kernel fill", 0, 32, use::write);
  owner_.run(owner_.queue(line_), "kernel fill", 32, 64, use::write);
  user_.free();
  EXPECT_EQ(user_.sentences(), words{});
  owner_.run(owner_.queue(line_), "kernel fill", 0, 64, use::write);
  EXPECT_EQ(owner_.sentences(), words{});
}

TEST_F(SharedMemories, FindsNothingIfTheOrderIsUnknown) {
  owner_.run(owner_.queue(line_), "kernel fill", 0, 64, use::write);
  user_.run(user_.queue(user_line_), "kernel twice", 0, 64, use::read);
  owner_.its_checker().shared().set_unknown("of a test");
  user_.run(user_.queue(user_line_), "kernel add", 0, 64, use::write);
  EXPECT_EQ(owner_.sentences(), words{});
  for (const finding& each : user_.its_checker().finish()) EXPECT_NE(each.kind, "rank-race");
}

// The first accesses are no longer in the log.
TEST_F(SharedMemories, TheLogIsBounded) {
  owner_.run(owner_.queue(line_), "kernel first", 0, 1, use::write);
  std::vector<access_range> many;
  for (std::size_t n = 1; n <= shared_log::most_of_one; ++n) many.push_back({2 * n, 2 * n + 1, use::read, 0});
  for (std::size_t n = 0; n < shared_log::most_accesses / shared_log::most_of_one; ++n)
    owner_.run(owner_.queue(line_), "kernel fill", many);
  user_.run(user_.queue(user_line_), "kernel twice", 0, 1, use::read);
  EXPECT_EQ(user_.sentences(), words{});
  user_.run(user_.queue(user_line_), "kernel add", 0, 64, use::write);
  EXPECT_EQ(user_.sentences().size(), 1U);
}

TEST_F(SharedMemories, KnowsTheWorkThatWasQueuedBeforeTheMemoryWasShared) {
  const std::string name = new_name();
  sharing_process owner(0, name), user(1, name);
  const std::uint32_t line = owner.add_line();
  const auto waited = owner.queue(line);
  owner.run(waited, "kernel waited", 0, 32, use::write);
  owner.wait(waited);
  owner.run(owner.queue(line), "kernel fill", 32, 64, use::write);
  owner.share();
  user.share();
  user.run(user.queue(user.add_line()), "kernel twice", 0, 64, use::read);
  EXPECT_EQ(
      user.sentences(),
      words{"rank-race: kernel twice of rank 1 reads bytes that kernel fill of rank 0 wrote, and nothing orders them"});
}

// The operating system has ended the work of a killed process, and removes the file with the last process.
TEST(SharedLog, SurvivesAKilledProcess) {
  const std::string name = new_name();
  int ready[2], shared[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(shared), 0);
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte = 0;
    sharing_process owner(0, name);
    owner.share();
    if (::write(ready[1], "x", 1) != 1 || ::read(shared[0], &byte, 1) != 1) ::_exit(1);
    owner.run(owner.queue(owner.add_line()), "kernel fill", 0, 64, use::write);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  {
    sharing_process user(1, name);
    user.share();
    EXPECT_TRUE(user.its_checker().shared().contains(0x20000));
    ASSERT_EQ(::write(shared[1], "x", 1), 1);
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    const std::uint32_t line = user.add_line();
    user.run(user.queue(line), "kernel twice", 0, 64, use::read);
    EXPECT_EQ(user.sentences().size(), 1U);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    user.run(user.queue(line), "kernel twice", 0, 64, use::read);
    EXPECT_EQ(user.sentences(), words{});
  }
  EXPECT_THROW(shared_log(name, false, 0x10000, bytes, process_name::of_this_process()), hpe::error);
  for (const int each : {ready[0], ready[1], shared[0], shared[1]}) ::close(each);
}

namespace {

/// A random program of several processes, with all dependences as an engineer would draw them.
class random_job {
 public:
  explicit random_job(unsigned seed) : random_(seed), processes_(number(2, 3)), host_(processes_) {
    const std::string name = new_name();
    for (unsigned n = 0; n < processes_; ++n) {
      all_.emplace_back(static_cast<int>(n), name);
      lines_.push_back({all_[n].add_line(), all_[n].add_line()});
      all_[n].share();
    }
    for (unsigned n = number(5, 40); n > 0; --n) {
      step();
      for (const std::uint64_t now = time_now(); time_now() == now;) {
      }
    }
    for (std::size_t n = 0; n < works_.size(); ++n) run_until(n);
    for (sharing_process& each : all_)
      for (const finding& f : each.take())
        if (f.kind == "rank-race") found_.insert(pair_of(f));
  }

  using pairs = std::set<std::pair<std::size_t, std::size_t>>;
  [[nodiscard]] const pairs& found() const { return found_; }
  /// The pairs that no dependence orders, and those that the clock does not order either.
  [[nodiscard]] pairs races(bool by_clock) const {
    pairs result;
    for (std::size_t b = 0; b < works_.size(); ++b)
      for (std::size_t a = 0; a < b; ++a) {
        const work &first = works_[a], &second = works_[b];
        if (first.process == second.process || first.begin >= second.end || second.begin >= first.end) continue;
        if (!conflicts_with(first.how, second.how) || second.before.contains(a)) continue;
        if (!by_clock || first.waited > second.queued) result.insert({a, b});
      }
    return result;
  }

 private:
  static constexpr unsigned never = ~0U;
  struct work {
    unsigned process, line;
    std::shared_ptr<const checked_work> what;
    std::size_t begin, end;
    use how;
    std::set<std::size_t> before;  // the work that has certainly ended
    unsigned queued, waited = never;
    bool has_run = false;
  };

  unsigned number(unsigned from, unsigned to) { return std::uniform_int_distribution(from, to)(random_); }

  void step() {
    ++time_;
    const unsigned p = number(0, processes_ - 1);
    switch (number(0, 5)) {
      case 0:
      case 1: return wait(p);
      case 2: {  // a message
        const unsigned to = number(0, processes_ - 1);
        host_[to].insert(host_[p].begin(), host_[p].end());
        return;
      }
      case 3:
        if (!works_.empty()) run_until(number(0, static_cast<unsigned>(works_.size()) - 1));
        return;
      default: queue(p, number(0, 1));
    }
  }

  void queue(unsigned p, unsigned line) {
    const auto begin = number(0, 7), end = number(begin + 1, 8);
    work made{p, line, all_[p].queue(lines_[p][line]), begin, end, static_cast<use>(number(0, 2)), host_[p], time_};
    for (std::size_t n = 0; n < works_.size(); ++n)
      if (works_[n].process == p && works_[n].line == line) {
        made.before.insert(n);
        made.before.insert(works_[n].before.begin(), works_[n].before.end());
      }
    works_.push_back(std::move(made));
  }

  void wait(unsigned p) {
    std::vector<std::size_t> own;
    for (std::size_t n = 0; n < works_.size(); ++n)
      if (works_[n].process == p) own.push_back(n);
    if (own.empty()) return;
    const std::size_t ended = own[number(0, static_cast<unsigned>(own.size()) - 1)];
    run_until(ended);
    all_[p].wait(works_[ended].what);
    host_[p].insert(ended);
    host_[p].insert(works_[ended].before.begin(), works_[ended].before.end());
    for (const std::size_t n : host_[p])
      if (works_[n].process == p) works_[n].waited = std::min(works_[n].waited, time_);
  }

  void run_until(std::size_t last) {
    for (std::size_t n = 0; n <= last; ++n) {
      work& each = works_[n];
      if (each.has_run || each.process != works_[last].process || each.line != works_[last].line) continue;
      each.has_run = true;
      all_[each.process].run(each.what, "work " + std::to_string(n), each.begin, each.end, each.how);
    }
  }

  static std::pair<std::size_t, std::size_t> pair_of(const finding& f) {
    const auto of = [](const finding_side& side) { return std::stoul(side.what.substr(sizeof "work")); };
    return {of(*f.earlier), of(*f.now)};
  }

  std::minstd_rand random_;
  unsigned processes_;
  std::deque<sharing_process> all_;
  std::vector<std::vector<std::uint32_t>> lines_;
  std::vector<std::set<std::size_t>> host_;  // by process: the work of whose end CPU code knows
  std::vector<work> works_;
  pairs found_;
  unsigned time_ = 0;
};

}  // namespace

TEST(SharedMemoriesModel, AgreesOnRandomJobs) {
  constexpr unsigned jobs = 200;
  std::size_t races = 0, found = 0;
  for (unsigned seed = 1; seed <= jobs; ++seed) {
    const random_job job(seed);
    const random_job::pairs all = job.races(false);
    EXPECT_TRUE(std::includes(all.begin(), all.end(), job.found().begin(), job.found().end())) << "job " << seed;
    EXPECT_EQ(job.found(), job.races(true)) << "job " << seed;
    races += all.size();
    found += job.found().size();
  }
  EXPECT_GT(found, races / 2);
  EXPECT_LT(found, races);
}
