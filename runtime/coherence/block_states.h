#pragma once

/// The states of consecutive blocks. Only transition() changes them, by events of the protocol.
/// Locked by the owner.

#include <cstdint>
#include <vector>

#include "runtime/coherence/protocol.h"
#include "runtime/coherence/read_ahead.h"

namespace hpe::coherence {

class block_states {
 public:
  /// Resets to `count` blocks in one state: fresh, or device if the shadow still has the bytes of a freed
  /// allocation.
  void reset(std::uint64_t count, block_state initial = block_state::fresh);

  [[nodiscard]] std::uint64_t count() const noexcept { return blocks_.size(); }
  [[nodiscard]] block_state operator[](std::uint64_t block) const noexcept { return blocks_[block].state; }

  /// The number of blocks in another state than device: the host has, gets or may create a copy of these.
  [[nodiscard]] std::uint64_t off_device() const noexcept { return off_device_; }

  /// Whether pages of the shadow may exist, because some block was on the host or on its way there, or was copied there
  /// (use_shadow).
  [[nodiscard]] bool shadow_used() const noexcept { return shadow_used_; }
  /// Notes a copy to the shadow that no state shows.
  void use_shadow() noexcept { shadow_used_ = true; }

  /// The run of blocks from `block` on, before `limit`, that have the state of `block`.
  [[nodiscard]] block_run same_from(std::uint64_t block, std::uint64_t limit) const noexcept;

  /// Gives each block of the run the state that follows from the event (coherence::apply). The caller must have carried
  /// out the actions of the event.
  void transition(block_run run, block_event event) noexcept;

  /// Like transition, for an event that starts the fetch of this number.
  void begin_fetch(block_run run, block_event event, std::uint32_t number) noexcept;
  /// Whether the block is being fetched by the fetch of this number.
  [[nodiscard]] bool fetched_by(std::uint64_t block, std::uint32_t number) const noexcept {
    return blocks_[block].state == block_state::fetching && blocks_[block].fetch == number;
  }

  /// Cuts each block into `times` blocks with its state, of which the last block gets fewer: there are `count` then.
  void split(std::uint64_t times, std::uint64_t count);

  /// Whether the block was uploaded behind a writing host since the last device work on it.
  [[nodiscard]] bool rolled(std::uint64_t block) const noexcept { return blocks_[block].rolled; }
  void set_rolled(block_run run, bool rolled) noexcept;

 private:
  struct block {
    block_state state = block_state::fresh;
    bool rolled = false;
    std::uint32_t fetch = 0;  // the number of the latest fetch
  };

  std::vector<block> blocks_;
  std::uint64_t off_device_ = 0;
  bool shadow_used_ = false;
};

}  // namespace hpe::coherence
