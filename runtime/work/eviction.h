#pragma once

/// Evicts data from device memory. Before a piece of a region loses its memory, the bytes whose only valid copy is on
/// the device are copied to the shadow, and the piece's blocks change to state host
/// (coherence::block_event::brought_to_host), as if the host had written them.
///
/// If the work of the device repeats itself (use_cycle), hpe evicts the data whose next use is furthest away, and
/// prefers data that no queued work uses; otherwise it evicts the least recently used data.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/coherence/region_table.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/fingerprints.h"
#include "runtime/work/sharing.h"
#include "runtime/work/use_cycle.h"

namespace hpe::work {

/// Moves pieces of regions between device memory and zero-copy memory. The addresses of the bytes, the states of their
/// blocks and the host's copy stay the same, because zero-copy memory is memory of the home.
///
/// Thread-safe. Only the thread that has the turn on a device (residency::turn) moves pieces of the device.
class piece_mover {
 public:
  piece_mover(const resources& with, sharing& others, fingerprints& changes, counters& count)
      : with_(with), sharing_(others), fingerprints_(changes), count_(count) {}

  struct piece {
    coherence::region* region;
    coherence::byte_range range;
    device::backing_kind to;  // device or zero_copy
    std::uint64_t due = 0;    // in how many steps work uses the piece; 0: now
    bool has_moved = false;
    bool is_movable = true;  // false: in use outside of this process, larger than new pieces, or no longer there
  };
  /// Waits for the users of the pieces, which must be different pieces of one device, and moves the pieces in both
  /// directions at the same time. The device must have free memory for all pieces that move to it, because the memory
  /// of the other pieces becomes free later. Sets has_moved and is_movable of the pieces. If memory was too short for a
  /// piece, the piece is unchanged; if no piece has moved for this reason, throws HPE_ERROR_OUT_OF_MEMORY. Returns the
  /// size of the pieces that moved to `zero_copy`. The caller must not hold the mutex of a region.
  std::uint64_t move(std::span<piece> pieces, unsigned home);

  /// Throws HPE_ERROR_OUT_OF_MEMORY if a piece that was to move to device memory is still in zero-copy memory.
  void require_moved(const piece& p, unsigned home) const;

  /// Whether zero-copy memory of this size for a device leaves enough of the host's memory free. If it does not, the
  /// device first returns memory that it keeps.
  [[nodiscard]] bool host_has_room(unsigned home, std::uint64_t bytes) const;
  /// How many bytes of the host's memory zero-copy memory leaves free.
  static constexpr std::uint64_t least_free_on_host = std::uint64_t{512} << 20;

  /// Whether the region, which may have ended since the piece was found, still has the piece.
  [[nodiscard]] static bool has_piece(const coherence::region& r, std::uint64_t begin, unsigned home)
      HPE_REQUIRES(r.mutex);

 private:
  class closed_pieces;
  class host_bytes;
  [[nodiscard]] bool may_move(const piece& p, unsigned home) const HPE_REQUIRES(p.region->mutex);
  /// Moves pieces that no queued work uses. The caller holds the mutexes of their regions, so their bytes do not
  /// change. `host`: for each piece, the host memory that it needs outside of the device, or why there is none.
  std::uint64_t change_memory(std::span<piece> pieces, unsigned home,
                              std::vector<host_bytes>& host) HPE_NO_THREAD_SAFETY_ANALYSIS;
  /// Returns, for each piece, whether the zero-copy memory that the device keeps for the piece has the piece's bytes:
  /// compares fingerprints. The caller holds the mutexes of the regions.
  [[nodiscard]] std::vector<bool> find_standby(std::span<const piece> pieces,
                                               unsigned home) HPE_NO_THREAD_SAFETY_ANALYSIS;
  [[nodiscard]] std::unique_ptr<device::move_of_bytes> begin(const piece& p, unsigned home, bool on_standby);
  void note_moved(const piece& p, unsigned home, bool on_standby) HPE_REQUIRES(p.region->mutex);
  /// Takes the fingerprint of a piece that has moved to device memory, if the device keeps its zero-copy memory.
  void note_standby(const piece& p, unsigned home) HPE_REQUIRES(p.region->mutex);

  const resources with_;
  sharing& sharing_;
  fingerprints& fingerprints_;
  counters& count_;
};

/// Thread-safe. Only the thread that has the turn on a device (residency::turn) evicts data from it.
class eviction {
  /// How far a piece is on its way to the host.
  enum class progress : std::uint8_t {
    ready,    // no queued work uses the piece, and the host has its bytes
    copying,  // the copy to the host is running
    idle,     // no queued work uses the piece; its bytes must be copied to the host
    in_use
  };
  struct candidate {
    coherence::region* region;
    coherence::byte_range range;
    std::uint64_t used;              // resident_piece::used
    std::uint64_t age;               // of two pieces, the piece with the larger age should be evicted first
    progress is = progress::in_use;  // only in a cycle
  };

 public:
  eviction(const resources& with, coherence::region_table& regions, sharing& others, counters& count);

  /// Records the data that a piece of work is about to use. The caller holds the mutexes of the regions.
  void note_step(std::span<const device_access> accesses) noexcept;

  /// Call this when a piece has got device memory, after the uploads of its bytes. If hpe does not know some of the
  /// program's kernels, takes the piece's fingerprint.
  void note_piece(coherence::region& r, std::uint64_t begin) HPE_REQUIRES(r.mutex);

  /// Whether the work of a device repeats itself, so that its next uses of memory are predicted. Costs one load.
  [[nodiscard]] bool predicts(unsigned home) const noexcept {
    return recent_[home]->predicts.load(std::memory_order_relaxed);
  }
  /// The number of pieces of work that note_step has recorded for a device.
  [[nodiscard]] std::uint64_t steps(unsigned home) const;
  /// The number of steps in the cycle of a device's work; 0 if no cycle is known.
  [[nodiscard]] std::uint64_t period(unsigned home) const;
  /// See use_cycle. The caller must not hold the mutex of a region.
  [[nodiscard]] std::optional<use_cycle::predicted_use> upcoming(unsigned home) const;
  void pass_upcoming(unsigned home);

  /// The pieces of a device that can be evicted, in the order in which supply evicts them.
  class supply {
   public:
    /// `now`: the time of the work that needs memory; pieces with this time stay. `wanted`: the bytes that it needs.
    supply(eviction& of, unsigned home, std::uint64_t now, std::uint64_t wanted)
        : of_(of), home_(home), now_(now), wanted_(wanted) {}

    /// Frees at least `bytes` bytes, or fewer if no more data can be evicted. Returns the number of freed bytes.
    std::uint64_t free(std::uint64_t bytes);
    /// Moves pieces from zero-copy memory to device memory: those that the work needs (`due` is 0), and after them, in
    /// a cycle, pieces that the next work uses. Other pieces move to zero-copy memory at the same time. Returns false
    /// if too little device memory can be freed for the pieces that the work needs.
    bool bring_in(std::vector<piece_mover::piece>& pieces);
    /// Whether free() can evict the next piece without a wait. Begins to copy the next pieces to the host.
    [[nodiscard]] bool is_at_hand();
    /// Like free, but evicts only data that can be evicted without a wait, and that no work uses in the next `steps`
    /// steps. Only while the device's work repeats itself.
    std::uint64_t free_at_once(std::uint64_t bytes, std::uint64_t steps);

   private:
    bool look_for_candidates();
    std::uint64_t evict_next();
    /// Adds the pieces in zero-copy memory that work uses in the next steps, as long as other pieces are used later.
    void add_upcoming(std::vector<piece_mover::piece>& pieces);
    /// Adds the next pieces that can be evicted to a group of pieces that move: about `bytes` bytes.
    void add_leaving(std::vector<piece_mover::piece>& group, std::uint64_t bytes);
    /// Moves a group. A piece that cannot move to zero-copy memory is evicted to the shadow instead. Returns the number
    /// of freed bytes.
    std::uint64_t move(std::span<piece_mover::piece> group);
    /// How many bytes more than wanted_ are copied to the host before their memory is needed.
    [[nodiscard]] std::uint64_t spare() const;
    void copy_ahead();
    /// Begins to copy a candidate to the host. Returns false if its fingerprint is not known yet.
    bool copy_ahead(const candidate& c);

    eviction& of_;
    const unsigned home_;
    const std::uint64_t now_;
    std::uint64_t wanted_;  // bytes that the work still needs
    std::vector<candidate> order_;
    std::size_t next_ = 0;                // the next piece to evict
    std::size_t copied_ = 0;              // the first piece whose copy to the host is not queued yet
    std::uint64_t ahead_ = 0;             // bytes from next_ to copied_
    std::vector<std::size_t> comparing_;  // the pieces before copied_ whose fingerprints are not known yet
  };

  /// Call this before the first work that may use memory that it does not name (device_access::only_mapped). From then
  /// on, evicted pieces move to zero-copy memory, so that the device can access all bytes at their addresses.
  void keep_mapped() noexcept {
    if (!keeps_mapped()) keeps_mapped_ = true;
  }
  [[nodiscard]] bool keeps_mapped() const noexcept { return keeps_mapped_.load(std::memory_order_relaxed); }
  [[nodiscard]] piece_mover& mover() noexcept { return mover_; }

  /// Waits for the users of a piece and frees the piece's memory: moves the piece to zero-copy memory after
  /// keep_mapped() if possible, and otherwise waits for the piece's copy to the host. Returns the number of freed
  /// bytes.
  std::uint64_t evict(coherence::region& r, coherence::byte_range piece, unsigned home);
  /// Evicts at least `bytes` bytes from zero-copy memory of a device, or fewer; nothing that the work with the time
  /// `now` uses. Returns how many bytes it evicted.
  std::uint64_t free_zero_copy(unsigned home, std::uint64_t now, std::uint64_t bytes);

  /// Whether any block of the bytes is in a state for which `is` returns true.
  [[nodiscard]] static bool any_block(const coherence::region& r, coherence::byte_range bytes,
                                      bool (*is)(coherence::block_state) noexcept) HPE_REQUIRES(r.mutex);

 private:
  [[nodiscard]] progress progress_of(const coherence::region& r, coherence::byte_range piece) const
      HPE_REQUIRES(r.mutex);
  /// Whether the bytes must be copied to the host before they are evicted.
  [[nodiscard]] bool needs_copy(const coherence::region& r, coherence::byte_range bytes) const HPE_REQUIRES(r.mutex);
  /// Whether the host's copy of a piece's bytes is valid: compares fingerprints.
  enum class comparison : std::uint8_t { same, different, unknown };
  [[nodiscard]] comparison compare(const coherence::region& r, std::uint64_t begin) const HPE_REQUIRES(r.mutex);
  /// Queues the copy of a piece to the host, unless the host's copy is valid.
  enum class copy_out_result : std::uint8_t {
    copied,         ///< the host has the bytes, or will have them when the copies are done
    missing_pages,  ///< the host's pages are not in memory; the caller must call host_memory::bring
    comparing       ///< call again when the piece's fingerprint was computed
  };
  copy_out_result copy_out(coherence::region& r, std::uint64_t begin) HPE_REQUIRES(r.mutex);
  std::uint64_t evict_to_shadow(coherence::region& r, std::uint64_t begin, unsigned home);
  std::uint64_t evict_all(coherence::region& r, unsigned home) HPE_REQUIRES(r.mutex);
  void unmap(coherence::region& r, std::uint64_t begin) HPE_REQUIRES(r.mutex);
  /// Returns pieces of the device that can be evicted, in the order of their eviction: about 2 * (`wanted` + `spare`)
  /// bytes in all, or fewer if the device has fewer. The first `wanted` bytes are to be evicted now, and the next
  /// `spare` bytes are to be copied to the host.
  [[nodiscard]] std::vector<candidate> candidates(unsigned home, std::uint64_t now, std::uint64_t wanted,
                                                  std::uint64_t spare) const;
  /// Returns all pieces of the device that can be evicted. Sets has_cycle to whether the device's work repeats itself.
  [[nodiscard]] std::vector<candidate> all_candidates(unsigned home, std::uint64_t now, bool& has_cycle) const;

  const resources with_;
  coherence::region_table& regions_;
  sharing& sharing_;
  counters& count_;
  fingerprints fingerprints_;
  piece_mover mover_;
  std::atomic<bool> unsure_{false};  // there was work with unsure accesses
  std::atomic<bool> keeps_mapped_{false};
  struct recent_work {
    hpe::mutex mutex;  // taken after mutexes of regions
    use_cycle steps HPE_GUARDED_BY(mutex);
    std::atomic<bool> predicts{false};
  };
  std::vector<std::unique_ptr<recent_work>> recent_;  // by device
};

}  // namespace hpe::work
