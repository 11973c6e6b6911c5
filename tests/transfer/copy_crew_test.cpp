#include "runtime/transfer/copy_crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "tests/no_more_threads.h"

namespace {

using hpe::transfer::copy_crew;

std::vector<std::uint64_t> numbers(std::size_t count, std::uint64_t first) {
  std::vector<std::uint64_t> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

TEST(copy_crew, copies_every_byte_and_no_other) {
  for (const unsigned helpers : {0U, 1U, 3U}) {
    copy_crew crew(helpers);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{5}, std::size_t{524288}, std::size_t{2999998}, std::size_t{3000001}}) {
      const auto from = numbers(400000, bytes);
      auto to = numbers(400000, 7);
      const auto before = to;
      const auto how = bytes % 2 == 0 ? copy_crew::writing::cached : copy_crew::writing::past_caches;
      crew.copy(reinterpret_cast<std::byte*>(to.data()) + 3, reinterpret_cast<const std::byte*>(from.data()) + 1, bytes,
                how);
      const auto* got = reinterpret_cast<const unsigned char*>(to.data());
      const auto* expected = reinterpret_cast<const unsigned char*>(from.data());
      const auto* old = reinterpret_cast<const unsigned char*>(before.data());
      for (std::size_t i = 0; i < to.size() * 8; ++i)
        ASSERT_EQ(got[i], i >= 3 && i < bytes + 3 ? expected[i - 2] : old[i]) << i << " of " << bytes;
    }
  }
}

TEST(copy_crew, many_threads_copy_at_once_again_and_again) {
  copy_crew crew(2);
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < copy_crew::most_jobs + 2; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t round = 0; round < 25; ++round) {
        const auto from = numbers(200000, t * 1000 + round);
        std::vector<std::uint64_t> to(from.size());
        crew.copy(to.data(), from.data(), from.size() * 8);
        ASSERT_EQ(to, from);
      }
    });
}

TEST(copy_crew, the_next_copy_begins_before_the_last_one_is_finished) {
  for (const unsigned helpers : {0U, 1U, 3U}) {
    copy_crew crew(helpers);
    const auto from = numbers(8 * 100000, 3);
    std::vector<std::uint64_t> to(from.size());
    {
      std::optional<copy_crew::pending> last;
      for (std::size_t at = 0; at < from.size(); at += 100000) {
        auto next = crew.begin(&to[at], &from[at], 100000 * 8, copy_crew::writing::past_caches);
        if (last) last->finish();
        last.reset();
        last.emplace(std::move(next));
      }
      // At the end of the scope, the destructor finishes the last copy.
    }
    EXPECT_EQ(to, from) << helpers << " helpers";
  }
}

TEST(copy_crew, more_copies_than_are_helped_are_done_at_once) {
  copy_crew crew(2);
  const auto from = numbers(100000, 5);
  std::vector<std::vector<std::uint64_t>> to(copy_crew::most_jobs + 2, std::vector<std::uint64_t>(from.size()));
  std::vector<copy_crew::pending> begun;
  begun.reserve(to.size());
  for (auto& t : to) begun.push_back(crew.begin(t.data(), from.data(), from.size() * 8, copy_crew::writing::cached));
  for (std::size_t i = copy_crew::most_jobs; i < to.size(); ++i) EXPECT_EQ(to[i], from) << "nobody helps with " << i;
  for (auto& b : begun) b.finish();
  for (const auto& t : to) EXPECT_EQ(t, from);
}

TEST(copy_crew, helpers_settle_once_and_only_where_they_are_needed) {
  constexpr unsigned helpers = 3;
  std::atomic<unsigned> settled{0};
  const auto from = numbers(200000, 1);
  std::vector<std::uint64_t> to(from.size());
  {
    copy_crew crew(helpers, [&] { settled.fetch_add(1); });
    crew.copy(to.data(), from.data(), copy_crew::worth_helping - 1);
    EXPECT_EQ(settled, 0u) << "no thread has been started yet";
    for (int n = 0; n < 20; ++n) crew.copy(to.data(), from.data(), from.size() * 8);
  }
  EXPECT_EQ(settled, helpers);
  EXPECT_EQ(to, from);
}

TEST(copy_crew, without_threads_the_caller_copies_alone) {
  const hpe::testing::no_more_threads here;
  std::atomic<unsigned> settled{0};
  copy_crew crew(3, [&] { settled.fetch_add(1); });
  const auto from = numbers(200000, 1);
  for (int n = 0; n < 2; ++n) {
    std::vector<std::uint64_t> to(from.size());
    crew.copy(to.data(), from.data(), from.size() * 8);
    EXPECT_EQ(to, from);
  }
  EXPECT_EQ(settled, 0u);
}

}  // namespace
