#include "runtime/fault/lane.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "runtime/core/runtime.h"
#include "tests/fault/refused_memory.h"

namespace hpe::fault {
namespace {

/// A runtime with additional lanes, which belong to the test. A lane is a thread that serves page faults
/// (fault/lane.h).
class lanes : public ::testing::Test {
 protected:
  static constexpr unsigned count = 2;

  lanes() {
    options chosen;
    chosen.devices = "soft:2";
    chosen.block_size = 64 << 10;
    runtime_ = std::make_unique<core::runtime>(chosen);
    std::vector<device::gate*> gates;
    for (unsigned n = 0; n < count; ++n) {
      own_.push_back(
          std::make_unique<lane>(n, count,
                                 lane_environment{runtime_->resources(), runtime_->granules(), runtime_->regions(),
                                                  runtime_->announced(), runtime_->count()},
                                 runtime_->devices().create_gate()));
      gates.push_back(&own_.back()->gate());
    }
    board_ = std::make_unique<request_board>(gates);
    for (const auto& l : own_) l->start(*board_);
  }

  [[nodiscard]] coherence::region& region_of(const void* p) const {
    return runtime_->regions().at(runtime_->granules().find(p).region);
  }
  [[nodiscard]] coherence::block_state state_of(const void* p) const {
    coherence::region& r = region_of(p);
    const std::lock_guard lock(r.mutex);
    return r.state(r.block_of(r.offset_of(p)));
  }

  std::unique_ptr<core::runtime> runtime_;
  std::unique_ptr<request_board> board_;
  std::vector<std::unique_ptr<lane>> own_;
};

// A thread faults. Before a lane handles the request, the memory is freed, and the address is reused by an allocation
// that another lane serves. If the first lane fetched the data, the other lane would wait for that fetch forever.
TEST_F(lanes, a_request_of_another_lane_is_answered_with_retry) {
  constexpr std::size_t bytes = 1 << 20;
  auto* const p = static_cast<std::byte*>(runtime_->memory().allocate(bytes, 0));
  runtime_->copies().fill(p, 7, bytes);
  runtime_->synchronize(-1);
  ASSERT_EQ(state_of(p), coherence::block_state::device);

  const unsigned right = runtime_->granules().find(p).region % count;
  EXPECT_EQ(board_->ask(1 - right, p, false), fault_verdict::retry);
  EXPECT_EQ(state_of(p), coherence::block_state::device) << "a lane served a request for a region of another lane";
  EXPECT_EQ(board_->ask(right, p, false), fault_verdict::retry);
  EXPECT_EQ(state_of(p), coherence::block_state::shared);
  EXPECT_EQ(*p, std::byte{7});
  runtime_->memory().free(p);
  EXPECT_EQ(board_->ask(right, p, false), fault_verdict::not_ours);
}

// A lane that cannot allocate memory tries again for a while. Then the touch raises a fault in the program, instead of
// waiting forever.
TEST_F(lanes, without_memory_refuse_a_request_at_last) {
  constexpr std::size_t bytes = 1 << 20;
  constexpr std::chrono::milliseconds patience{300};
  auto* const p = static_cast<std::byte*>(runtime_->memory().allocate(bytes, 0));
  runtime_->copies().fill(p, 7, bytes);
  runtime_->synchronize(-1);
  lane_environment poor{runtime_->resources(), runtime_->granules(), runtime_->regions(), runtime_->announced(),
                        runtime_->count()};
  poor.settle = [](unsigned) { memory_is_refused = true; };
  poor.patience = patience;
  lane one(0, 1, poor, runtime_->devices().create_gate());
  const std::vector<device::gate*> gates{&one.gate()};
  request_board board(gates);
  one.start(board);
  const auto begin = std::chrono::steady_clock::now();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(board.ask(0, p, false), fault_verdict::not_ours);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, patience);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("cannot be brought to the host: the process has been out of memory"), std::string::npos) << told;
  EXPECT_EQ(state_of(p), coherence::block_state::device);
  EXPECT_EQ(*p, std::byte{7}) << "the runtime's own lanes can allocate memory";
}

// Before any data has arrived, three threads touch consecutive blocks; the third one touches the marker (block 2). This
// touch makes hpe request the next window (blocks 4 to 7) at once.
TEST_F(lanes, go_on_with_a_walk_whose_marker_is_still_on_its_way) {
  using coherence::block_state;
  constexpr std::size_t block = 64 << 10;
  auto* const p = static_cast<std::byte*>(runtime_->memory().allocate(32 * block, 0));
  runtime_->copies().fill(p, 7, 32 * block);
  runtime_->synchronize(-1);
  coherence::region& r = region_of(p);

  // The recorded writer is the next command of the stream, so the test decides when it ends.
  device::stream& stream = runtime_->devices().at(0).create_stream(device::priority::launch);
  const timepoint before = stream.fill(p, 7, 1);
  const timepoint gate{before.timeline, before.value + 1};
  {
    const std::lock_guard lock(r.mutex);
    r.order.record_write(r.whole(), gate);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  const auto comes_under_way = [&](std::size_t b) {
    while (state_of(p + b * block) == block_state::device && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    return state_of(p + b * block) == block_state::fetching;
  };
  std::vector<std::jthread> walkers;
  const auto touch = [&](std::size_t b) {
    walkers.emplace_back([this, p, b, lane = r.id % count] {
      EXPECT_EQ(board_->ask(lane, p + b * block, false), fault_verdict::retry);
    });
  };
  touch(0);
  EXPECT_TRUE(comes_under_way(0));
  touch(1);
  EXPECT_TRUE(comes_under_way(3)) << "hpe has recognised the walk, and block 2 is its marker";
  EXPECT_EQ(state_of(p + 4 * block), block_state::device);
  touch(2);
  EXPECT_TRUE(comes_under_way(7));
  EXPECT_EQ(state_of(p), block_state::fetching) << "no data has arrived yet";

  (void)stream.fill(p, 7, 1);
  walkers.clear();
  EXPECT_EQ(*(p + 2 * block), std::byte{7});
}

// While a fetch waits for a writer, device work uses a block in the middle of the fetched range. The blocks after this
// block are then no longer being fetched.
TEST_F(lanes, a_fetch_drops_the_blocks_after_one_that_device_work_took) {
  using coherence::block_state;
  constexpr std::size_t block = 64 << 10;
  auto* const p = static_cast<std::byte*>(runtime_->memory().allocate(8 * block, 0));
  runtime_->copies().fill(p, 7, 8 * block);
  runtime_->synchronize(-1);
  coherence::region& r = region_of(p);
  device::stream& stream = runtime_->devices().at(0).create_stream(device::priority::launch);
  const timepoint before = stream.fill(p, 7, 1);
  {
    const std::lock_guard lock(r.mutex);
    r.order.record_write(r.whole(), {before.timeline, before.value + 1});
  }
  runtime_->copies().prefetch(p, 4 * block, HPE_HOST);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  const auto becomes = [&](std::size_t b, block_state wanted) {
    while (state_of(p + b * block) != wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return state_of(p + b * block) == wanted;
  };
  ASSERT_TRUE(becomes(3, block_state::fetching));
  runtime_->copies().fill(p + 1 * block, 9, block);
  EXPECT_EQ(state_of(p + 1 * block), block_state::device);
  EXPECT_EQ(state_of(p + 2 * block), block_state::fetching);
  (void)stream.fill(p, 7, 1);
  EXPECT_TRUE(becomes(0, block_state::shared)) << "the data of the blocks before the used block arrives";
  EXPECT_TRUE(becomes(2, block_state::device));
  EXPECT_TRUE(becomes(3, block_state::device));
  for (const auto& [b, value] : {std::pair{0, 7}, {1, 9}, {2, 7}, {3, 7}})
    EXPECT_EQ(p[static_cast<std::size_t>(b) * block], static_cast<std::byte>(value)) << b;
}

}  // namespace
}  // namespace hpe::fault
