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
#include "runtime/device/ptx_module.h"

namespace hpe::core {

/// The parts of a PTX module besides its kernels.
struct loaded_ptx {
  /// Addresses of variables, by device::ptx_part; null if there are none. All devices have the same managed part.
  using variables = std::array<std::byte*, device::ptx_part_count>;
  std::unique_ptr<device::ptx_module> on_devices;  ///< null after unloading
  std::vector<variables> placed;                   ///< by device
  hpe::mutex mutex;                                ///< guards the members below
  coherence::point_set launches HPE_GUARDED_BY(mutex);
};

}  // namespace hpe::core

/// The objects behind handles of the C interface. They live as long as the runtime.
struct hpeKernel_st {
  hpe::device::kernel_id id;
  std::string name;
  hpeModule_st* module = nullptr;
  const hpe::device::ptx_kernel* ptx = nullptr;  ///< nullptr unless in a PTX module
};
struct hpeModule_st {
  std::uint32_t id = 0;
  std::string path;
  std::map<std::string, std::unique_ptr<hpeKernel_st>> kernels;
  std::unique_ptr<hpe::core::loaded_ptx> ptx;
};

namespace hpe::core {

/// The memory that a piece of device work uses, and the work that it waits for.
struct work_usage {
  std::span<const hpeAccess> accesses{};
  bool everything = false;             ///< any allocation; accesses is ignored
  bool in_reach = false;               ///< any allocation that the device reaches; accesses is ignored
  bool concurrent = false;             ///< not ordered against other such work
  std::span<const timepoint> after{};  ///< points to wait for, besides those of the data
};

/// One device's part of a launch on several devices.
struct team_part {
  unsigned device;
  device::shape shape;
  std::span<const std::byte> parameters;
};

/// Modules, kernels and their launches. Thread-safe.
class launcher {
 public:
  launcher(const work::resources& with, coherence::region_table& regions, coherence::announcements& announced,
           counters& count, allocator& memory);

  [[nodiscard]] hpeModule load(const std::string& path);
  [[nodiscard]] hpeKernel find(hpeModule module, const std::string& name);
  /// Keeps a module that was not loaded from a file.
  hpeModule keep(std::unique_ptr<hpeModule_st> module);

  /// See hpeLaunch.
  timepoint launch(unsigned device, hpeKernel kernel, const device::shape& shape, std::span<const std::byte> parameters,
                   const work_usage& usage);

  /// See hpeLaunchTeam. There must be at least one part, and each must be on another device.
  void launch_team(std::span<const team_part> parts, hpeKernel kernel, std::span<const hpeAccess> accesses);

  /// Queues parts of one launch, which do not wait for each other; several may be on one device. There must be at least
  /// one. Returns a timepoint for each.
  std::vector<timepoint> launch_parts(std::span<const team_part> parts, hpeKernel kernel, const work_usage& usage);

  /// See hpeEnqueue. function is called under the locks of the regions.
  void enqueue(unsigned device, const std::function<int(void*)>& function, const work_usage& usage);

  /// Like enqueue, for work that the program queues on a stream of its own, which `beside` stands for in hpe's order:
  /// a stream of the device that is used for nothing else. function(beside's stream, waits) must make the later work of
  /// beside wait for what it queues; if waits, what it queues must wait for beside.
  void enqueue_beside(unsigned device, device::stream& beside, const std::function<int(void*, bool)>& function,
                      const work_usage& usage);

  /// Adds the last point of each compute stream of a device.
  void add_last_points(unsigned device, coherence::point_set& points) const;

 private:
  static constexpr std::size_t streams_per_device = 4;
  struct compute {
    std::array<device::stream*, streams_per_device> streams{};
    /// For parts of teams only, which begin in the order of team_mutex_. Null before the first team.
    std::atomic<device::stream*> teams{nullptr};
    std::atomic<unsigned> next{0};
  };

  /// Releases the accesses and calls command(submission, stream, after) to queue the work on a stream, which waits for
  /// `after`. command returns the work's timepoint. on: the stream; nullptr: one of the device's.
  template <class Command>
  timepoint queue(unsigned device, const work_usage& usage, const Command& command, device::stream* on = nullptr);
  /// Releases the accesses of a launch on several devices, and calls command(after, points) to queue the parts.
  template <class Command>
  void queue_together(std::span<const team_part> parts, hpeKernel kernel, std::vector<work::device_access> accesses,
                      const Command& command);
  [[nodiscard]] std::vector<work::device_access> resolve(std::span<const hpeAccess> accesses) const;
  [[nodiscard]] std::vector<work::device_access> all_regions() const;
  /// The regions that concurrent work of the device can use in place.
  [[nodiscard]] std::vector<work::device_access> regions_in_reach(unsigned device) const;
  /// The caller holds the region's mutex.
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
  mutex team_mutex_;  // one team is queued at a time; taken after the mutexes of regions

  mutex modules_mutex_;
  std::map<std::string, std::unique_ptr<hpeModule_st>> modules_ HPE_GUARDED_BY(modules_mutex_);  // by file
  std::vector<std::unique_ptr<hpeModule_st>> others_ HPE_GUARDED_BY(modules_mutex_);
};

}  // namespace hpe::core
