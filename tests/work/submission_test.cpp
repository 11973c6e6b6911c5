// Tests submissions that fail at each possible step. The commands that were queued before the failure must be ordered
// and must count as done. All other bytes must be unchanged, and must be the same for the host and for devices.

#include "runtime/work/submission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/core/runtime.h"

namespace hpe::work {
namespace {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;

constexpr std::size_t block = std::size_t{64} << 10;
constexpr int old_byte = 3;
constexpr int new_byte = 9;

class submissions : public ::testing::Test {
 protected:
  static constexpr std::size_t bytes = 3 * granule_size;  // one granule on each device

  submissions() { start(""); }

  void start(const char* host_link) {
    runtime_.reset();
    options chosen;
    chosen.devices = "soft:3";
    chosen.block_size = block;
    chosen.rolling_window = 0;  // the host's writes are not uploaded early
    chosen.soft_host_link = host_link;
    runtime_ = std::make_unique<core::runtime>(chosen);
    data_ = runtime_->memory().allocate_striped(bytes, nullptr);
    runtime_->copies().fill(data_, old_byte, bytes);
  }

  [[nodiscard]] resources with() const { return runtime_->resources(); }
  [[nodiscard]] coherence::region& region() const {
    return runtime_->regions().at(runtime_->granules().find(data_).region);
  }
  [[nodiscard]] block_state state_of(std::size_t offset) const {
    const hpe::lock_guard lock(region().mutex);
    return region().state(region().block_of(offset));
  }

  void host_reads_all() {
    ASSERT_TRUE(std::all_of(data_, data_ + bytes, [](std::byte b) { return b == std::byte{old_byte}; }));
    ASSERT_EQ(state_of(0), block_state::shared);
  }
  void host_writes_all() {
    std::fill(data_, data_ + bytes, std::byte{old_byte});
    ASSERT_EQ(state_of(0), block_state::host);
  }

  /// Fills the range home by home. Queuing command number `failing` (counted from 0) fails.
  void fill_but_fail_at(byte_range range, unsigned failing) {
    submission work(with(), {{&region(), range, HPE_OUT}});
    unsigned next = 0;
    work.submit_by_home([&](unsigned home, byte_range part, const point_set& after) {
      if (next++ == failing) HPE_THROW(HPE_ERROR_DEVICE_LOST, "the test refuses a command");
      return with().engine.fill(home, data_ + part.begin, new_byte, part.size(), after.points());
    });
  }

  /// Returns the byte at an offset as devices see it, by a copy between homes.
  [[nodiscard]] int on_devices(std::size_t offset) {
    std::byte* const copy = runtime_->memory().allocate(1, 2);
    runtime_->copies().copy(copy, data_ + offset, 1);
    const int value = std::to_integer<int>(*copy);
    runtime_->memory().free(copy);
    return value;
  }

  void expect_everywhere(std::size_t offset, int value, bool host_first) {
    SCOPED_TRACE(offset);
    if (host_first) {
      EXPECT_EQ(std::to_integer<int>(data_[offset]), value);
    }
    EXPECT_EQ(on_devices(offset), value);
    EXPECT_EQ(std::to_integer<int>(data_[offset]), value);
  }

  std::unique_ptr<core::runtime> runtime_;
  std::byte* data_ = nullptr;
};

// Work overwrites rows of random shapes in random ranges. The bytes between the rows keep what CPU code or a device has
// written last.
TEST_F(submissions, of_rows_keep_the_bytes_between_the_rows) {
  constexpr std::size_t size = bytes - 12345;  // the last block is not whole
  data_ = runtime_->memory().allocate_striped(size, nullptr);
  runtime_->copies().fill(data_, old_byte, size);
  std::mt19937 random(11);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  std::vector<std::byte> expected(size, std::byte{old_byte});
  std::uint64_t uploaded = 0, ranges = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    if (round % 3 != 2) {  // CPU code writes some bytes, or all
      const std::size_t begin = round % 3 == 0 ? 0 : below(size),
                        end = round % 3 == 0 ? size : begin + below(size - begin);
      const auto value = static_cast<std::byte>(below(256));
      std::fill(data_ + begin, data_ + end, value);
      std::fill(expected.begin() + static_cast<std::ptrdiff_t>(begin),
                expected.begin() + static_cast<std::ptrdiff_t>(end), value);
    }
    box shape{{1 + below(block), 1 + below(40), 1 + below(3)}, {}};
    shape.strides.row = shape.extent.width + below(2) * below(block);
    shape.strides.plane = box{{shape.extent.width, shape.extent.rows}, shape.strides}.span() + below(2 * block);
    if (shape.span() > size) continue;
    const std::size_t first = below(size - shape.span() + 1);
    const placed_box rows{static_cast<std::ptrdiff_t>(first), shape};
    // Every second range reaches to the end of the allocation.
    const std::size_t before = below(first + 1), rest = size - first - shape.span();
    const std::size_t behind = round % 2 == 0 ? rest : below(rest + 1);
    const byte_range range{before, first + shape.span() + behind};
    device_access access{&region(), range, HPE_OUT};
    access.rows = &rows;
    const std::uint64_t sent = runtime_->count().bytes_to_device.load();
    {
      submission work(with(), {access});
      work.submit([&](const point_set& after) {
        timepoint last;
        shape.for_each_row([&](std::size_t at) {
          byte_range row{first + at, first + at + shape.extent.width};
          region().mutex.assert_held();
          region().for_each_home(row, [&](unsigned home, byte_range part) {
            last = with().engine.fill(home, data_ + part.begin, new_byte, part.size(), after.points());
            wait_for(std::span(&last, 1), with().devices);
          });
        });
        return last;
      });
    }
    uploaded += runtime_->count().bytes_to_device.load() - sent;
    ranges += range.size();
    shape.for_each_row([&](std::size_t at) {
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(first + at), shape.extent.width, std::byte{new_byte});
    });
    if (round % 2 == 0) {
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), data_));
    }
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), data_));
  EXPECT_LT(uploaded, ranges * 3 / 4);
}

TEST_F(submissions, that_fail_part_way_leave_the_same_bytes_to_host_and_devices) {
  for (const bool host_writes : {false, true})
    for (const bool host_first : {false, true})
      for (unsigned failing = 0; failing < 3; ++failing) {
        SCOPED_TRACE(testing::Message() << "host writes " << host_writes << ", host first " << host_first
                                        << ", command " << failing);
        runtime_->copies().fill(data_, old_byte, bytes);
        host_writes ? host_writes_all() : host_reads_all();
        EXPECT_THROW(fill_but_fail_at({0, bytes}, failing), error);
        for (unsigned home = 0; home < 3; ++home)
          expect_everywhere(home * granule_size + 5, home < failing ? new_byte : old_byte, host_first);
      }
}

TEST_F(submissions, that_fail_part_way_keep_the_host_bytes_beside_those_of_a_partial_block) {
  host_writes_all();
  const byte_range range{granule_size - 100, granule_size + 100};  // parts of two blocks that have different homes
  EXPECT_THROW(fill_but_fail_at(range, 1), error);
  expect_everywhere(granule_size - 101, old_byte, false);
  expect_everywhere(granule_size - 100, new_byte, false);
  expect_everywhere(granule_size + 99, old_byte, false);
}

TEST_F(submissions, that_queue_nothing_change_no_state) {
  host_reads_all();
  { const submission only_looks(with(), {{&region(), region().whole(), HPE_OUT}}); }
  EXPECT_EQ(state_of(0), block_state::shared);
  host_writes_all();
  { const submission overwrites(with(), {{&region(), region().whole(), HPE_OUT}}); }
  EXPECT_EQ(state_of(0), block_state::host) << "nothing was uploaded, so the host has the only copy";
  { const submission reads_and_writes(with(), {{&region(), region().whole(), HPE_INOUT}}); }
  EXPECT_EQ(state_of(0), block_state::shared) << "the upload was queued";
  expect_everywhere(7, old_byte, true);
}

TEST_F(submissions, are_waited_for_by_the_next_user_of_what_was_queued) {
  host_reads_all();
  EXPECT_THROW(fill_but_fail_at({0, bytes}, 2), error);
  const hpe::lock_guard lock(region().mutex);
  point_set readers;
  region().order.before_read({0, granule_size}, readers);
  EXPECT_FALSE(readers.empty());
  point_set of_the_rest;
  region().order.before_read({2 * granule_size, bytes}, of_the_rest);
  for (const timepoint p : of_the_rest.points())
    EXPECT_TRUE(with().devices.reached(p)) << "only the work before the failed submission";
}

TEST_F(submissions, that_several_devices_do_together_count_if_one_part_was_queued) {
  host_reads_all();
  submission work(with(), {{&region(), region().whole(), HPE_OUT}});
  EXPECT_THROW(work.submit_together([&](const point_set& after, std::vector<timepoint>& points) {
    points.push_back(with().engine.fill(0, data_, new_byte, granule_size, after.points()));
    HPE_THROW(HPE_ERROR_DEVICE_LOST, "the test refuses the second part");
  }),
               error);
  region().mutex.assert_held();
  EXPECT_EQ(region().state(0), block_state::device);
  EXPECT_EQ(region().state(region().blocks().count() - 1), block_state::device);
}

TEST_F(submissions, that_are_abandoned_leave_the_copy_of_the_host) {
  host_reads_all();
  {
    submission work(with(), {{&region(), {0, granule_size}, HPE_INOUT}});
    // A part of the work runs, and the submission waits for it.
    with().devices.wait(with().engine.fill(0, data_, new_byte, block, {}),
                        std::chrono::steady_clock::time_point::max());
    work.abandon();
  }
  EXPECT_EQ(state_of(0), block_state::host);
  expect_everywhere(5, old_byte, false);

  // If the host has no copy, the home keeps the bytes that the completed part wrote.
  runtime_->copies().fill(data_, old_byte, bytes);
  {
    submission work(with(), {{&region(), {0, granule_size}, HPE_INOUT}});
    with().devices.wait(with().engine.fill(0, data_, new_byte, block, {}),
                        std::chrono::steady_clock::time_point::max());
    work.abandon();
  }
  expect_everywhere(5, new_byte, true);
  expect_everywhere(block + 5, old_byte, true);
}

TEST_F(submissions, that_are_abandoned_leave_bytes_that_can_be_migrated) {
  for (const bool host_reads : {false, true}) {
    runtime_->copies().fill(data_, old_byte, bytes);
    if (host_reads) host_reads_all();
    {
      submission work(with(), {{&region(), {0, granule_size}, HPE_INOUT}});
      with().devices.wait(with().engine.fill(0, data_, new_byte, block, {}),
                          std::chrono::steady_clock::time_point::max());
      work.abandon();
    }
    runtime_->memory().migrate(data_, host_reads ? 1 : 2);
    expect_everywhere(5, host_reads ? old_byte : new_byte, false);
    expect_everywhere(block + 5, old_byte, false);
    expect_everywhere(bytes - 1, old_byte, false);
  }
}

// Tests changes of data that hpe has copied to the host ahead of an eviction. `change` writes new bytes to the first
// block of data_ on its device.
class copies_ahead : public submissions {
 protected:
  void expect_new_bytes_after_making_room(const std::function<void()>& change) {
    ::setenv("HPE_DEVICE_MEMORY", "4M", 1);
    start("");
    ::unsetenv("HPE_DEVICE_MEMORY");
    std::byte* const one = runtime_->memory().allocate(granule_size, 0);
    std::byte* const two = runtime_->memory().allocate(granule_size, 0);
    const auto use = [&](std::byte* p) { runtime_->copies().fill(p, old_byte, granule_size); };
    // The device's memory holds two of the three allocations. When hpe evicts one of them, it also copies the next one
    // to the host in advance.
    for (std::byte* const p : {two, one, data_, two}) use(p);
    {
      const hpe::lock_guard lock(region().mutex);
      ASSERT_TRUE(region().resident.copied_out({0, granule_size}));
    }
    change();
    for (std::byte* const p : {one, two}) use(p);
    ASSERT_EQ(state_of(0), block_state::host);
    EXPECT_EQ(std::to_integer<int>(data_[5]), new_byte);
    EXPECT_EQ(std::to_integer<int>(data_[granule_size - 1]), old_byte);
  }
};

TEST_F(copies_ahead, are_outdated_by_abandoned_work) {
  expect_new_bytes_after_making_room([this] {
    submission work(with(), {{&region(), {0, granule_size}, HPE_INOUT}});
    with().devices.wait(with().engine.fill(0, data_, new_byte, block, {}),
                        std::chrono::steady_clock::time_point::max());
    work.abandon();
  });
}

TEST_F(copies_ahead, are_outdated_by_work_that_the_order_forgets) {
  expect_new_bytes_after_making_room([this] {
    const auto fill = [this](std::size_t at, std::size_t size, int value) {
      runtime_->copies().fill(data_ + at, static_cast<std::uint8_t>(value), size);
    };
    fill(0, block, new_byte);
    runtime_->synchronize(-1);
    // Every second byte is a separate range. The access order forgets finished work when an access visits hundreds of
    // ranges.
    constexpr std::size_t many = 1200;
    for (std::size_t at = block; at < block + many; at += 2) fill(at, 1, old_byte);
    runtime_->synchronize(-1);
    std::byte* const copy = runtime_->memory().allocate(many, 2);
    for (int i = 0; i < 20; ++i) runtime_->copies().copy(copy, data_ + block, many);
    const hpe::lock_guard lock(region().mutex);
    ASSERT_LT(region().order.range_count(), 20U);
  });
}

TEST_F(submissions, find_bytes_whose_granules_have_moved) {
  const auto homes = [this] {
    std::vector<std::uint16_t> all;
    for (std::size_t at = 0; at < bytes; at += granule_size) all.push_back(region().home_of(at));
    return all;
  };
  const std::vector<std::uint16_t> first = homes();
  for (const std::vector<std::uint16_t>& wanted : {std::vector<std::uint16_t>{2, 2, 0}, {1}, {1, 0, 1}, first}) {
    runtime_->copies().fill(data_ + granule_size, new_byte, granule_size);
    runtime_->memory().place(data_, wanted);
    for (std::size_t g = 0; g < first.size(); ++g) {
      EXPECT_EQ(homes()[g], wanted[wanted.size() == 1 ? 0 : g]);
      EXPECT_EQ(runtime_->granules().find(data_ + g * granule_size).home, homes()[g]);
    }
    expect_everywhere(granule_size - 1, old_byte, false);
    expect_everywhere(granule_size, new_byte, false);
    expect_everywhere(2 * granule_size, old_byte, false);
  }
  EXPECT_THROW(runtime_->memory().place(data_, {0, 1, 7}), error);
  EXPECT_EQ(homes(), first);
}

// A copy for which nothing waits would overwrite later writes of the host.
TEST_F(submissions, bring_to_host_leaves_no_copy_behind_when_it_fails) {
  start("16M");
  device::device& second = with().devices.at(1);
  second.unmap(data_ + granule_size, granule_size);  // so copies from there are refused
  coherence::region& r = region();
  {
    const hpe::lock_guard lock(r.mutex);
    EXPECT_THROW(bring_to_host(with(), r), error);
    point_set copies;
    r.order.before_write({0, granule_size}, copies);
    EXPECT_FALSE(copies.empty()) << "the copies from the first home were queued";
    EXPECT_TRUE(reached(copies.points(), with().devices));
    EXPECT_EQ(r.state(0), block_state::device);
  }
  second.map(data_ + granule_size, granule_size);
  expect_everywhere(5, old_byte, true);
}

// A thread that queues work without end must wait for the device, and must not hold up other threads while it waits.
TEST_F(submissions, are_not_queued_without_end) {
  coherence::region& r = region();
  device::stream& stream = with().devices.at(0).create_stream(device::priority::launch);
  const timepoint before = stream.fill(data_, old_byte, 1);
  {
    const hpe::lock_guard lock(r.mutex);
    r.order.record_write({0, block}, {before.timeline, before.value + 1});
  }
  constexpr int all = 20000;
  std::atomic<int> queued{0};
  std::thread program([&] {
    for (; queued < all; ++queued) runtime_->copies().fill(data_, queued % 100, block);
  });
  for (int seen = -1; seen != queued && queued < all;) {
    seen = queued;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_LT(queued, all / 2);
  EXPECT_EQ(on_devices(granule_size), old_byte) << "other operations can use the region";
  (void)stream.fill(data_ + granule_size - 1, old_byte, 1);
  program.join();
  expect_everywhere(5, (all - 1) % 100, true);
}

TEST_F(submissions, hand_bytes_over_without_work) {
  host_writes_all();
  {
    submission use(with(), {{&region(), {0, granule_size}, HPE_INOUT}});
    use.hand_over();
  }
  EXPECT_EQ(state_of(0), block_state::device) << "other work may write the block";
  EXPECT_EQ(state_of(granule_size), block_state::host);
  expect_everywhere(5, old_byte, true);
}

TEST_F(submissions, of_regions_that_were_freed_are_refused) {
  coherence::region& r = region();
  const byte_range whole = r.whole();
  runtime_->memory().free(data_);
  EXPECT_THROW(submission(with(), {{&r, whole, HPE_IN}}), error);
  EXPECT_TRUE(r.mutex.try_lock()) << "a refused submission keeps no lock";
  r.mutex.unlock();
  EXPECT_NO_THROW(submission(with(), {{&r, whole, HPE_IN, true}})) << "left out";
}

// An upload that follows the host's writes starts only after the end of kernels that read the home.
TEST_F(submissions, uploads_wait_for_readers_of_the_home) {
  host_reads_all();
  device::stream& stream = with().devices.at(0).create_stream(device::priority::launch);
  const timepoint before = stream.fill(data_, old_byte, 1);
  const timepoint gate{before.timeline, before.value + 1};
  coherence::region& r = region();
  {
    const hpe::lock_guard lock(r.mutex);
    r.order.record_read({0, granule_size}, gate);
    r.transition({0, 1}, coherence::block_event::host_write);
    upload(with(), r, {0, 1}, device::priority::rolling);
    EXPECT_EQ(r.state(0), block_state::shared);
    point_set uploads;
    r.order.before_read({0, block}, uploads);
    EXPECT_FALSE(reached(uploads.points(), with().devices)) << "the reader has not finished";
  }
  (void)stream.fill(data_, old_byte, 1);
  expect_everywhere(5, old_byte, true);
}

TEST_F(submissions, wait_for_others_by_what_both_do_with_the_bytes) {
  runtime_->synchronize(-1);  // so that the thread waits only for the gate
  with().devices.wait(with().engine.fill(0, data_, old_byte, 1, {}), std::chrono::steady_clock::time_point::max());
  device::stream& stream = with().devices.at(0).create_stream(device::priority::launch);
  const timepoint before = stream.fill(data_, old_byte, 1);
  const timepoint gate{before.timeline, before.value + 1};
  coherence::region& r = region();
  const device_access reads{&r, {0, block}, HPE_IN};
  const device_access writes{&r, {0, block}, HPE_OUT};
  const device_access concurrent{&r, {0, block}, HPE_INOUT, false, true};
  const auto waits = [&](const device_access& later) {
    point_set after;
    collect(std::span(&later, 1), with().devices, after);
    return !reached(after.points(), with().devices);
  };
  struct {
    device_access first;
    std::size_t at;  // the offset of the access, different in each case
    bool reader_waits, writer_waits, concurrent_waits;
  } cases[] = {{reads, 0, false, true, true},
               {writes, granule_size, true, true, true},
               {concurrent, 2 * granule_size, true, true, false}};
  {
    const hpe::lock_guard lock(r.mutex);
    for (auto& c : cases) {
      SCOPED_TRACE(c.at);
      const auto there = [&](device_access a) {
        a.range = {c.at, c.at + block};
        return a;
      };
      const device_access first = there(c.first);
      record(std::span(&first, 1), std::span(&gate, 1), with().devices);
      EXPECT_EQ(waits(there(reads)), c.reader_waits);
      EXPECT_EQ(waits(there(writes)), c.writer_waits);
      EXPECT_EQ(waits(there(concurrent)), c.concurrent_waits);
    }
  }
  (void)stream.fill(data_, old_byte, 1);
}

}  // namespace
}  // namespace hpe::work
