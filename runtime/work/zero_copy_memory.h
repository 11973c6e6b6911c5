#pragma once

/// Zero-copy memory: host memory that a device uses over the link, at the addresses of the device's data. A piece of a
/// region is either in device memory or in zero-copy memory, and moves between them. The states of its blocks and the
/// shadow stay the same, because zero-copy memory is memory of the home.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/base/error.h"
#include "runtime/coherence/region_table.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/fingerprints.h"
#include "runtime/work/host_spill.h"
#include "runtime/work/sharing.h"

namespace hpe::work {

/// Thread-safe. Only the thread that has the turn on a device (residency::turn) moves pieces of the device.
class zero_copy_memory {
 public:
  zero_copy_memory(const resources& with, sharing& others, fingerprints& changes, counters& count)
      : with_(with), sharing_(others), fingerprints_(changes), count_(count) {}

  struct piece {
    coherence::region* region;
    coherence::byte_range range;
    device::backing_kind to;  // device or zero_copy
    std::uint64_t due = 0;    // in how many steps work uses the piece; 0: now
    bool has_moved = false;
    bool is_movable = true;  // false: in use outside of this process, larger than new pieces, or no longer there
    bool lacks_host_memory = false;  // with HPE_HOST_MEMORY: there is too little host memory for the piece
  };
  /// Waits for the users of the pieces, which must be different pieces of one device, and moves the pieces in both
  /// directions at the same time. The device must have free memory for all pieces that move to it, because the memory
  /// of the other pieces becomes free later. Sets has_moved, is_movable and lacks_host_memory of the pieces. If memory
  /// was too short for a piece, the piece is unchanged; if no piece has moved for this reason, throws
  /// HPE_ERROR_OUT_OF_MEMORY, except if only pieces with lacks_host_memory are left: these pieces can leave to the
  /// shadow, whose bytes can go to the spill file. Returns the size of the pieces that moved to `zero_copy`. The caller
  /// must not hold the mutex of a region.
  std::uint64_t move(std::span<piece> pieces, unsigned home);

  /// Moves groups for bring_in(), and chooses the pieces that make room.
  class exchange {
   public:
    exchange() = default;
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    /// Adds pieces that can leave device memory to a group: about `bytes` bytes, or fewer if there are no more.
    virtual void add_leaving(std::vector<piece>& group, std::uint64_t bytes) = 0;
    /// Moves a group, and returns the number of freed bytes; see zero_copy_memory::move.
    virtual std::uint64_t move(std::span<piece> group) = 0;

   protected:
    ~exchange() = default;
  };
  /// Moves pieces from zero-copy memory to device memory, in groups: the pieces of a group come in while other pieces
  /// make room for the next group. Removes the pieces that have moved from `pieces`; pieces whose `due` is 0 come
  /// first. Returns false if too little device memory can be freed for these.
  bool bring_in(std::vector<piece>& pieces, unsigned home, exchange& with);

  /// Host memory that a piece takes, as far as HPE_HOST_MEMORY limits it. The destructor gives the memory back, unless
  /// keep() was called.
  class host_bytes {
   public:
    host_bytes() noexcept = default;
    host_bytes(host_spill& of, std::uint64_t bytes) : of_(&of), bytes_(bytes) { of.take(bytes); }
    host_bytes(host_bytes&& other) noexcept : of_(other.of_), bytes_(std::exchange(other.bytes_, 0)) {}
    host_bytes& operator=(host_bytes&&) = delete;
    host_bytes(const host_bytes&) = delete;
    host_bytes& operator=(const host_bytes&) = delete;
    ~host_bytes() {
      if (bytes_ != 0) of_->give_back(bytes_);
    }
    void keep() noexcept { bytes_ = 0; }

   private:
    host_spill* of_ = nullptr;
    std::uint64_t bytes_ = 0;
  };
  /// Takes host memory for new zero-copy memory of a device. If there is too little, calls make_room() until there is
  /// enough; if make_room() returns false, throws HPE_ERROR_OUT_OF_MEMORY. The caller must not hold the mutex of a
  /// region, because the thread that makes room in host memory locks regions.
  [[nodiscard]] host_bytes take(unsigned home, std::uint64_t bytes, const std::function<bool()>& make_room);

  /// Whether the region, which may have ended since the piece was found, still has the piece.
  [[nodiscard]] static bool has_piece(const coherence::region& r, std::uint64_t begin, unsigned home)
      HPE_REQUIRES(r.mutex);

 private:
  class closed_pieces;
  /// Takes the host memory that a piece needs; sets lacks_host_memory if there is too little.
  [[nodiscard]] host_bytes take_for(piece& p);
  /// Throws HPE_ERROR_OUT_OF_MEMORY if zero-copy memory of this size would leave too little of the host's memory free.
  /// The device first returns memory that it keeps.
  void require_free(unsigned home, std::uint64_t bytes) const;
  /// Throws HPE_ERROR_OUT_OF_MEMORY if a piece that was to move to device memory is still in zero-copy memory.
  static void require_moved(const piece& p, unsigned home);
  [[nodiscard]] bool may_move(const piece& p, unsigned home) const HPE_REQUIRES(p.region->mutex);
  /// Moves pieces that no queued work uses. The caller holds the mutexes of their regions, so their bytes do not
  /// change.
  std::uint64_t change_memory(std::span<piece> pieces, unsigned home,
                              std::vector<host_bytes>& host) HPE_NO_THREAD_SAFETY_ANALYSIS;
  /// Returns, for each piece, whether the zero-copy memory that the device keeps for the piece has the piece's bytes:
  /// compares fingerprints. The caller holds the mutexes of the regions.
  [[nodiscard]] std::vector<bool> find_standby(std::span<const piece> pieces,
                                               unsigned home) HPE_NO_THREAD_SAFETY_ANALYSIS;
  void begin(device::group_of_moves& moves, const piece& p, unsigned home, bool on_standby) const;
  void note_moved(const piece& p, unsigned home, bool on_standby) HPE_REQUIRES(p.region->mutex);
  /// Takes the fingerprint of a piece that has moved to device memory, if the device keeps its zero-copy memory.
  void note_standby(const piece& p, unsigned home) HPE_REQUIRES(p.region->mutex);

  const resources with_;
  sharing& sharing_;
  fingerprints& fingerprints_;
  counters& count_;
};

}  // namespace hpe::work
