// Launches use more data than device memory holds, again and again. Tests which arrays hpe evicts if the launches
// repeat in a cycle, and if they do not.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"

namespace {

using hpe::in;
using hpe::inout;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t device_memory = 16 * mebi;  // larger_test.cpp sets the limit
constexpr std::size_t bytes_of_array = 2 * mebi;
constexpr std::size_t room = device_memory / bytes_of_array;

using numbers = hpe::array<std::uint32_t>;
constexpr std::size_t count_of_array = bytes_of_array / sizeof(std::uint32_t);

class arrays {
 public:
  explicit arrays(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) all_.emplace_back(count_of_array);
    expected_.resize(count);
  }

  /// Launches a kernel that adds 1 to each element of an array, after a pause.
  void write(std::size_t n, std::uint32_t pause_us = 0) {
    hpe::launch(test_kernel().increment, hpe::grid(pause_us == 0 ? test_tiles : 1),
                {all_[n].data(), count_of_array, 1, pause_us}, inout(all_[n]));
    ++expected_[n];
  }
  /// Launches a kernel that sets array `to` to the sum of two arrays.
  void add(std::size_t to, std::size_t a, std::size_t b) {
    hpe::launch(test_kernel().add, hpe::grid(test_tiles),
                {all_[to].data(), all_[a].data(), all_[b].data(), count_of_array}, hpe::out(all_[to]), in(all_[a]),
                in(all_[b]));
    expected_[to] = expected_[a] + expected_[b];
  }
  void touch(std::size_t n) {
    ASSERT_EQ(all_[n][n * 1000], expected_[n]);
    std::ranges::fill(all_[n], ++expected_[n]);
  }
  /// Frees an array, and allocates another one in its place.
  void renew(std::size_t n) {
    all_[n] = numbers();
    all_[n] = numbers(count_of_array);
    expected_[n] = 0;
  }
  void check() const {
    for (std::size_t n = 0; n < all_.size(); ++n)
      for (std::size_t i = 0; i < count_of_array; i += 999) ASSERT_EQ(all_[n][i], expected_[n]) << n << ", " << i;
  }

 private:
  std::deque<numbers> all_;
  std::vector<std::uint32_t> expected_;
};

/// Counts arrays that hpe has brought into device memory or written to the host since the object was made.
class moves {
 public:
  [[nodiscard]] double in() const { return arrays_of(&hpeStatistics::bytes_brought_in); }
  [[nodiscard]] double out() const { return arrays_of(&hpeStatistics::bytes_written_back); }

 private:
  [[nodiscard]] double arrays_of(std::uint64_t hpeStatistics::*counter) const {
    return static_cast<double>(hpe::statistics().*counter - before_.*counter) / static_cast<double>(bytes_of_array);
  }
  const hpeStatistics before_ = hpe::statistics();
};

// If the least recently used array were evicted, each launch would have to bring its array in.
TEST(eviction_order, OnlyArraysThatDoNotFitMove) {
  for (const std::size_t count : {room + 1, room + 4, 3 * room}) {
    arrays all(count);
    constexpr int periods = 6;
    const auto run = [&] {
      for (int n = 0; n < periods; ++n)
        for (std::size_t a = 0; a < count; ++a) all.write(a);
    };
    // The device may have had another cycle before.
    for (int n = 0; n < 3; ++n) run();
    const moves moved;
    run();
    hpe::synchronize();
    // Besides the arrays that stay in device memory, two arrays alternate in the memory of the latest launches. If
    // threads are slow, the fetching thread and a launch may each evict an array that the other one has brought in.
    EXPECT_LE(moved.in() / periods, static_cast<double>(count - room + 4)) << count;
    EXPECT_GE(moved.in() / periods, static_cast<double>(count - room)) << count;
    EXPECT_LE(moved.out() / periods, moved.in() / periods + 3) << count;
    RecordProperty("in_per_period_of_" + std::to_string(count), std::to_string(moved.in() / periods));
    RecordProperty("out_per_period_of_" + std::to_string(count), std::to_string(moved.out() / periods));
    all.check();
  }
}

// Each launch writes its sums to array 0 and only reads the other arrays.
TEST(eviction_order, DataThatIsOnlyReadMovesInOneDirection) {
  constexpr std::size_t count = 2 * room;
  arrays all(count);
  for (std::size_t a = 1; a < count; ++a) all.write(a);
  all.check();  // gives the host a copy of each array, so that later only array 0 differs from its copy
  constexpr int periods = 6;
  const auto run = [&] {
    for (int n = 0; n < periods; ++n)
      for (std::size_t a = 1; a + 1 < count; ++a) all.add(0, a, a + 1);
  };
  for (int n = 0; n < 3; ++n) run();
  // Without learning, each period of each run brings in all arrays but array 0. With learning, slow threads may evict
  // arrays that other threads have brought in, so the best run counts.
  constexpr auto most = static_cast<double>(count - 3);
  double least = count;
  for (int n = 0; n < 5 && least > most; ++n) {
    const moves moved;
    run();
    hpe::synchronize();
    least = std::min(least, moved.in() / periods);
    EXPECT_LE(moved.out(), 2);
  }
  EXPECT_LE(least, most);
  all.check();
}

// The program queues all launches of a period, and then waits for the kernels, which take longer. Meanwhile, hpe brings
// in arrays that the next period uses first.
TEST(eviction_order, DataComesWhileTheProgramWaits) {
  constexpr std::size_t count = room + 4;
  arrays all(count);
  const auto run = [&] {
    for (std::size_t a = 0; a < count; ++a) all.write(a, 1000);
  };
  for (int n = 0; n < 8; ++n) run();
  double came = 0;
  constexpr int periods = 8;
  for (int n = 0; n < periods; ++n) {
    run();
    const moves meanwhile;
    hpe::synchronize();
    came += meanwhile.in();
  }
  EXPECT_GE(came, 1);
  RecordProperty("arrays_per_period", std::to_string(came / periods));
  all.check();
}

/// Returns the number of times that an array is brought in, if hpe evicts the least recently used array.
std::size_t moves_of_least_recently_used(const std::vector<std::size_t>& sequence) {
  std::list<std::size_t> there;  // the latest first
  std::size_t moves = 0;
  for (const std::size_t n : sequence) {
    const auto found = std::ranges::find(there, n);
    moves += found == there.end() ? 1 : 0;
    if (found != there.end()) there.erase(found);
    there.push_front(n);
    if (there.size() > room) there.pop_back();
  }
  return moves;
}

TEST(eviction_order, ASequenceWithoutCycleEvictsTheLeastRecentlyUsed) {
  constexpr std::size_t count = room + 6;
  arrays all(count);
  std::mt19937 random(3);
  for (std::size_t a = 0; a < 3 * count; ++a) all.write(a % count);  // a cycle that ends
  std::vector<std::size_t> sequence;
  for (std::size_t n = 0; n < room; ++n) sequence.push_back(n);
  for (const std::size_t n : sequence) all.write(n);
  const std::size_t before = moves_of_least_recently_used(sequence);
  const moves moved;
  for (int n = 0; n < 600; ++n) {
    sequence.push_back(random() % count);
    all.write(sequence.back());
  }
  hpe::synchronize();
  const auto least = static_cast<double>(moves_of_least_recently_used(sequence) - before);
  EXPECT_LE(moved.in(), least + 8);
  all.check();
}

TEST(eviction_order, ContentsAreRightWhateverComes) {
  constexpr std::size_t count = room + 5;
  std::mt19937 random(7);
  arrays all(count);
  for (int part = 0; part < 30; ++part) {
    struct step {
      unsigned what;
      std::size_t a, b, c;
    };
    std::vector<step> steps(1 + random() % 15);
    for (step& s : steps)
      s = {static_cast<unsigned>(random() % 9), random() % count, random() % count, random() % count};
    for (std::size_t times = 1 + random() % 8; times > 0; --times)
      for (const step& s : steps) {
        if (s.what == 0)
          all.touch(s.a);
        else if (s.what == 8)
          all.renew(s.a);
        else if (s.what < 4 && s.a != s.b && s.a != s.c)
          all.add(s.a, s.b, s.c);
        else
          all.write(s.a);
      }
  }
  all.check();
}

}  // namespace
