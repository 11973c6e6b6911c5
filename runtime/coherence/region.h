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
#include <mutex>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/coherence/access_order.h"
#include "runtime/coherence/protocol.h"
#include "runtime/coherence/read_ahead.h"
#include "runtime/coherence/write_behind.h"

namespace hpe::coherence {

enum class region_kind : std::uint8_t {
  device,   ///< one home
  striped,  ///< a home for each granule
  host      ///< the shadow is the only copy; devices reach it
};

struct block {
  block_state state = block_state::fresh;
  bool rolled = false;      ///< uploaded behind the host since the last release
  std::uint32_t fetch = 0;  ///< which fetch is under way, in state fetching
};

/// What a region is made with.
struct region_description {
  region_kind kind = region_kind::device;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;           ///< where the allocation ends: as asked for
  std::uint64_t extent = 0;          ///< mapped: bytes rounded up to pages
  std::uint64_t block_size = 0;      ///< a power of two
  std::vector<std::uint16_t> homes;  ///< one, or one for each granule
  bool slab = false;                 ///< holds small allocations
  std::uint16_t pool = 0;            ///< slab: whose small allocations
  std::uint64_t first = 0;           ///< where the allocation begins; not 0 only in memory of other processes
};

class region {
 public:
  mutable std::mutex mutex;

  // All below: under the mutex.
  bool alive = false;        ///< made, and not freed
  bool shadow_used = false;  ///< some block was on the host
  bool degraded = false;     ///< mappings ran out: one block is the whole region
  region_description is;
  hpeAdvice advice = HPE_ADVISE_DEFAULT;
  std::vector<block> blocks;
  std::uint64_t off_device = 0;  ///< how many blocks are in another state than device
  access_order order;
  read_ahead reader;
  write_behind writer;
  std::uint64_t shared = 0;         ///< under which number other processes know its memory; 0: none does
  std::vector<byte_range> exports;  ///< allocations in it of which bytes are exported now, as often as they are

  explicit region(std::uint32_t number) : id(number) {}
  const std::uint32_t id;

  /// False only if all blocks are in state device and no lane is about to change that: then there is no view to close.
  /// Becomes false under the mutex (close_to_host), and may be read without.
  std::atomic<bool> open_to_host{true};

  /// Becomes a new, fresh region. Windows are bytes; see the options.
  void begin(region_description description, std::uint64_t prefetch_window, std::uint64_t rolling_window);
  /// Lies elsewhere from now on; whoever calls it has moved the bytes.
  void set_homes(std::vector<std::uint16_t> homes);
  /// Is no region any more.
  void end() noexcept { alive = false; }

  /// Of a region that just began: its shadow has pages with bytes of an allocation that is gone, and its home, which
  /// reads as zero, is the valid copy.
  void begin_at_home() noexcept;

  /// Applies advice from now on.
  void advise(hpeAdvice advice);
  /// One block for everything, in the given state.
  void collapse(block_state state);

  [[nodiscard]] bool contains(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - is.base) < is.extent;
  }
  [[nodiscard]] std::uint64_t offset_of(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - is.base);
  }
  [[nodiscard]] std::uint64_t block_of(std::uint64_t offset) const noexcept { return offset / is.block_size; }
  /// The blocks that a range meets.
  [[nodiscard]] block_run blocks_of(byte_range range) const noexcept;
  /// The bytes of some blocks, cut at the extent.
  [[nodiscard]] byte_range bytes_of(block_run run) const noexcept;
  [[nodiscard]] byte_range whole() const noexcept { return {0, is.extent}; }

  /// The home of the byte at offset; memory::host_home for host regions.
  [[nodiscard]] std::uint16_t home_of(std::uint64_t offset) const noexcept;
  /// Where the stretch of one home that begins at offset ends, at most at `limit`.
  [[nodiscard]] std::uint64_t end_of_home(std::uint64_t offset, std::uint64_t limit) const noexcept;
  /// A bit for each device that is the home of some bytes.
  [[nodiscard]] std::uint64_t home_set() const noexcept { return home_set_; }
  /// Whether host and device work use one and the same copy.
  [[nodiscard]] bool single_copy() const noexcept { return is.kind == region_kind::host; }

  void set_state(std::uint64_t index, block_state next) noexcept;

  /// Before a lane looks whether it may open a view; see announcements.
  void open_soon() noexcept {
    if (!open_to_host.load(std::memory_order_relaxed)) open_to_host = true;
  }
  /// Takes that back, if it can.
  void close_to_host() noexcept {
    if (off_device == 0) open_to_host = false;
  }

 private:
  std::uint64_t prefetch_window_ = 0;
  std::uint64_t rolling_window_ = 0;
  std::uint64_t home_set_ = 0;

  void reset_patterns();
};

/// The block size for an allocation: about 1/256 of it, from 64 KiB to 2 MiB; `wished` (0: none) is taken as it is.
[[nodiscard]] std::uint64_t choose_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept;

}  // namespace hpe::coherence
