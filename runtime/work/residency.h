#pragma once

/// Which data is in device memory, where all data together is larger than that memory. Device memory comes to the data
/// that work names (bring_in), and is taken from data that was not used for the longest time. Before a piece of a
/// region loses its memory, the bytes that only the device has are copied to the shadow, and its blocks become the
/// host's (coherence::block_event::brought_to_host): for the protocol, the host has written them.
///
/// Progress. Threads that must wait for device memory take turns, one at a time for each device. A turn lasts until the
/// regions of the thread's work are locked; other threads take no memory away meanwhile, and a locked region keeps its
/// memory. A thread waits in its turn only for device work that is queued. A piece that is about to lose its memory is
/// closed to new work, which needs a turn then. So each turn ends, and its work has all of its data.
///
/// Other processes. Where processes share a device (node::device_share), a thread that finds no free memory first waits
/// for the turn of its process, and then takes its own turn. It asks the other processes for memory before it takes
/// memory from data of its own. A thread for each shared device gives memory back when others ask for it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/coherence/region_table.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/host_memory.h"

namespace hpe::work {

/// Thread-safe.
class residency {
 public:
  residency(device::device_set& devices, transfer::engine& engine, host_view& views, coherence::region_table& regions,
            host_memory& host, counters& count);
  residency(const residency&) = delete;
  residency& operator=(const residency&) = delete;
  ~residency();

  /// The right of one thread to take device memory from data. Given back by the destructor.
  class turn {
   public:
    turn() noexcept = default;
    ~turn() { end(); }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    friend class residency;
    /// contended: the devices on which it must be the turn of this process, too.
    void begin(residency& at, std::uint64_t devices, std::uint64_t contended) HPE_NO_THREAD_SAFETY_ANALYSIS;
    void end() noexcept HPE_NO_THREAD_SAFETY_ANALYSIS;
    residency* at_ = nullptr;
    std::uint64_t devices_ = 0;                     // a bit for each
    std::map<unsigned, std::uint64_t> of_process_;  // by device: node::device_share::turn
  };

  /// An allocation that is being made or removed: its device memory is neither free nor taken from data. A thread that
  /// finds no other memory waits for the end of such changes before its work is refused. The thread that makes the
  /// change waits for no turn meanwhile.
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

  /// Whether all data of the accesses is in device memory; notes its use. The caller holds the mutexes of the regions.
  [[nodiscard]] bool has(std::span<const device_access> accesses);

  /// Brings the data of the accesses into device memory, and uploads the bytes of it that the work reads. Waits for
  /// room. The caller holds no mutex of a region, and afterwards locks the regions, asks has() again, and keeps the
  /// turn until then. Throws HPE_ERROR_OUT_OF_MEMORY, with the sizes, if the accesses need more memory than a device
  /// has.
  void bring_in(std::span<const device_access> accesses, turn& mine);

  /// The most bytes of a region that one piece of a long copy should use, so that several pieces fit.
  [[nodiscard]] std::uint64_t most_for_a_copy(const coherence::region& r) const;

  /// The size of the pieces in which device memory comes and goes, for a region with these homes.
  [[nodiscard]] std::uint64_t piece_size(std::span<const std::uint16_t> homes) const;

 private:
  /// A part of a region that gets memory.
  struct gap {
    coherence::region* region;
    coherence::byte_range range;
    std::uint16_t home;
    coherence::byte_range read;  // bytes whose contents the work needs
    bool write = false;          // the work writes some
  };
  struct plan;
  struct candidate {
    coherence::region* region;
    coherence::byte_range range;
    std::uint64_t age;
  };

  /// The pieces of a device that can be given up, in this order.
  class supply {
   public:
    supply(residency& of, unsigned home, std::uint64_t now, std::uint64_t wanted)
        : of_(of), home_(home), now_(now), wanted_(wanted) {}

    /// Frees at least `bytes` bytes, or less if nothing is left to give up. Returns how many.
    std::uint64_t free(std::uint64_t bytes);

   private:
    /// The bytes that are copied to the host ahead of the need.
    [[nodiscard]] std::uint64_t spare() const;
    void copy_ahead();

    residency& of_;
    const unsigned home_;
    const std::uint64_t now_;
    std::uint64_t wanted_;  // bytes that the work still needs
    std::vector<candidate> order_;
    std::size_t next_ = 0;     // to be given up
    std::size_t copied_ = 0;   // the first whose copy to the host was not queued
    std::uint64_t ahead_ = 0;  // bytes from next_ to copied_
  };

  /// The bytes of a region that must be in device memory for work that names these.
  [[nodiscard]] static coherence::byte_range needed(const coherence::region& r, coherence::byte_range named)
      HPE_REQUIRES(r.mutex);
  /// Whether a block of the bytes is in a state for which `is` holds.
  [[nodiscard]] static bool any_block(const coherence::region& r, coherence::byte_range bytes,
                                      bool (*is)(coherence::block_state) noexcept) HPE_REQUIRES(r.mutex);
  /// Whether giving up the bytes costs a copy to the host.
  [[nodiscard]] static bool needs_copy(const coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);
  [[nodiscard]] static std::uint64_t homes_of(std::span<const device_access> accesses);
  [[nodiscard]] plan make_plan(std::span<const device_access> accesses, std::uint64_t now) const;
  /// The plan for accesses that fit into their devices; see bring_in.
  [[nodiscard]] plan make_fitting_plan(std::span<const device_access> accesses);
  enum class outcome : std::uint8_t {
    done,
    contended,  ///< memory of other processes is needed: it must be the turn of this process
    stopped     ///< memory of other processes is needed, and a stopped process has it
  };
  struct progress {
    outcome what = outcome::done;
    unsigned home = 0;
  };
  /// Gives the gaps of a plan memory.
  [[nodiscard]] progress fill_all(const plan& what, const turn& mine);
  /// ended: changes_ended_ before memory for the gap was looked for.
  [[nodiscard]] outcome make_room(supply& from, const gap& g, std::uint64_t missing, const turn& mine,
                                  std::uint64_t ended);
  /// Waits for the end of a change, unless one ended after the first `ended`. Returns false if there is none.
  bool wait_for_change(std::uint64_t ended) const noexcept;
  [[noreturn]] void throw_no_room(unsigned home, std::uint64_t bytes) const;
  /// Gives memory back to other processes, at least so many bytes if it can; returns how many.
  std::uint64_t give_back(unsigned home, std::uint64_t bytes) noexcept HPE_NO_THREAD_SAFETY_ANALYSIS;
  /// Whether queued work uses data on the device.
  [[nodiscard]] bool is_busy(unsigned home) const;
  /// Maps memory for a gap, unless the region has changed meanwhile. Returns false if there is no room.
  bool fill(const gap& g, std::uint64_t now);
  void upload_into(coherence::region& r, const gap& g) HPE_REQUIRES(r.mutex);
  /// The bytes of an access whose contents the work needs: at most two ranges.
  [[nodiscard]] static std::vector<coherence::byte_range> read_by(const device_access& access)
      HPE_REQUIRES(access.region->mutex);
  /// Whether the work needs bytes of which the only copy is in the spill file (host_memory).
  [[nodiscard]] static bool needs_file(const device_access& access) HPE_REQUIRES(access.region->mutex);
  [[nodiscard]] static bool in_file_only(const coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);
  /// Uploads bytes that the work needs and of which the only copy is in the spill file.
  void upload_from_file(const device_access& access);
  /// Queues the copy of a piece to the host, unless there is a copy that is still good. Returns false if the host's
  /// pages are not in memory; host_memory::bring brings them.
  bool copy_out(coherence::region& r, std::uint64_t begin) HPE_REQUIRES(r.mutex);
  /// Takes a piece's memory, after a wait for its users and its copy to the host. Returns the bytes that became free.
  std::uint64_t evict(coherence::region& r, std::uint64_t begin, unsigned home);
  std::uint64_t evict_all(coherence::region& r, unsigned home) HPE_REQUIRES(r.mutex);
  void unmap(coherence::region& r, std::uint64_t begin) HPE_REQUIRES(r.mutex);
  /// Pieces of the device that can be given up, of about this many bytes, if there are so many; the first one first.
  [[nodiscard]] std::vector<candidate> candidates(unsigned home, std::uint64_t now, std::uint64_t bytes) const;
  [[nodiscard]] resources with() { return {devices_, engine_, views_, *this, host_}; }

  device::device_set& devices_;
  transfer::engine& engine_;
  host_view& views_;
  coherence::region_table& regions_;
  host_memory& host_;
  counters& count_;
  std::atomic<std::uint64_t> changes_begun_{0};
  std::atomic<std::uint64_t> changes_ended_{0};
  std::atomic<bool> short_{false};  // device memory was too short for some work
  std::atomic<std::uint64_t> clock_{0};
  std::vector<std::unique_ptr<mutex>> turns_;  // by device; taken in ascending order, before mutexes of regions
  std::atomic<bool> ending_{false};
  std::vector<std::thread> servers_;  // of other processes
};

}  // namespace hpe::work
