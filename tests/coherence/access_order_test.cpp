#include "runtime/coherence/access_order.h"

#include <gtest/gtest.h>

#include <random>

namespace hpe::coherence {
namespace {

point_set reading(const access_order& order, byte_range range) {
  point_set result;
  order.before_read(range, result);
  return result;
}

point_set writing(const access_order& order, byte_range range) {
  point_set result;
  order.before_write(range, result);
  return result;
}

point_set beside(const access_order& order, byte_range range) {
  point_set result;
  order.before_concurrent(range, result);
  return result;
}

point_set set_of(std::initializer_list<timepoint> points) {
  point_set result;
  for (const timepoint p : points) result.add(p);
  return result;
}

/// The reference: an access order that stores the users of each byte separately.
class order_by_byte {
 public:
  explicit order_by_byte(std::size_t size) : bytes_(size) {}

  void read(byte_range range, timepoint point) {
    for (std::uint64_t i = range.begin; i < range.end; ++i) bytes_[i].readers.add(point);
  }
  void write(byte_range range, timepoint point) {
    for (std::uint64_t i = range.begin; i < range.end; ++i) bytes_[i] = {point, {}, {}};
  }
  void work_beside(byte_range range, timepoint point) {
    for (std::uint64_t i = range.begin; i < range.end; ++i) bytes_[i].concurrent.add(point);
  }
  point_set before(byte_range range, bool write) const {
    point_set result = before_concurrent(range, write);
    for (std::uint64_t i = range.begin; i < range.end; ++i) result.add(bytes_[i].concurrent);
    return result;
  }
  point_set before_concurrent(byte_range range, bool readers = true) const {
    point_set result;
    for (std::uint64_t i = range.begin; i < range.end; ++i) {
      result.add(bytes_[i].writer);
      if (readers) result.add(bytes_[i].readers);
    }
    return result;
  }
  void forget(std::uint32_t timeline) {
    const point_set all = set_of({{timeline, 1}});
    for (use& u : bytes_) {
      if (u.writer.timeline == timeline) u.writer = {};
      u.readers.remove_timelines(all);
      u.concurrent.remove_timelines(all);
    }
  }
  /// Returns the number of stretches: runs of adjacent bytes with the same users.
  std::size_t stretches() const {
    std::size_t count = 1;
    for (std::size_t i = 1; i < bytes_.size(); ++i)
      if (bytes_[i] != bytes_[i - 1]) ++count;
    return count;
  }

 private:
  struct use {
    timepoint writer;
    point_set readers;
    point_set concurrent;
    friend bool operator==(const use&, const use&) = default;
  };
  std::vector<use> bytes_;
};

TEST(access_order, a_new_region_waits_for_nothing) {
  access_order order;
  order.reset(100);
  EXPECT_TRUE(reading(order, {0, 100}).empty());
  EXPECT_TRUE(writing(order, {0, 100}).empty());
  EXPECT_EQ(order.range_count(), 1u);
}

TEST(access_order, readers_wait_for_the_writer_only_and_writers_for_both) {
  access_order order;
  order.reset(100);
  order.record_write({0, 100}, {1, 1});
  order.record_read({0, 50}, {2, 1});
  EXPECT_EQ(reading(order, {0, 100}), set_of({{1, 1}}));
  EXPECT_EQ(writing(order, {0, 100}), set_of({{1, 1}, {2, 1}}));
  EXPECT_EQ(writing(order, {50, 100}), set_of({{1, 1}}));
}

TEST(access_order, a_write_forgets_the_points_that_it_waited_for) {
  access_order order;
  order.reset(100);
  order.record_write({0, 100}, {1, 1});
  order.record_read({0, 100}, {2, 1});
  order.record_write({0, 100}, {3, 1});
  EXPECT_EQ(writing(order, {0, 100}), set_of({{3, 1}}));
}

TEST(access_order, concurrent_work_waits_for_all_but_its_kind_and_all_wait_for_it) {
  access_order order;
  order.reset(100);
  order.record_write({0, 100}, {1, 1});
  order.record_read({0, 50}, {2, 1});
  EXPECT_EQ(beside(order, {0, 100}), set_of({{1, 1}, {2, 1}}));
  order.record_concurrent({0, 100}, {3, 1});
  order.record_concurrent({0, 100}, {4, 1});
  EXPECT_EQ(beside(order, {0, 100}), set_of({{1, 1}, {2, 1}}));
  EXPECT_EQ(reading(order, {50, 100}), set_of({{1, 1}, {3, 1}, {4, 1}}));
  EXPECT_EQ(writing(order, {0, 50}), set_of({{1, 1}, {2, 1}, {3, 1}, {4, 1}}));
  order.record_write({0, 50}, {5, 1});  // after all earlier accesses
  EXPECT_EQ(beside(order, {0, 50}), set_of({{5, 1}}));
  EXPECT_EQ(reading(order, {0, 50}), set_of({{5, 1}}));
  EXPECT_EQ(reading(order, {50, 100}), set_of({{1, 1}, {3, 1}, {4, 1}}));
}

TEST(access_order, everybody_waits_for_all_that_wrote_together) {
  access_order order;
  order.reset(100);
  order.record_read({0, 100}, {7, 1});
  order.record_concurrent({0, 100}, {8, 1});
  const timepoint together[] = {{1, 1}, {2, 1}, {3, 1}};
  order.record_writes({0, 100}, together);
  for (const auto& waits : {reading, writing, beside})
    EXPECT_EQ(waits(order, {0, 100}), set_of({{1, 1}, {2, 1}, {3, 1}}));
  order.record_write({0, 100}, {4, 1});
  for (const auto& waits : {reading, writing, beside}) EXPECT_EQ(waits(order, {0, 100}), set_of({{4, 1}}));
}

TEST(access_order, two_devices_may_write_the_halves_of_one_range) {
  access_order order;
  order.reset(100);
  order.record_write({0, 50}, {1, 1});
  EXPECT_TRUE(writing(order, {50, 100}).empty());
  order.record_write({50, 100}, {2, 1});
  EXPECT_EQ(reading(order, {0, 50}), set_of({{1, 1}}));
  EXPECT_EQ(reading(order, {49, 51}), set_of({{1, 1}, {2, 1}}));
}

TEST(access_order, empty_ranges_and_reached_points_change_nothing) {
  access_order order;
  order.reset(100);
  order.record_write({30, 30}, {1, 1});
  order.record_read({30, 30}, {1, 1});
  order.record_write({0, 100}, {});
  order.record_read({0, 100}, {});
  EXPECT_EQ(order.range_count(), 1u);
  EXPECT_TRUE(writing(order, {0, 100}).empty());
  order.record_write({0, 100}, {1, 1});
  EXPECT_TRUE(writing(order, {30, 30}).empty());
}

TEST(access_order, reset_forgets) {
  access_order order;
  order.reset(100);
  order.record_write({10, 20}, {1, 1});
  order.reset(50);
  EXPECT_TRUE(writing(order, {0, 50}).empty());
  EXPECT_EQ(order.range_count(), 1u);
}

TEST(access_order, equals_an_order_kept_by_byte) {
  constexpr std::uint64_t size = 48;
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    access_order order;
    order.reset(size);
    order_by_byte expected(size);
    for (std::uint64_t step = 1; step <= 60; ++step) {
      std::uint64_t a = random() % (size + 1);
      std::uint64_t b = random() % (size + 1);
      if (a > b) std::swap(a, b);
      const byte_range range{a, b};
      const timepoint point{static_cast<std::uint32_t>(1 + random() % 3), step};
      ASSERT_EQ(reading(order, range), expected.before(range, false));
      ASSERT_EQ(writing(order, range), expected.before(range, true));
      ASSERT_EQ(beside(order, range), expected.before_concurrent(range));
      switch (random() % 4) {
        case 3: {
          const auto gone = static_cast<std::uint32_t>(1 + random() % 3);
          order.forget([&](timepoint p) { return p.timeline == gone; });
          expected.forget(gone);
          break;
        }
        case 0:
          order.record_read(range, point);
          expected.read(range, point);
          break;
        case 1:
          order.record_write(range, point);
          expected.write(range, point);
          break;
        default:
          order.record_concurrent(range, point);
          expected.work_beside(range, point);
          break;
      }
      for (std::uint64_t i = 0; i < size; ++i)
        ASSERT_EQ(writing(order, {i, i + 1}), expected.before({i, i + 1}, true)) << "byte " << i;
      ASSERT_EQ(order.range_count(), expected.stretches());
    }
  }
}

TEST(access_order, forgets_the_timelines_whose_latest_point_is_reached) {
  access_order order;
  order.reset(100);
  order.record_write({0, 50}, {1, 1});
  order.record_write({50, 100}, {1, 7});
  order.record_read({0, 100}, {2, 3});
  std::vector<timepoint> asked;
  const auto reached_up_to = [&](std::uint64_t value) {
    return [&asked, value](timepoint p) {
      asked.push_back(p);
      return p.value <= value;
    };
  };
  order.forget(reached_up_to(5));
  EXPECT_EQ(asked, (std::vector<timepoint>{{1, 7}, {2, 3}}));
  EXPECT_EQ(writing(order, {0, 50}), set_of({{1, 1}}));
  EXPECT_EQ(writing(order, {50, 100}), set_of({{1, 7}}));
  EXPECT_EQ(order.range_count(), 2u);
  order.forget(reached_up_to(7));
  EXPECT_TRUE(writing(order, {0, 100}).empty());
  EXPECT_EQ(order.range_count(), 1u);
}

TEST(access_order, is_crowded_when_many_ranges_were_looked_at_and_not_after_forgetting) {
  constexpr std::uint64_t parts = 1000, times = 100;
  access_order order;
  order.reset(parts);
  for (std::uint64_t i = 0; i < parts; ++i) order.record_write({i, i + 1}, {1, i + 1});
  EXPECT_FALSE(order.crowded());
  std::uint64_t read = 0;
  for (; read < times && !order.crowded(); ++read) order.record_read({0, parts}, {2, read + 1});
  EXPECT_LT(read, times);
  order.forget([](timepoint p) { return p.timeline == 1; });  // the point of the reader `constant` is never reached
  EXPECT_EQ(order.range_count(), 1u);
  EXPECT_EQ(writing(order, {0, parts}), set_of({{2, read}}));
  // An order with few ranges never counts as crowded, however often the ranges are used.
  order.record_write({0, parts / 2}, {1, 1});
  for (std::uint64_t i = 0; i < times * parts; ++i) order.record_read({0, parts}, {2, read + 1 + i});
  EXPECT_EQ(order.range_count(), 2u);
  EXPECT_FALSE(order.crowded());
}

TEST(access_order, is_no_longer_than_the_parts_that_are_used) {
  access_order order;
  order.reset(1 << 20);
  // As in a stencil, each step reads and writes eight parts of an array; a read also covers 512 bytes of each
  // neighbour.
  for (std::uint64_t step = 1; step <= 500; ++step) {
    for (std::uint32_t part = 0; part < 8; ++part) {
      const std::uint64_t begin = part * (1 << 17);
      const std::uint64_t end = begin + (1 << 17);
      order.record_read({part == 0 ? begin : begin - 512, part == 7 ? end : end + 512}, {1 + part, 2 * step});
      order.record_write({begin, end}, {1 + part, 2 * step + 1});
    }
    ASSERT_LE(order.range_count(), 8u * 3);
  }
  order.record_write({0, 1 << 20}, {1, 5000});
  EXPECT_EQ(order.range_count(), 1u);
}

}  // namespace
}  // namespace hpe::coherence
