// A model of one block, in which each of the two copies is a number. Random events change the model as the runtime
// changes a block, with fetches that finish late. The host or a kernel that reads the block must find the last written
// value.

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
    switch (random_() % 13) {
      case 0: return read_on_host();
      case 1: return write_on_host(block_event::host_write);
      case 2: return write_on_host(block_event::host_overwrite);
      case 3: return run_kernel(block_event::device_read);
      case 4: return run_kernel(block_event::device_write);
      case 5: return run_kernel(block_event::device_overwrite);
      case 6: return happens(block_event::flush);
      case 7: return happens(block_event::prefetch);
      case 8: return finish_fetch(block_event::fetch_failed);
      case 9:
        return fail_before_queuing(random_() % 2 == 0 ? block_event::device_write : block_event::device_overwrite);
      case 10: return fail_part_way();
      case 11: return bring_to_host();
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
      ASSERT_EQ(view_, view::closed) << "the fetch writes the shadow while the view is open";
      fetch_ = ++fetches_;
    }
    state_ = next;
  }

  /// A fetch that a launch has made useless finishes like any other fetch, but must not change the block.
  void finish_fetch(block_event event) {
    if (!fetch_) return;
    const bool current = state_ == block_state::fetching && *fetch_ == fetches_;
    fetch_.reset();
    if (!current) return;
    shadow_ = event == block_event::fetch_failed ? garbage : home_;
    happens(event);
  }

  void touch(block_event event, view needed) {
    for (int tries = 0; view_ < needed; ++tries) {
      ASSERT_LT(tries, 3) << "the host never gets access to the block";
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
    // A write keeps the block's other bytes, so the shadow must contain the last value. An overwrite keeps no bytes.
    if (event == block_event::host_write) {
      EXPECT_EQ(shadow_, last_);
    }
    shadow_ = last_ = ++writes_;
  }

  /// Models the steps before device work: closes the view and uploads the host's writes. The block gets the state of
  /// the work only when the work is queued.
  void release(block_event event) {
    const block_actions actions = apply(state_, event).actions;
    if (actions.close) view_ = view::closed;
    if (actions.open_read) view_ = view::readable;
    if (!actions.upload) return;
    home_ = shadow_;
    state_ = apply(state_, block_event::flush).next;
  }

  /// The work fails before the runtime queues any of it. The host and kernels must then find the old bytes.
  void fail_before_queuing(block_event event) { release(event); }

  /// The work fails after parts of it have run. If the host has a copy, that copy is then valid; otherwise the home is
  /// valid, with the bytes that the parts left.
  void fail_part_way() {
    release(block_event::device_write);
    const bool host_copy = state_ == block_state::shared || state_ == block_state::host;
    home_ = ++writes_;
    if (!host_copy) last_ = home_;
    state_ = apply(state_, block_event::abandoned).next;
  }

  /// Acts like migration, which first waits for copies in progress.
  void bring_to_host() {
    fetch_.reset();
    if (state_ == block_state::device || state_ == block_state::fetching) shadow_ = home_;
    happens(block_event::brought_to_host);
    home_ = garbage;  // nothing has been copied to the new home yet
  }

  void run_kernel(block_event event) {
    const bool untouched = state_ == block_state::fresh;
    release(event);
    happens(event);
    ASSERT_NE(view_, view::writable);
    if (untouched) home_ = last_;  // new memory may hold any value; here it is zero
    if (event != block_event::device_overwrite) {
      EXPECT_EQ(home_, last_);
    }
    if (event != block_event::device_read) home_ = last_ = ++writes_;
  }

  static constexpr int garbage = -2;

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

TEST(protocol_oracle, reads_return_the_last_written_value) {
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
