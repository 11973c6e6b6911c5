#include "runtime/transfer/copy_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/schedules/explore.h"

namespace {

using hpe::transfer::posted_copy;
using job = hpe::transfer::basic_copy_job<schedules::model>;
using schedules::explorer;

constexpr unsigned parts = 2;

/// Records copies of rows, where each row has one slice. The first copy has two rows, the second copy has four. The
/// copies differ by their destination.
struct copies {
  copies() : made{std::vector<int>(2), std::vector<int>(4)} {}

  [[nodiscard]] static posted_copy rows(std::size_t number) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the address only identifies the copy
    auto* const name = reinterpret_cast<std::byte*>(number + 1);
    return {name, name, {{posted_copy::slice_bytes, 2 * (number + 1), 1}, {number + 1, 0}, {number + 1, 0}}, {}};
  }
  void copy(const posted_copy& what, std::size_t slice) {
    const auto number = reinterpret_cast<std::uintptr_t>(what.to) - 1;
    torn = torn || what.shape.extent.rows != 2 * (number + 1) || what.from != what.to ||
           what.shape.to.row != number + 1 || what.shape.from.row != number + 1;
    if (number < made.size() && slice < made[number].size()) ++made[number][slice];
  }

  std::vector<std::vector<int>> made;
  bool torn = false;
};

// A helper is so late that its job already contains the next copy.
TEST(copy_job, every_slice_of_every_copy_is_made_once_in_every_order) {
  std::unique_ptr<job> shared;
  std::unique_ptr<copies> all;
  std::size_t unfinished = 0;
  const std::size_t orders = explorer::explore(
      2,
      [&]() -> explorer::threads {
        shared = std::make_unique<job>();
        all = std::make_unique<copies>();
        unfinished = 0;
        const auto copy = [&](const posted_copy& what, std::size_t slice) { all->copy(what, slice); };
        const auto owner = [&, copy] {
          for (std::size_t n = 0; n < all->made.size(); ++n) {
            EXPECT_TRUE(shared->take());
            shared->post(copies::rows(n), parts);
            for (unsigned p = parts; p-- > 0;)
              while (shared->take_slice(p, parts, copy)) {
              }
            shared->finish(all->made[n].size());
            const std::vector<int>& made = all->made[n];
            if (!std::all_of(made.begin(), made.end(), [](int times) { return times == 1; })) ++unfinished;
          }
        };
        const auto helper = [&, copy] {
          for (int round = 0; round < 2; ++round) shared->take_slice(0, parts, copy);
        };
        return {owner, helper};
      },
      [&] {
        ASSERT_EQ(unfinished, 0u) << "a copy was reported as finished, but a slice was missing or was copied twice";
        ASSERT_FALSE(all->torn) << "a slice of one copy was copied with the bounds of the other copy";
        for (const auto& made : all->made) ASSERT_EQ(made, std::vector<int>(made.size(), 1));
      });
  EXPECT_GT(orders, 100u);
}

}  // namespace
