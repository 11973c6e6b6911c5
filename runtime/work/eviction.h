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
#include "runtime/coherence/use_cycle.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/fingerprints.h"
#include "runtime/work/sharing.h"
#include "runtime/work/zero_copy_memory.h"

namespace hpe::work {

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
  [[nodiscard]] std::optional<coherence::use_cycle::predicted_use> upcoming(unsigned home) const;
  void pass_upcoming(unsigned home);

  /// The pieces of a device that can be evicted, in the order in which supply evicts them.
  class supply final : private zero_copy_memory::exchange {
   public:
    /// `now`: the time of the work that needs memory; pieces with this time stay. `wanted`: the bytes that it needs.
    supply(eviction& of, unsigned home, std::uint64_t now, std::uint64_t wanted)
        : of_(of), home_(home), now_(now), wanted_(wanted) {}

    /// Frees at least `bytes` bytes, or fewer if no more data can be evicted. Returns the number of freed bytes.
    std::uint64_t free(std::uint64_t bytes);
    /// Moves pieces from zero-copy memory to device memory: those that the work needs (`due` is 0), and after them, in
    /// a cycle, pieces that the next work uses. Other pieces move to zero-copy memory at the same time. Returns false
    /// if too little device memory can be freed for the pieces that the work needs.
    bool bring_in(std::vector<zero_copy_memory::piece>& pieces);
    /// Whether free() can evict the next piece without a wait. Begins to copy the next pieces to the host.
    [[nodiscard]] bool is_at_hand();
    /// Like free, but evicts only data that can be evicted without a wait, and that no work uses in the next `steps`
    /// steps. Only while the device's work repeats itself.
    std::uint64_t free_at_once(std::uint64_t bytes, std::uint64_t steps);

   private:
    bool look_for_candidates();
    std::uint64_t evict_next();
    /// Adds the pieces in zero-copy memory that work uses in the next steps, as long as other pieces are used later.
    void add_upcoming(std::vector<zero_copy_memory::piece>& pieces);
    /// Adds the next pieces that can be evicted to a group of pieces that move: about `bytes` bytes.
    void add_leaving(std::vector<zero_copy_memory::piece>& group, std::uint64_t bytes) override;
    /// Moves a group. A piece that cannot move to zero-copy memory, or for which HPE_HOST_MEMORY leaves too little
    /// memory, is evicted to the shadow instead. Returns the number of freed bytes.
    std::uint64_t move(std::span<zero_copy_memory::piece> group) override;
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

  /// Whether hpe has begun to evict data. Before, all data that has memory is accessible to the device.
  [[nodiscard]] bool has_begun() const noexcept { return has_begun_.load(); }
  /// For work that may use memory that the work does not name (device_access::only_mapped). Call this before the work
  /// is queued if has_begun(), and before an eviction that makes room for the work. From the first call on, evicted
  /// pieces move to zero-copy memory if there is enough host memory, so that the device can access all bytes at their
  /// addresses; residency::map_rest gives other pieces memory before the next work of this kind.
  void keep_mapped() noexcept {
    if (!keeps_mapped()) keeps_mapped_ = true;
  }
  [[nodiscard]] bool keeps_mapped() const noexcept { return keeps_mapped_.load(std::memory_order_relaxed); }
  [[nodiscard]] zero_copy_memory& zero_copy() noexcept { return zero_copy_; }

  /// Waits for the users of a piece and frees the piece's memory: moves the piece to zero-copy memory after
  /// keep_mapped() if possible, and otherwise waits for the piece's copy to the host. Returns the number of freed
  /// bytes. With HPE_HOST_MEMORY, too little memory for zero-copy memory is no failure.
  std::uint64_t evict(coherence::region& r, coherence::byte_range piece, unsigned home);
  /// Evicts at least `bytes` bytes from zero-copy memory of a device, or fewer; nothing that the work with the time
  /// `now` uses. Returns how many bytes it evicted.
  std::uint64_t free_zero_copy(unsigned home, std::uint64_t now, std::uint64_t bytes);
  /// Returns the size of all zero-copy memory.
  [[nodiscard]] std::uint64_t zero_copy_bytes() const;

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
    missing_pages,  ///< the host's pages are not in memory; the caller must call host_spill::bring
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
  zero_copy_memory zero_copy_;
  std::atomic<bool> unsure_{false};  // there was work with unsure accesses
  std::atomic<bool> has_begun_{false}, keeps_mapped_{false};
  struct recent_work {
    hpe::mutex mutex;  // taken after mutexes of regions
    coherence::use_cycle steps HPE_GUARDED_BY(mutex);
    std::atomic<bool> predicts{false};
  };
  std::vector<std::unique_ptr<recent_work>> recent_;  // by device
};

}  // namespace hpe::work
