#pragma once

/// The states of consecutive blocks. They change only by events of the protocol, which transition() applies. Not
/// thread-safe: the mutex of the region that owns the object guards it.

#include <cstdint>
#include <vector>

#include "runtime/coherence/protocol.h"
#include "runtime/coherence/read_ahead.h"

namespace hpe::coherence {

class block_states {
 public:
  /// Resets to `count` blocks in one state: fresh; device, if the shadow still contains bytes of a freed allocation; or
  /// host, for memory whose views are always open.
  void reset(std::uint64_t count, block_state initial = block_state::fresh);

  [[nodiscard]] std::uint64_t count() const noexcept { return blocks_.size(); }
  [[nodiscard]] block_state operator[](std::uint64_t block) const noexcept { return blocks_[block].state; }

  /// The number of blocks in a state other than device. The host has a copy of these blocks, is fetching a copy, or may
  /// create a copy.
  [[nodiscard]] std::uint64_t off_device() const noexcept { return off_device_; }

  /// Whether the shadow may have pages: true after reset() to a state other than fresh, after a block was in state host
  /// or fetching, or after use_shadow().
  [[nodiscard]] bool shadow_used() const noexcept { return shadow_used_; }
  /// Records that bytes were copied to the shadow without a change of any block's state.
  void use_shadow() noexcept { shadow_used_ = true; }

  /// Returns the run of consecutive blocks from `block` on that have the same state as `block`. The run ends at `limit`
  /// at the latest.
  [[nodiscard]] block_run same_from(std::uint64_t block, std::uint64_t limit) const noexcept;

  /// Changes each block of the run to the state that follows from the event (coherence::apply). The caller must have
  /// carried out the actions of the event.
  void transition(block_run run, block_event event) noexcept;

  /// Like transition, for an event that starts a fetch. Stores the number of the fetch in each block of the run.
  void begin_fetch(block_run run, block_event event, std::uint32_t number) noexcept;
  /// Whether the fetch with this number is fetching the block.
  [[nodiscard]] bool fetched_by(std::uint64_t block, std::uint32_t number) const noexcept {
    return blocks_[block].state == block_state::fetching && blocks_[block].fetch == number;
  }

  /// Cuts each block into `times` blocks with the same state; the last block may be cut into fewer. Afterwards there
  /// are `count` blocks in all.
  void split(std::uint64_t times, std::uint64_t count);

  /// Whether the rolling upload has uploaded the block since the last device work on it.
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
