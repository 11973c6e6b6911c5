// One block with its two copies as numbers, driven by random events in the way the runtime drives it, with fetches that
// finish late. A host or a kernel that reads must find what was written last.

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "runtime/coherence/protocol.h"

namespace hpe::coherence {
namespace {

enum class view { closed, readable, writable };

class two_copies {
 public:
  explicit two_copies(unsigned seed) : random_(seed) {}

  void step() {
    switch (random_() % 9) {
      case 0: return read_on_host();
      case 1: return write_on_host(block_event::host_write);
      case 2: return write_on_host(block_event::host_overwrite);
      case 3: return run_kernel(block_event::device_read);
      case 4: return run_kernel(block_event::device_write);
      case 5: return run_kernel(block_event::device_overwrite);
      case 6: return happens(block_event::flush);
      case 7: return happens(block_event::prefetch);
      default: return finish_fetch(block_event::fetched);
    }
  }

 private:
  void happens(block_event event) {
    const auto [next, actions] = apply(state_, event);
    if (actions.close) view_ = view::closed;
    if (actions.open_read) view_ = view::readable;
    if (actions.open_write) view_ = view::writable;
    if (actions.upload) home_ = shadow_;
    if (actions.fetch) {
      ASSERT_EQ(view_, view::closed) << "the copy would fall into an open view";
      fetch_ = ++fetches_;
    }
    state_ = next;
  }

  /// A fetch that a launch made useless finishes as any other, but is not the block's any more.
  void finish_fetch(block_event event) {
    if (!fetch_) return;
    const bool current = state_ == block_state::fetching && *fetch_ == fetches_;
    fetch_.reset();
    if (!current) return;
    shadow_ = home_;
    happens(event);
  }

  void touch(block_event event, view needed) {
    for (int tries = 0; view_ < needed; ++tries) {
      ASSERT_LT(tries, 3) << "the access never gets its right";
      happens(event);
      if (state_ == block_state::fetching)
        finish_fetch(event == block_event::host_read ? block_event::fetched : block_event::fetched_for_write);
    }
  }

  void read_on_host() {
    touch(block_event::host_read, view::readable);
    EXPECT_EQ(shadow_, last_);
  }

  void write_on_host(block_event event) {
    touch(event, view::writable);
    // A write keeps the rest of the block, so its old bytes must be right; an overwrite does not.
    if (event == block_event::host_write) {
      EXPECT_EQ(shadow_, last_);
    }
    shadow_ = last_ = ++writes_;
  }

  void run_kernel(block_event event) {
    const bool untouched = state_ == block_state::fresh;
    happens(event);
    ASSERT_NE(view_, view::writable);
    if (untouched) home_ = last_;  // new memory holds anything; let it be zero
    if (event != block_event::device_overwrite) {
      EXPECT_EQ(home_, last_);
    }
    if (event != block_event::device_read) home_ = last_ = ++writes_;
  }

  std::mt19937 random_;
  block_state state_ = block_state::fresh;
  view view_ = view::closed;
  int home_ = -1;
  int shadow_ = 0;
  int last_ = 0;
  int writes_ = 0;
  int fetches_ = 0;
  std::optional<int> fetch_;
};

TEST(protocol_oracle, reads_find_what_was_written_last) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    two_copies block(seed);
    for (int n = 0; n < 500; ++n) {
      block.step();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace hpe::coherence
