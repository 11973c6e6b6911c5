#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/base/thread_safety.h"
#include "runtime/coherence/announcements.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/device/device_ptx_module.h"

namespace hpe::core {

/// The parts of a PTX module other than its kernels.
struct loaded_ptx {
  /// The addresses of a module's variables, by device::ptx_part; null for a part without variables. The managed part
  /// has the same address on all devices.
  using variables = std::array<std::byte*, device::ptx_part_count>;
  std::unique_ptr<device::device_ptx_module> on_devices;  ///< null after unloading
  std::vector<variables> placed;                          ///< by device
  hpe::mutex mutex;                                       ///< guards the members below
  coherence::point_set launches HPE_GUARDED_BY(mutex);
};

}  // namespace hpe::core

/// The objects behind the handles of kernels and modules in the C interface. They exist until the runtime is destroyed.
struct hpeKernel_st {
  hpe::device::kernel_id id;
  std::string name;
  hpeModule_st* module = nullptr;
  const hpe::device::ptx_kernel* ptx = nullptr;  ///< nullptr unless the kernel is in a PTX module
};
struct hpeModule_st {
  std::uint32_t id = 0;
  std::string path;
  std::map<std::string, std::unique_ptr<hpeKernel_st>> kernels;
  std::unique_ptr<hpe::core::loaded_ptx> ptx;
};

namespace hpe::core {

/// Rows of bytes that work writes in one of its accesses (HPE_INOUT), none of whose bytes it reads. So hpe need not
/// bring in the old values of these rows.
struct written_rows {
  std::size_t access = 0;  ///< index into work_usage::accesses
  placed_box rows;         ///< the offset is that in the access's region
};

/// Describes the memory that a piece of device work uses, and the work that must finish before this piece. If
/// `everything` or `in_reach` is set, `accesses` is ignored, unless `only_mapped` is set too.
struct work_usage {
  std::span<const hpeAccess> accesses{};
  std::span<const written_rows> rows{};
  bool everything = false;             ///< the work may use any allocation
  bool in_reach = false;               ///< the work may use any allocation that the device reaches
  bool only_mapped = false;            ///< with in_reach: memory outside of `accesses` only has to be mapped
  bool unsure = false;                 ///< work::device_access::unsure
  bool concurrent = false;             ///< the work may run at the same time as other concurrent work
  bool zero_copy = false;              ///< data that does not fit may be in zero-copy memory (work::residency)
  std::span<const timepoint> after{};  ///< further points for which the work waits
};

/// Commands around a launch: nothing that changes the memory of the launch's accesses comes between them and the
/// launch. The functions are called with the mutexes of the accesses' regions held.
class launch_frame {
 public:
  virtual ~launch_frame() = default;
  /// Queues commands. The launch waits for the points that this function adds to `first`.
  virtual void begin(coherence::point_set& first) = 0;
  /// Queues commands that wait for the launch.
  virtual void end(timepoint launch) noexcept = 0;
};

/// The part of a launch on several devices that one device runs.
struct team_part {
  unsigned device;
  device::shape shape;
  std::span<const std::byte> parameters;
};

/// One device's part of work that the program queues on its own streams, with the hpe stream that represents the
/// program's stream; see enqueue_beside.
struct beside_part {
  unsigned device;
  device::stream* beside;
};

/// Describes work that enqueue_beside() has queued.
struct queued_beside {
  timepoint end;
  /// The value of launcher::epoch() if all memory of the work is settled (coherence::region::is_settled); otherwise 0.
  /// Later equal work needs no submission of its own if epoch() still returns this value, no caller has waited for
  /// `end` or asked whether it is reached, and `end` will be reached only after the later work too.
  std::uint64_t settled_at = 0;
  /// The accesses of the work, if the work has named them and all their memory is settled; otherwise empty.
  std::vector<work::device_access> settled{};
};

/// Returns the error message for a launch of which only `queued` of several parts could be queued, for the reason
/// `why`.
[[nodiscard]] std::string words_for_incomplete_launch(const std::string& kernel, std::size_t queued, std::size_t parts,
                                                      const std::string& why);

/// Whether the calling thread runs a function of the program that queues work for launcher::record() or enqueue().
[[nodiscard]] bool queues_for_hpe() noexcept;

/// Loads modules, finds their kernels and queues launches. Thread-safe.
class launcher {
 public:
  launcher(const work::resources& with, coherence::region_table& regions, coherence::announcements& announced,
           counters& count, allocator& memory);

  [[nodiscard]] hpeModule load(const std::string& path);
  [[nodiscard]] hpeKernel find(hpeModule module, const std::string& name);
  /// Takes ownership of a module that was not loaded from a file.
  hpeModule keep(std::unique_ptr<hpeModule_st> module);

  /// See hpeLaunch. around: may be null.
  timepoint launch(unsigned device, hpeKernel kernel, const device::shape& shape, std::span<const std::byte> parameters,
                   const work_usage& usage, launch_frame* around = nullptr);

  /// See hpeLaunchTeam. `parts` must not be empty, and each part must be for a different device.
  void launch_team(std::span<const team_part> parts, hpeKernel kernel, std::span<const hpeAccess> accesses);

  /// Queues the parts of one launch. The parts do not wait for each other, and several may run on one device. `parts`
  /// must not be empty. Returns one timepoint for each part.
  std::vector<timepoint> launch_parts(std::span<const team_part> parts, hpeKernel kernel, const work_usage& usage);

  /// Throws the errors of a launch with a wrong device or wrong accesses.
  void require_valid(unsigned device, const work_usage& usage) const;

  /// See hpeEnqueue. `function` is called under no lock. around: may be null.
  timepoint record(unsigned device, const std::function<int(void*)>& function, const work_usage& usage,
                   launch_frame* around = nullptr);

  /// See hpeEnqueueLocked. `function` is called with the locks of the regions held. around: may be null.
  timepoint enqueue(unsigned device, const std::function<int(void*)>& function, const work_usage& usage,
                    launch_frame* around = nullptr);

  /// Like enqueue, for work that the program queues on its own stream. `beside`, a stream of the device that is used
  /// for nothing else, represents the program's stream in hpe's order of work. function(stream, waits) is called with
  /// the handle of `beside`. The function must make later work on `beside` wait for the program's work; if `waits` is
  /// true, the program's work must wait for the earlier work on `beside`. `work` is either
  /// empty or the description of equal earlier work. If the memory of the earlier work is still settled, this function
  /// does not examine the memory again. Afterwards, `work` describes the work that this function has queued.
  void enqueue_beside(unsigned device, device::stream& beside, const std::function<int(void*, bool)>& function,
                      const work_usage& usage, queued_beside& work);

  /// Like enqueue_beside, for work that runs in parts on several devices, which do not wait for each other: calls
  /// function(n, stream, waits) for each part, in order. `parts` must not be empty. If the function fails for a part
  /// other than the first, the work counts as queued.
  void enqueue_parts_beside(std::span<const beside_part> parts,
                            const std::function<int(std::size_t, void*, bool)>& function, const work_usage& usage);

  /// A number that changes when memory may no longer be settled.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return regions_.anywhere().epoch(); }

  /// Adds to `points` the point of the last work on each compute stream of a device.
  void add_last_points(unsigned device, coherence::point_set& points) const;

 private:
  static constexpr std::size_t streams_per_device = 4;
  struct compute {
    std::array<device::stream*, streams_per_device> streams{};
    /// The stream for parts of teams, which run in the order in which threads lock team_mutex_. Null before the first
    /// team.
    std::atomic<device::stream*> teams{nullptr};
    std::atomic<unsigned> next{0};
  };

  /// Releases the accesses and calls command(submission, stream, after), which queues the work on a stream so that it
  /// waits for `after`, and returns the work's timepoint. on: the stream to use; nullptr: a compute stream of the
  /// device. known: see enqueue_beside; may be null.
  template <class Command>
  timepoint queue(unsigned device, const work_usage& usage, const Command& command, device::stream* on = nullptr,
                  queued_beside* known = nullptr);
  /// Releases the accesses of work on several devices and calls command(submission, after, points), which queues the
  /// parts. name: the name of the work in error messages.
  template <class Part, class Command>
  void queue_together(std::span<const Part> parts, const std::string& name, std::vector<work::device_access> accesses,
                      work::submission::memory memory, const Command& command);
  /// named_only: whether the result leaves out the regions that only usage.in_reach adds.
  [[nodiscard]] std::vector<work::device_access> accesses_of(unsigned device, const work_usage& usage,
                                                             bool named_only = false) const;
  /// A bit for each device whose memory a device can use.
  [[nodiscard]] std::uint64_t homes_in_reach(unsigned device) const;
  [[nodiscard]] bool waits(const device::stream& stream, const coherence::point_set& after) const;
  [[nodiscard]] std::vector<work::device_access> resolve(std::span<const hpeAccess> accesses) const;
  [[nodiscard]] std::vector<work::device_access> all_regions() const;
  /// The regions that concurrent work on the device can use in place.
  [[nodiscard]] std::vector<work::device_access> regions_in_reach(unsigned device) const;
  /// Sets only_mapped of the accesses to all regions that are not named. The accesses are ordered by the regions'
  /// numbers.
  void leave_rest_mapped(std::vector<work::device_access>& all, std::span<const hpeAccess> named) const;
  /// Whether the device can use the accessed memory in place. The caller holds the region's mutex.
  [[nodiscard]] bool reaches(unsigned device, const work::device_access& access) const;
  device::stream& choose_stream(unsigned device, const coherence::point_set& after);
  device::stream& team_stream(unsigned device) HPE_REQUIRES(team_mutex_);
  void require_there(unsigned device) const;

  const work::resources with_;
  coherence::region_table& regions_;
  coherence::announcements& announced_;
  counters& count_;
  allocator& memory_;
  std::vector<std::unique_ptr<compute>> compute_;
  // coherence::work_anywhere::epoch() when all regions in a device's reach were last settled: by device, and by whether
  // zero-copy memory may be used.
  std::vector<std::array<std::atomic<std::uint64_t>, 2>> settled_;
  mutex team_mutex_;  // held while one team is queued; locked after the mutexes of regions

  mutex modules_mutex_;
  std::map<std::string, std::unique_ptr<hpeModule_st>> modules_ HPE_GUARDED_BY(modules_mutex_);  // by path
  std::vector<std::unique_ptr<hpeModule_st>> others_ HPE_GUARDED_BY(modules_mutex_);
};

}  // namespace hpe::core
