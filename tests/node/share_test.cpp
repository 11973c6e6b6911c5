// Processes that divide the memory of one device (HPE_SHARE). The device has 16 MiB, and most of the processes need 12
// MiB at once.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/node/process.h"

namespace node_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t part = 2 * MiB;
constexpr std::size_t most = 12 * MiB;  // three quarters of the device

class Share : public testing::Test {
 protected:
  std::unique_ptr<process> start(const std::string& patience = "10") {
    return std::make_unique<process>("soft:1",
                                     std::vector<std::string>{"HPE_SHARE=" + group_, "HPE_SHARE_TIMEOUT=" + patience,
                                                              "HPE_SOFT_MEMORY=16M", "HPE_SOFT_THREADS=1"});
  }
  static order add(std::uint64_t number, std::size_t offset, std::size_t bytes) {
    return {.what = order::kind::add, .number = number, .offset = offset, .bytes = bytes, .seed = 1};
  }
  static bool all_words_are(process& p, std::uint64_t number, std::size_t bytes, std::uint64_t value) {
    const report r = p.tell({.what = order::kind::check_word, .number = number, .bytes = bytes, .seed = value});
    return r.status == HPE_SUCCESS && r.value == 1;
  }
  /// Runs `processes` processes at the same time. Each adds 1 to its data `rounds` times, by launches over `step`
  /// bytes.
  void run_together(unsigned processes, std::uint64_t rounds, std::size_t step) {
    std::vector<std::unique_ptr<process>> all;
    std::vector<std::uint64_t> data;
    for (unsigned i = 0; i < processes; ++i) {
      all.push_back(start());
      data.push_back(all.back()->allocate(most));
    }
    std::vector<std::thread> running;
    std::vector<report> failed(processes);
    for (unsigned i = 0; i < processes; ++i)
      running.emplace_back([&, i] {
        for (std::uint64_t round = 0; round < rounds; ++round)
          for (std::size_t at = 0; at < most && failed[i].status == HPE_SUCCESS; at += step)
            failed[i] = all[i]->tell(add(data[i], at, step));
      });
    for (std::thread& t : running) t.join();
    for (unsigned i = 0; i < processes; ++i) {
      EXPECT_EQ(failed[i].status, HPE_SUCCESS) << failed[i].words;
      EXPECT_TRUE(all_words_are(*all[i], data[i], most, rounds)) << "process " << i;
    }
    // Each process has given back device memory for other processes, except perhaps the process that needed memory
    // last.
    EXPECT_GE(std::ranges::count_if(all, [](const auto& p) { return p->count(order::kind::given_back) > 0; }),
              processes - 1);
  }
  [[nodiscard]] std::string file() const {
    return "/dev/shm/hpe-share-1-" + std::to_string(::geteuid()) + "-" + group_ + "-soft0";
  }
  ~Share() override { std::filesystem::remove(file()); }

 private:
  const std::string group_ = "test." + std::to_string(::getpid());
};

TEST_F(Share, TwoProcessesThatNeedAllOfTheirDataAtOnce) { run_together(2, 15, most); }

TEST_F(Share, ThreeProcessesThatNeedAllOfTheirDataAtOnce) { run_together(3, 10, most); }

TEST_F(Share, ThreeProcessesThatNeedTheirDataInParts) { run_together(3, 6, part); }

TEST_F(Share, AFullFileSystemIsAnErrorOfTheStart) {
  if (std::system("unshare --mount true 2>/dev/null") != 0) GTEST_SKIP() << "only root can create a namespace";
  process p(
      "soft:1", {"HPE_SHARE=full"},
      {"unshare", "--mount", "sh", "-c",
       "mount -t tmpfs -o size=64k none /dev/shm && { head -c 1M /dev/zero > /dev/shm/fill; exec \"$0\"; } 2>&-"});
  const report r = p.tell({.what = order::kind::allocate, .bytes = 1000});
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION) << r.words;
  EXPECT_NE(std::string(r.words).find("HPE_SHARE=\"full\""), std::string::npos) << r.words;
}

TEST_F(Share, DataThatFitsTogetherStaysWhereItIs) {
  const auto a = start();
  const auto b = start();
  const std::uint64_t x = a->allocate(8 * MiB);
  const std::uint64_t y = b->allocate(8 * MiB);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(a->tell(add(x, 0, 8 * MiB)).status, HPE_SUCCESS);
    EXPECT_EQ(b->tell(add(y, 0, 8 * MiB)).status, HPE_SUCCESS);
  }
  EXPECT_EQ(a->count(order::kind::given_back) + b->count(order::kind::given_back), 0U);
}

TEST_F(Share, OnlyTheMissingMemoryIsTakenFromAnIdleProcess) {
  const auto a = start();
  const auto b = start();
  const std::uint64_t x = a->allocate(most);
  EXPECT_EQ(a->tell(add(x, 0, most)).status, HPE_SUCCESS);
  const std::uint64_t y = b->allocate(8 * MiB);
  EXPECT_EQ(b->tell(add(y, 0, 8 * MiB)).status, HPE_SUCCESS);
  EXPECT_EQ(a->count(order::kind::given_back), 4 * MiB);
  EXPECT_TRUE(all_words_are(*a, x, most, 1));
  EXPECT_TRUE(all_words_are(*b, y, 8 * MiB, 1));
}

TEST_F(Share, AKilledProcessGivesItsMemoryBack) {
  const auto b = start();
  const std::uint64_t y = b->allocate(most);
  for (const auto delay : {0ms, 3ms, 30ms}) {
    const auto a = start();
    const std::uint64_t x = a->allocate(most);
    a->start(add(x, 0, most));
    std::this_thread::sleep_for(delay);
    a->kill();
    const report r = b->tell(add(y, 0, most));
    EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
  }
  EXPECT_TRUE(all_words_are(*b, y, most, 3));
}

TEST_F(Share, AProcessThatIsKilledWhileAnotherOneAsksIt) {
  const auto a = start();
  const auto b = start();
  const std::uint64_t x = a->allocate(most);
  const std::uint64_t y = b->allocate(most);
  // The kernel takes a minute, and its data cannot be moved while it runs.
  order slow = add(x, 0, most);
  slow.from = 60'000'000;
  EXPECT_EQ(a->tell(slow).status, HPE_SUCCESS);
  b->start(add(y, 0, most));
  std::this_thread::sleep_for(100ms);
  a->kill();
  const report r = b->finish();
  EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
}

TEST_F(Share, AStoppedProcessKeepsItsMemoryAndStopsNoOther) {
  const auto a = start();
  const auto b = start("1");
  const std::uint64_t x = a->allocate(most);
  EXPECT_EQ(a->tell(add(x, 0, most)).status, HPE_SUCCESS);
  const std::uint64_t y = b->allocate(most);
  ::kill(a->pid(), SIGSTOP);
  for (std::size_t at = 0; at < most; at += part) {
    const report r = b->tell(add(y, at, part));
    EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
  }
  const report refused = b->tell(add(y, 0, most));
  EXPECT_EQ(refused.status, HPE_ERROR_OUT_OF_MEMORY);
  const std::string words = refused.words;
  EXPECT_NE(words.find("process " + std::to_string(a->pid()) + " has 12582912 bytes and is stopped"), std::string::npos)
      << words;
  EXPECT_TRUE(all_words_are(*b, y, most, 1));

  const auto patient = start("60");
  const std::uint64_t z = patient->allocate(most);
  patient->start(add(z, 0, most));
  std::this_thread::sleep_for(200ms);
  ::kill(a->pid(), SIGCONT);
  const report r = patient->finish();
  EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
  EXPECT_TRUE(all_words_are(*patient, z, most, 1));
  EXPECT_TRUE(all_words_are(*a, x, most, 1));
}

TEST_F(Share, AProcessThatIsStoppedInItsTurnGoesOnLater) {
  const auto a = start();
  const auto b = start();
  const std::uint64_t x = a->allocate(most);
  const std::uint64_t y = b->allocate(4 * MiB);
  constexpr std::uint64_t rounds = 8;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    a->start(add(x, 0, most));
    std::this_thread::sleep_for(round * 1ms);
    ::kill(a->pid(), SIGSTOP);
    const report r = b->tell(add(y, 0, 4 * MiB));
    EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
    ::kill(a->pid(), SIGCONT);
    const report later = a->finish();
    EXPECT_EQ(later.status, HPE_SUCCESS) << later.words;
  }
  EXPECT_TRUE(all_words_are(*a, x, most, rounds));
  EXPECT_TRUE(all_words_are(*b, y, 4 * MiB, rounds));
}

TEST_F(Share, WorkThatNeedsMoreThanTheDeviceIsRefusedWithTheSizes) {
  const auto a = start();
  const auto b = start();
  EXPECT_EQ(a->tell(add(a->allocate(most), 0, most)).status, HPE_SUCCESS);
  const std::uint64_t y = b->allocate(32 * MiB);
  const report r = b->tell(add(y, 0, 32 * MiB));
  EXPECT_EQ(r.status, HPE_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(std::string(r.words).find("33554432 bytes on device 0"), std::string::npos) << r.words;
  for (std::size_t at = 0; at < 32 * MiB; at += 4 * MiB) EXPECT_EQ(b->tell(add(y, at, 4 * MiB)).status, HPE_SUCCESS);
  EXPECT_TRUE(all_words_are(*b, y, 32 * MiB, 1));
}

TEST_F(Share, TheLastProcessRemovesTheFile) {
  {
    const auto a = start();
    static_cast<void>(a->allocate(MiB));
    {
      const auto b = start();
      static_cast<void>(b->allocate(MiB));
    }
    EXPECT_TRUE(std::filesystem::exists(file()));
  }
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Share, ANameThatIsNoneIsRefused) {
  process a("soft:1", {"HPE_SHARE=a/b"});
  const report r = a.tell({.what = order::kind::allocate, .bytes = MiB});
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_NE(std::string(r.words).find("HPE_SHARE=\"a/b\" is not a name"), std::string::npos) << r.words;
}

}  // namespace
}  // namespace node_test
