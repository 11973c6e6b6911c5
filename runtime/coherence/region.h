#pragma once

/// One allocation as the coherence protocol sees it: its address and homes, the states of its blocks, and the order of
/// its users. Plain data, protected by one mutex, except where a member's comment says otherwise. The code that changes
/// states is in runtime/fault (accesses of the host), runtime/work (device work) and runtime/core (moves to other
/// homes).
///
/// Region objects are reused, but not destroyed while the runtime exists. Therefore a thread that has found an object
/// through a stale address may still lock the object, and must then check `alive` and the range.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/granule.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/access_order.h"
#include "runtime/coherence/block_states.h"
#include "runtime/coherence/host_granules.h"
#include "runtime/coherence/read_ahead.h"
#include "runtime/coherence/resident_pieces.h"
#include "runtime/coherence/shared_parts.h"
#include "runtime/coherence/write_behind.h"

namespace hpe::memory {
class small_objects;
}

namespace hpe::coherence {

enum class region_kind : std::uint8_t {
  device,   ///< one home
  striped,  ///< a home for each granule
  host      ///< the shadow is the only copy; devices access it
};

/// The description of a new region.
struct region_layout {
  region_kind kind = region_kind::device;
  bool open = false;  ///< host memory whose views are always open (hpeMallocOpen)
  /// Host memory into which the program maps files (hpeMapFile). The granule table names the region only at the
  /// granules where a file is mapped.
  bool mapped = false;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;                 ///< the end of the allocation: `first` + the requested size
  std::uint64_t extent = 0;                ///< mapped bytes: `bytes` rounded up to pages
  std::uint64_t block_size = 0;            ///< a power of two
  std::vector<std::uint16_t> homes;        ///< one for the region, or one for each granule
  std::uint64_t piece_size = 0;            ///< a power of two: data is brought in and evicted in pieces of this size
  std::uint64_t first = 0;                 ///< the allocation's offset in the region; 0 except in memory of other
                                           ///< processes
  memory::small_objects* small = nullptr;  ///< for a slab: the table of the slab's small allocations
  std::uint64_t least_block_size = 0;      ///< the block size if the host's reads are scattered; 0: block_size
  /// The device whose memory is mapped behind the region's last granule (device::backing_kind::common).
  std::optional<std::uint16_t> behind{};

  /// The home of the byte at offset.
  [[nodiscard]] std::uint16_t home_of(std::uint64_t offset) const {
    return homes[homes.size() == 1 ? 0 : offset / granule_size];
  }
};

class region {
 public:
  mutable hpe::mutex mutex;

  bool alive HPE_GUARDED_BY(mutex) = false;     ///< true between begin() and end()
  bool degraded HPE_GUARDED_BY(mutex) = false;  ///< the whole region is one block, because mappings ran out
  /// base, kind, bytes and extent do not change while the region is alive. Code that keeps the region alive may read
  /// them without the mutex.
  region_layout layout;
  hpeAdvice advice HPE_GUARDED_BY(mutex) = HPE_ADVISE_DEFAULT;
  access_order order HPE_GUARDED_BY(mutex);
  resident_pieces resident HPE_GUARDED_BY(mutex);
  host_granules on_host HPE_GUARDED_BY(mutex);
  read_ahead reader HPE_GUARDED_BY(mutex);
  write_behind writer HPE_GUARDED_BY(mutex);
  shared_parts shared HPE_GUARDED_BY(mutex);

  /// The number of uses that the program has acquired (hpeAcquire, hpeEnqueue). While there is one, the home's memory
  /// must stay where it is. Grows only under the mutex. Not set to 0 when the object becomes another region: a use of
  /// the old region may end later.
  std::atomic<std::uint32_t> acquired{0};
  std::atomic<std::uint32_t> shadow_readers{0};  ///< the number of threads that read the shadow (work::shadow_lease)

  /// `all`: the work that may use any region's memory; null in tests.
  explicit region(std::uint32_t number, work_anywhere* all = nullptr)
      : order(all), resident(all), id(number), anywhere_(all) {}
  const std::uint32_t id;

  /// False only if all blocks are in state device and no lane is about to open a view, so that no view has to be
  /// closed. Set to false only under the mutex (close_to_host); may be read without the mutex.
  std::atomic<bool> open_to_host{true};

  /// Turns the object into a new region. All blocks begin in state `initial`: host if layout.open; device if the shadow
  /// still contains bytes of a freed allocation (the home then reads as zero); otherwise fresh. At first the region has
  /// no device memory (resident). Both windows are in bytes (HPE_PREFETCH_WINDOW, HPE_ROLLING_WINDOW).
  void begin(region_layout description, std::uint64_t prefetch_window, std::uint64_t rolling_window,
             block_state initial = block_state::fresh) HPE_REQUIRES(mutex);
  /// Changes the homes. The caller must have moved the bytes.
  void set_homes(std::vector<std::uint16_t> homes) HPE_REQUIRES(mutex);
  /// A number that changes whenever homes change or the object becomes another region. No two regions share a number.
  [[nodiscard]] std::uint64_t homes_version() const noexcept HPE_REQUIRES(mutex) { return homes_version_; }
  /// A number that changes whenever a block enters state host because the host is about to write, and whenever device
  /// work that writes has been queued. A copy of the region elsewhere stays valid as long as the number is the same, if
  /// all blocks were in state device or shared when the copy was made.
  [[nodiscard]] std::uint64_t contents_version() const noexcept HPE_REQUIRES(mutex) {
    return contents_version_ + (anywhere_ != nullptr ? anywhere_->uses() : 0);
  }
  /// Call this when device work that writes to the region was queued.
  void note_write() noexcept HPE_REQUIRES(mutex) { ++contents_version_; }
  /// Ends the region; the object may be reused.
  void end() noexcept HPE_REQUIRES(mutex) { alive = false; }

  /// Sets the advice, and forgets the access patterns recognised so far.
  void advise(hpeAdvice advice) HPE_REQUIRES(mutex);

  /// The states of the region's blocks.
  [[nodiscard]] const block_states& blocks() const noexcept HPE_REQUIRES(mutex) { return blocks_; }
  [[nodiscard]] block_state state(std::uint64_t block) const noexcept HPE_REQUIRES(mutex) { return blocks_[block]; }
  /// States change only through transition() and begin_fetch(); see block_states.
  void transition(block_run run, block_event event) noexcept HPE_REQUIRES(mutex);
  void begin_fetch(block_run run, block_event event, std::uint32_t number) noexcept HPE_REQUIRES(mutex);
  void set_rolled(block_run run, bool rolled) noexcept HPE_REQUIRES(mutex) { blocks_.set_rolled(run, rolled); }
  /// Records that bytes were copied to the shadow without a change of any block's state.
  void use_shadow() noexcept HPE_REQUIRES(mutex) { blocks_.use_shadow(); }
  /// Makes the whole region one block. All its blocks must be in the same state, which does not change.
  void collapse() HPE_REQUIRES(mutex);
  /// Cuts each block into blocks of layout.least_block_size with the same state, and forgets the access patterns
  /// recognised so far. Returns how many blocks each old block became; 1: nothing changed.
  std::uint64_t refine() HPE_REQUIRES(mutex);

  [[nodiscard]] bool contains(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - layout.base) < layout.extent;
  }
  [[nodiscard]] std::uint64_t offset_of(const void* p) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - layout.base);
  }
  [[nodiscard]] std::uint64_t block_of(std::uint64_t offset) const noexcept { return offset / layout.block_size; }
  /// The blocks that overlap a range.
  [[nodiscard]] block_run blocks_of(byte_range range) const noexcept;
  /// The bytes of a run of blocks, up to the extent.
  [[nodiscard]] byte_range bytes_of(block_run run) const noexcept;
  [[nodiscard]] byte_range whole() const noexcept { return {0, layout.extent}; }

  /// The blocks that are entirely inside a range.
  [[nodiscard]] block_run blocks_within(byte_range range) const noexcept HPE_REQUIRES(mutex);
  /// The blocks that work overwrites if it writes all bytes of a range: those inside the range, and the last block if
  /// the range contains the block's bytes of the allocation.
  [[nodiscard]] block_run blocks_overwritten_by(byte_range range) const noexcept HPE_REQUIRES(mutex);
  [[nodiscard]] block_run all_blocks() const noexcept HPE_REQUIRES(mutex) { return {0, blocks_.count()}; }

  /// The home of the byte at offset; memory::host_home for host regions.
  [[nodiscard]] std::uint16_t home_of(std::uint64_t offset) const noexcept;
  /// The size of the region's device memory: whole granules.
  [[nodiscard]] std::uint64_t bytes_at_homes() const noexcept;
  /// Returns the end of the longest range that begins at `offset` and has one home, but at most `limit`.
  [[nodiscard]] std::uint64_t end_of_home(std::uint64_t offset, std::uint64_t limit) const noexcept;
  /// Returns the end of a part of a submission that begins at `begin`. The part ends at `limit` at the latest, has at
  /// most `most` bytes and one home. If blocks end inside the part, the part ends at the end of a block.
  [[nodiscard]] std::uint64_t end_of_part(std::uint64_t begin, std::uint64_t limit, std::uint64_t most) const noexcept;
  /// Calls visit(home, part) for each part of a range that has one home.
  template <class Visit>
  void for_each_home(byte_range range, const Visit& visit) const {
    for (byte_range part = range; part.begin < range.end; part.begin = part.end) {
      part.end = end_of_home(part.begin, range.end);
      visit(home_of(part.begin), part);
    }
  }
  /// A bit for each device that is the home of some bytes of the region.
  [[nodiscard]] std::uint64_t home_set() const noexcept { return home_set_; }
  /// Whether CPU code and device work use the same single copy.
  [[nodiscard]] bool single_copy() const noexcept { return layout.kind == region_kind::host; }
  /// Whether the program itself orders CPU code and work that is announced or concurrent: it does so for host memory.
  /// Mapped files are ordered like device memory.
  [[nodiscard]] bool ordered_by_program() const noexcept { return single_copy() && !layout.mapped; }

  /// Whether work that may use all memory needs nothing from this region: the devices have all its memory and the only
  /// valid copy of its bytes, or it is memory that the program itself orders. no_zero_copy: whether all of the memory
  /// must be device memory.
  [[nodiscard]] bool is_settled(bool no_zero_copy) const HPE_REQUIRES(mutex);
  /// To be called before a thread that holds the mutex asks the order for the region's users and then changes more than
  /// this class changes (work_anywhere).
  void unsettle() noexcept {
    if (anywhere_ != nullptr) anywhere_->unsettle();
  }

  /// A lane calls this function before it checks whether announcements allow the lane to open a view.
  void open_soon() noexcept {
    if (!open_to_host.load(std::memory_order_relaxed)) open_to_host = true;
  }
  /// Undoes open_soon() if all blocks are in state device.
  void close_to_host() noexcept HPE_REQUIRES(mutex) {
    if (blocks_.off_device() == 0) open_to_host = false;
  }

 private:
  work_anywhere* const anywhere_;
  block_states blocks_ HPE_GUARDED_BY(mutex);
  std::uint64_t prefetch_window_ = 0;
  std::uint64_t rolling_window_ = 0;
  std::uint64_t home_set_ = 0;
  std::uint64_t homes_version_ HPE_GUARDED_BY(mutex) = 0;
  std::uint64_t contents_version_ HPE_GUARDED_BY(mutex) = 0;  // never reset, so that regions share no number

  void reset_patterns() HPE_REQUIRES(mutex);
};

/// The block size of an allocation: `wished` or, if that is 0, about 1/256 of the bytes, between 64 KiB and 2 MiB.
[[nodiscard]] std::uint64_t choose_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept;
/// The block size to which a region may be refined: `wished` or, if that is 0, about 1/16384 of the bytes, between 64
/// KiB and 2 MiB. Each block may need its own mapping, so the number of blocks is limited.
[[nodiscard]] std::uint64_t choose_least_block_size(std::uint64_t bytes, std::uint64_t wished) noexcept;

}  // namespace hpe::coherence
