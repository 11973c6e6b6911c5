#pragma once

/// Decides which data is in device memory if all data together is larger than that memory. Work names the data that it
/// uses, and hpe brings this data into device memory (bring_in). For this, hpe evicts other data (class eviction).
///
/// Data that does not fit. If the data of one piece of work does not fit into device memory at once, the work fails,
/// unless it may use zero-copy memory. In this case, hpe evicts all other data, and the rest of the work's data gets
/// host memory at the same addresses (device::backing_kind::zero_copy), which the device accesses over the link. The
/// largest regions are the last to get device memory, because work is likely to use the bytes of small regions more
/// often. Only work that may use zero-copy memory runs on such pieces; for other work, hpe first brings them into
/// device memory.
///
/// Data that work may use without naming it (device_access::only_mapped): a kernel may follow pointers that lie in
/// memory. hpe brings the data that such work names into device memory. All other data must have memory at its
/// addresses, so evicted pieces move to zero-copy memory (eviction::keep_mapped, zero_copy_memory), after all queued
/// work that may use them. Such work counts as a user of all data, so no piece moves while it runs. If HPE_HOST_MEMORY
/// leaves too little memory for zero-copy memory, pieces are evicted to the shadow instead, whose bytes can go to the
/// spill file (host_spill); they get memory again before the next work of this kind, or this work is refused.
///
/// Progress. Threads that must wait for device memory take turns: at any time, one thread for each device. A turn lasts
/// until the regions of the thread's work are locked. During the turn, other threads cannot evict data, and a locked
/// region keeps its memory. During its turn, a thread waits only for queued device work. New work cannot use a piece
/// that is about to lose its memory; the thread of work that needs the piece must take a turn. So each turn ends, and
/// then all data of its work is in place.
///
/// Other processes. If processes share a device (node::device_share), a thread that finds no free memory first waits
/// for the turn of its process, and then takes its own turn. The thread asks the other processes for memory before it
/// evicts data of its own process. For each shared device, this process has a thread that gives memory back when other
/// processes ask for it.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/coherence/region_table.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/crew.h"
#include "runtime/work/device_room.h"
#include "runtime/work/eviction.h"
#include "runtime/work/fetcher.h"
#include "runtime/work/host_spill.h"
#include "runtime/work/sharing.h"

namespace hpe::work {

/// Thread-safe.
class residency {
 public:
  residency(device::device_set& devices, transfer::engine& engine, host_view& views, coherence::region_table& regions,
            host_spill& host, sharing& others, counters& count);
  residency(const residency&) = delete;
  residency& operator=(const residency&) = delete;
  ~residency();

  /// The right of one thread to evict data from device memory. The destructor ends the turn.
  class turn {
   public:
    turn() noexcept = default;
    ~turn() { end(); }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    friend class residency;
    /// `contended`: the devices for which this process must have its turn as well (one bit for each device).
    void begin(residency& at, std::uint64_t devices, std::uint64_t contended) HPE_NO_THREAD_SAFETY_ANALYSIS;
    void end() noexcept HPE_NO_THREAD_SAFETY_ANALYSIS;
    residency* at_ = nullptr;
    std::uint64_t devices_ = 0;                     // a bit for each device
    std::map<unsigned, std::uint64_t> of_process_;  // turns of the process by device (node::device_share::turn)
  };

  /// An allocation that is being created or removed: its device memory is neither free nor used by data. If a thread
  /// finds no other memory, it waits until these changes have ended before its work is refused. The thread that makes
  /// the change never waits for a turn during the change.
  class change {
   public:
    explicit change(residency& at) noexcept : at_(at) { at.changes_begun_.fetch_add(1); }
    ~change() {
      at_.changes_ended_.fetch_add(1);
      at_.changes_ended_.notify_all();
    }
    change(const change&) = delete;
    change& operator=(const change&) = delete;

   private:
    residency& at_;
  };

  /// Records that a piece of work is about to use this data. To be called once for each piece of work. The caller holds
  /// the mutexes of the regions.
  void note_step(std::span<const device_access> accesses) noexcept;

  /// Where the data of work must be.
  enum class place : std::uint8_t { device_memory, zero_copy_too };

  /// Whether device memory was too short for some work. Before, all data stays in device memory, and its uses need not
  /// be recorded.
  [[nodiscard]] bool is_short() const noexcept { return short_.load(std::memory_order_relaxed); }

  /// Whether all data of the accesses is in place; records its use. The caller holds the mutexes of the regions.
  [[nodiscard]] bool has(std::span<const device_access> accesses, place allowed);

  /// Brings the data of the accesses into device memory (or zero-copy memory; data that is only mapped stays where it
  /// is, and gets memory if it has none), and uploads the bytes that the work
  /// reads. Waits until enough device memory is free. The caller must not hold the mutex of a region. Afterwards the
  /// caller must lock the regions and call has() again, and must keep the turn until then. If the accesses need more
  /// memory than a device has, and, with zero_copy_too, more than the host has free, throws HPE_ERROR_OUT_OF_MEMORY,
  /// with a message that contains the sizes.
  void bring_in(std::span<const device_access> accesses, place allowed, turn& mine);

  /// See device_room.
  [[nodiscard]] std::uint64_t most_for_a_copy(const coherence::region& r) const { return room_.most_for_a_copy(r); }

  /// Leaves this many bytes of a device's memory to the driver, which allocates them for the program: they stay on the
  /// device. Evicts data if too little memory is free. Throws HPE_ERROR_OUT_OF_MEMORY if the device gives this process
  /// fewer bytes in all; then evicts nothing. Asks no other process for memory. The caller must hold no mutex of a
  /// region, and no turn.
  void withhold(unsigned home, std::uint64_t bytes);
  /// Ends a withhold() of this many bytes.
  void restore(unsigned home, std::uint64_t bytes) noexcept {
    room_.restore(home, bytes);
    devices_.at(home).restore(bytes);
  }
  /// Returns how many bytes of a device are withheld now.
  [[nodiscard]] std::uint64_t withheld(unsigned home) const noexcept { return room_.withheld(home); }

  /// Call this before host memory (hpeMallocHost) is allocated: evicts data from zero-copy memory if HPE_HOST_MEMORY
  /// leaves too little memory otherwise, after the work that uses this data. The caller must hold no mutex of a region,
  /// no turn, and no change.
  void make_room_on_host(std::uint64_t bytes);

  /// See device_room.
  [[nodiscard]] std::uint64_t most_of(unsigned home) const { return room_.most_of(home); }
  [[nodiscard]] std::uint64_t piece_size(std::span<const std::uint16_t> homes) const {
    return room_.piece_size(homes, host_.most_at_once());
  }

 private:
  /// A part of a region that needs device memory.
  struct gap {
    coherence::region* region;
    coherence::byte_range range;
    std::uint16_t home;
    coherence::byte_range read;  // bytes whose contents the work needs
    bool write = false;          // the work writes some of the bytes
    std::uint64_t region_bytes = 0;
    std::uint64_t due = 0;  // for data that is fetched ahead: the step that uses it (eviction::steps)
  };
  struct plan;
  /// The bytes of a region that must be in device memory for work that names the bytes `named`.
  [[nodiscard]] static coherence::byte_range needed(const coherence::region& r, coherence::byte_range named)
      HPE_REQUIRES(r.mutex);
  [[nodiscard]] static std::uint64_t homes_of(std::span<const device_access> accesses);
  [[nodiscard]] plan make_plan(std::span<const device_access> accesses, std::uint64_t now) const;
  /// Makes the plan for accesses, and throws if they do not fit into their devices; see bring_in.
  [[nodiscard]] plan make_fitting_plan(std::span<const device_access> accesses, place allowed);
  /// For work that does not fit: evicts pieces of the largest region that the work uses, if gaps of smaller regions
  /// need their memory. Returns whether it evicted anything; the plan is then outdated.
  bool make_room_for_smaller(const plan& what);
  enum class outcome : std::uint8_t {
    done,
    contended,  ///< memory of other processes is needed, so this process must have its turn
    stopped     ///< memory of other processes is needed, but the process that has it is stopped
  };
  struct progress {
    outcome what = outcome::done;
    unsigned home = 0;
  };
  /// Throws HPE_ERROR_OUT_OF_MEMORY if the devices and the limit of host memory (HPE_HOST_MEMORY) cannot give memory to
  /// all data of the accesses at the same time. Moves nothing, so work that is refused here costs no transfers.
  void require_addresses(std::span<const device_access> accesses, place allowed);
  /// Makes memory that work may use without naming it accessible to the device.
  void map_rest(std::span<const device_access> accesses);
  void start_helpers() noexcept;
  /// Maps device memory for the gaps of a plan, and moves its pieces in zero-copy memory to device memory.
  [[nodiscard]] progress fill_all(const plan& what, place allowed, const turn& mine);
  /// Maps memory for some gaps of a plan, all on the same device, and queues the uploads.
  [[nodiscard]] progress fill(std::span<const gap* const> gaps, const plan& of, place allowed, const turn& mine);
  [[nodiscard]] progress move_in(const plan& what, place allowed, const turn& mine);
  /// `ended`: the value of changes_ended_ before the search for memory for the gap began.
  [[nodiscard]] outcome make_room(eviction::supply& from, const gap& g, std::uint64_t missing, const turn& mine,
                                  std::uint64_t ended);
  /// Waits for the end of a change, unless more than `ended` changes have ended already. Returns false if no change is
  /// in progress.
  bool wait_for_change(std::uint64_t ended) const noexcept;
  /// Evicts at least `bytes` bytes if possible. Returns how many bytes it evicted.
  std::uint64_t evict(unsigned home, std::uint64_t bytes) HPE_NO_THREAD_SAFETY_ANALYSIS;
  /// Evicts data whose memory another process needs; see evict.
  std::uint64_t give_back(unsigned home, std::uint64_t bytes) noexcept;
  /// Whether queued work uses data on the device.
  [[nodiscard]] bool is_busy(unsigned home) const;
  /// Maps memory for a gap, unless the region has changed since the gap was found. Returns false if too little device
  /// memory is free.
  bool map(const gap& g, std::uint64_t now);
  /// Queues the uploads into gaps for which memory was mapped. hpe maps memory for the next gaps while these uploads
  /// run.
  void upload(std::vector<gap>& gaps);
  /// See fetcher::bring_in and fetcher::finish.
  bool fetch(unsigned home, const coherence::use_cycle::predicted_use& use, std::optional<eviction::supply>& from);
  void finish_fetch(unsigned home);
  /// Maps zero-copy memory for a gap of a plan. If the host has too little free memory, evicts other data from
  /// zero-copy memory first, unless the work may use other data too. Throws HPE_ERROR_OUT_OF_MEMORY.
  void fill_with_zero_copy(const gap& g, const plan& of);
  /// Adds the mapped piece of a gap to the region, and uploads into it. If that fails, unmaps the piece.
  void add_piece(coherence::region& r, const gap& g, std::uint64_t now, device::backing_kind where)
      HPE_REQUIRES(r.mutex);
  /// Whether the region still has the gap.
  [[nodiscard]] static bool is_open(const coherence::region& r, const gap& g) HPE_REQUIRES(r.mutex);
  /// Whether device memory is mapped for the gap.
  [[nodiscard]] static bool has_piece(const coherence::region& r, const gap& g) HPE_REQUIRES(r.mutex);
  [[nodiscard]] resources with() { return {devices_, engine_, views_, *this, host_}; }

  device::device_set& devices_;
  transfer::engine& engine_;
  host_view& views_;
  coherence::region_table& regions_;
  host_spill& host_;
  sharing& sharing_;
  counters& count_;
  device_room room_;
  eviction eviction_;
  std::atomic<std::uint64_t> changes_begun_{0};
  std::atomic<std::uint64_t> changes_ended_{0};
  std::atomic<bool> short_{false};  // see is_short()
  std::atomic<std::uint64_t> clock_{0};
  std::vector<std::unique_ptr<mutex>> turns_;  // by device; taken in ascending order, before mutexes of regions
  std::vector<std::vector<gap>> fetched_;      // by device; gaps for the fetcher's next uploads
  std::atomic<bool> ending_{false};
  std::vector<std::thread> servers_;  // serve other processes; one thread for each shared device
  std::once_flag helpers_start_;
  crew helpers_;     // for data of several devices
  fetcher fetcher_;  // the last member, because its thread uses the others
};

}  // namespace hpe::work
