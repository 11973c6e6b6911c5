#pragma once

/// Fetches data ahead. If the work of a device repeats itself (use_cycle), a thread brings in the data that the work is
/// predicted to use next, so that uploads overlap the kernels of earlier work. The thread never waits for memory: it
/// evicts only data that no queued work uses, that the host has, and that is needed later than the fetched data. It
/// works while other threads queue work or wait for the device. If predictions are wrong, or the thread cannot be
/// started, data comes when work that needs it is queued.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/coherence/region_table.h"
#include "runtime/coherence/use_cycle.h"
#include "runtime/work/eviction.h"

namespace hpe::work {

/// Thread-safe, except for the functions with a device as argument: only the thread that has the turn on the device
/// (residency::turn) calls these.
class fetcher {
 public:
  /// Brings in the data of a predicted use of a device's memory, with memory that `from` frees at once; creates `from`
  /// if it needs memory. Returns false if there is too little room.
  using bring_in = std::function<bool(unsigned home, const coherence::use_cycle::predicted_use& use,
                                      std::optional<eviction::supply>& from)>;

  /// Queues the uploads that calls of bring_in have left out.
  using finish = std::function<void(unsigned home)>;

  /// `turns`: the mutexes of the devices' turns. The thread calls `bring` and `end` while it has the turn.
  fetcher(device::device_set& devices, coherence::region_table& regions, eviction& evicts,
          const std::vector<std::unique_ptr<mutex>>& turns, bring_in bring, finish end);
  fetcher(const fetcher&) = delete;
  fetcher& operator=(const fetcher&) = delete;
  ~fetcher();

  /// Call this after each step (eviction::note_step).
  void note_step() noexcept;

  /// Records data that has got device memory, with the timepoint of its upload. `due`: the step that is predicted to
  /// use the data (eviction::steps); 0 if the data is for work that is queued now. In a cycle, the first call starts
  /// the thread.
  void add(unsigned home, timepoint upload, std::uint64_t bytes, std::uint64_t due);
  /// Records data that has got device memory, and whose uploads are not queued yet.
  void note_mapped(unsigned home, std::uint64_t bytes) noexcept { mapped_[home] += bytes; }
  void note_uploads(unsigned home) noexcept { mapped_[home] = 0; }
  /// Waits while too many bytes are on their way to the device. A thread may queue work far ahead of the device. If it
  /// did not wait for its uploads, it would soon have evicted all data that the device does not use at the moment.
  void await(unsigned home) const;
  /// Whether as many bytes are on their way, or have arrived and wait for their use, as may be.
  [[nodiscard]] bool is_full(unsigned home) const noexcept;
  /// In a cycle, this many bytes may be on their way to a device or wait for their use; more if the pace allows it.
  [[nodiscard]] std::uint64_t most_to_come(unsigned home) const noexcept;

 private:
  struct arrival {
    timepoint upload;
    std::uint64_t bytes = 0;
    std::uint64_t due = 0;
  };

  void start() noexcept;
  void run() noexcept HPE_NO_THREAD_SAFETY_ANALYSIS;
  /// Fetches as much as there is room for. Returns false if nothing remains to be fetched before the next step.
  bool fetch(unsigned home);
  [[nodiscard]] bool is_there(unsigned home, const coherence::use_cycle::predicted_use& use) const;
  /// Forgets data that has arrived and been used.
  void forget(unsigned home);
  [[nodiscard]] std::uint64_t bytes_to_come(unsigned home) const noexcept;
  /// Whether the pace allows `bytes` bytes more than most_to_come.
  [[nodiscard]] bool pace_allows(unsigned home, std::uint64_t bytes) const noexcept;
  /// With the pace, at most this many bytes may be on their way or wait for their use.
  [[nodiscard]] std::uint64_t most_at_pace(unsigned home) const noexcept;

  device::device_set& devices_;
  coherence::region_table& regions_;
  eviction& eviction_;
  const std::vector<std::unique_ptr<mutex>>& turns_;
  const bring_in bring_;
  const finish finish_;
  std::vector<std::deque<arrival>> arrivals_;  // by device; in the order of the uploads
  std::vector<std::uint64_t> mapped_;          // by device; bytes without an upload
  std::vector<coherence::fetch_pace> paces_;   // by device
  std::atomic<std::uint32_t> noted_{0};        // changes with each step
  std::atomic<bool> ending_{false};
  std::once_flag starts_;
  std::thread thread_;
};

}  // namespace hpe::work
