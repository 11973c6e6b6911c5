#pragma once

/// One allocation as the coherence protocol sees it: where it lies, the state of its blocks, who uses what. Plain data
/// under one mutex; the code that moves it from state to state is in runtime/fault (what the host touches) and
/// runtime/core (what devices use).
///
/// Region objects are never destroyed while the runtime lives, only used again, so a thread that found one through a
/// stale address may still lock it; it then looks at `alive` and at the range.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/access_order.h"
#include "runtime/coherence/block_states.h"
#include "runtime/coherence/read_ahead.h"
#include "runtime/coherence/write_behind.h"

namespace hpe::memory {
class small_objects;
}

namespace hpe::coherence {

enum class region_kind : std::uint8_t {
  device,   ///< one home
  striped,  ///< a home for each granule
  host      ///< the shadow is the only copy; devices reach it
};

/// What a region is made with.
struct region_layout {
  region_kind kind = region_kind::device;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;                 ///< where the allocation ends: as asked for
  std::uint64_t extent = 0;                ///< mapped: bytes rounded up to pages
  std::uint64_t block_size = 0;            ///< a power of two
  std::vector<std::uint16_t> homes;        ///< one, or one for each granule
  std::uint64_t first = 0;                 ///< where the allocation begins; not 0 only in memory of other processes
  memory::small_objects* small = nullptr;  ///< a slab: what knows the small allocations in it
};

class region {
 public:
  mutable hpe::mutex mutex;

  bool alive HPE_GUARDED_BY(mutex) = false;     ///< made, and not freed
  bool degraded HPE_GUARDED_BY(mutex) = false;  ///< mappings ran out: one block is the whole region
  /// base, kind, bytes and extent are the same as long as the region is alive, and may be read without the mutex by
  /// those who keep it alive.
  region_layout layout;
  hpeAdvice advice HPE_GUARDED_BY(mutex) = HPE_ADVISE_DEFAULT;
  access_order order HPE_GUARDED_BY(mutex);
  read_ahead reader HPE_GUARDED_BY(mutex);
  write_behind writer HPE_GUARDED_BY(mutex);
  std::uint64_t shared HPE_GUARDED_BY(mutex) = 0;  ///< under which number other processes know its memory; 0: none does
  std::vector<byte_range> exports
      HPE_GUARDED_BY(mutex);  ///< allocations in it of which bytes are exported now, as often as they are

  explicit region(std::uint32_t number) : id(number) {}
  const std::uint32_t id;

  /// False only if all blocks are in state device and no lane is about to change that: then there is no view to close.
  /// Becomes false under the mutex (close_to_host), and may be read without.
  std::atomic<bool> open_to_host{true};

  /// Becomes a new region. Its blocks are fresh, or, where the shadow still has the bytes of a freed allocation, at
  /// their home, which reads as zero. Windows are bytes; see the options.
  void begin(region_layout description, std::uint64_t prefetch_window, std::uint64_t rolling_window,
             block_state initial = block_state::fresh) HPE_REQUIRES(mutex);
  /// Lies elsewhere from now on; whoever calls it has moved the bytes.
  void set_homes(std::vector<std::uint16_t> homes) HPE_REQUIRES(mutex);
  /// Is no region any more.
  void end() noexcept HPE_REQUIRES(mutex) { alive = false; }

  /// Applies advice from now on.
  void advise(hpeAdvice advice) HPE_REQUIRES(mutex);

  /// The states of its blocks.
  [[nodiscard]] const block_states& blocks() const noexcept HPE_REQUIRES(mutex) { return blocks_; }
  [[nodiscard]] block_state state(std::uint64_t block) const noexcept HPE_REQUIRES(mutex) { return blocks_[block]; }
  /// The one door by which states change: see block_states.
  void transition(block_run run, block_event event) noexcept HPE_REQUIRES(mutex);
  void begin_fetch(block_run run, block_event event, std::uint32_t number) noexcept HPE_REQUIRES(mutex);
  void set_rolled(block_run run, bool rolled) noexcept HPE_REQUIRES(mutex) { blocks_.set_rolled(run, rolled); }
  /// One block for everything, in the state that all blocks have.
  void collapse() HPE_REQUIRES(mutex);

  [[nodiscard]] bool contains(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - layout.base) < layout.extent;
  }
  [[nodiscard]] std::uint64_t offset_of(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - layout.base);
  }
  [[nodiscard]] std::uint64_t block_of(std::uint64_t offset) const noexcept { return offset / layout.block_size; }
  /// The blocks that a range meets.
  [[nodiscard]] block_run blocks_of(byte_range range) const noexcept;
  /// The bytes of some blocks, cut at the extent.
  [[nodiscard]] byte_range bytes_of(block_run run) const noexcept;
  [[nodiscard]] byte_range whole() const noexcept { return {0, layout.extent}; }

  /// The blocks that lie wholly in a range.
  [[nodiscard]] block_run blocks_within(byte_range range) const noexcept HPE_REQUIRES(mutex);
  [[nodiscard]] block_run all_blocks() const noexcept HPE_REQUIRES(mutex) { return {0, blocks_.count()}; }

  /// The home of the byte at offset; memory::host_home for host regions.
  [[nodiscard]] std::uint16_t home_of(std::uint64_t offset) const noexcept;
  /// Where the stretch of one home that begins at offset ends, at most at `limit`.
  [[nodiscard]] std::uint64_t end_of_home(std::uint64_t offset, std::uint64_t limit) const noexcept;
  /// Where a piece that begins at `begin` ends: at most `limit`, at most `most` bytes long, of one home, and at the end
  /// of a block unless the block has more bytes than that.
  [[nodiscard]] std::uint64_t end_of_piece(std::uint64_t begin, std::uint64_t limit, std::uint64_t most) const noexcept;
  /// Calls visit(home, part) for the parts of a range that have one home each.
  template <class Visit>
  void for_each_home(byte_range range, const Visit& visit) const {
    for (byte_range part = range; part.begin < range.end; part.begin = part.end) {
      part.end = end_of_home(part.begin, range.end);
      visit(home_of(part.begin), part);
    }
  }
  /// A bit for each device that is the home of some bytes.
  [[nodiscard]] std::uint64_t home_set() const noexcept { return home_set_; }
  /// Whether host and device work use one and the same copy.
  [[nodiscard]] bool single_copy() const noexcept { return layout.kind == region_kind::host; }

  /// Before a lane looks whether it may open a view; see announcements.
  void open_soon() noexcept {
    if (!open_to_host.load(std::memory_order_relaxed)) open_to_host = true;
  }
  /// Takes that back, if it can.
  void close_to_host() noexcept HPE_REQUIRES(mutex) {
    if (blocks_.off_device() == 0) open_to_host = false;
  }

 private:
  block_states blocks_ HPE_GUARDED_BY(mutex);
  std::uint64_t prefetch_window_ = 0;
  std::uint64_t rolling_window_ = 0;
  std::uint64_t home_set_ = 0;

  void reset_patterns() HPE_REQUIRES(mutex);
};

/// The block size for an allocation: about 1/256 of it, from 64 KiB to 2 MiB; `wished` (0: none) is taken as it is.
[[nodiscard]] std::uint64_t choose_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept;

}  // namespace hpe::coherence
