#pragma once

/// Modules of PTX and their launches in a device process.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device/device_ptx_module.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/shared/output.h"
#include "runtime/device/soft/softd/heap.h"
#include "runtime/device/soft/softd/memory.h"
#include "runtime/device/soft/softd/meter.h"
#include "runtime/device/soft/softd/recorded_memory.h"
#include "runtime/device/soft/softd/tile_pool.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/ptx/compiler/kernel_trial.h"
#include "runtime/ptx/execution/calls/device_queue.h"
#include "runtime/ptx/program/image.h"
#include "runtime/ptx/races/race_report.h"

namespace hpe::device::soft {

/// A module of PTX in a device process. The first call of find() parses the module's texts. Thread-safe.
class loaded_ptx_module {
 public:
  /// `texts`: a file that pack_texts has created, of `bytes` bytes. `parts`: the addresses of the module's parts
  /// (ptx_part).
  loaded_ptx_module(os::file_descriptor texts, std::size_t bytes, const ptx_addresses& parts, ptx_recording reads,
                    const fabric_configuration& configuration);

  /// Returns a kernel of the module. Throws HPE_ERROR_NOT_FOUND if the module has no such kernel.
  [[nodiscard]] const ptx::function& find(const std::string& kernel);
  /// Call this after find.
  [[nodiscard]] const ptx::image& image() const { return *image_; }
  /// Returns an engine that runs blocks of this size of a kernel, each block in one thread of the device. The first
  /// call for a kernel and a block size may compile the kernel. Call this after find.
  [[nodiscard]] std::shared_ptr<ptx::execution_engine> engine_for(const ptx::function& kernel,
                                                                  const ptx::dimensions& block);
  /// Returns the trial in which launches of a kernel begin; null if they use engine_for. Call this after find.
  [[nodiscard]] ptx::kernel_trial* find_trial(const ptx::function& kernel, const ptx::dimensions& block);
  /// Returns the trial in which launches of a kernel with shared memory begin if accesses are recorded: its interpreter
  /// looks for races. Null if no launch needs it, or no further launch. Call this after find.
  [[nodiscard]] ptx::kernel_trial* find_race_trial(const ptx::function& kernel, const ptx::dimensions& block);
  /// Returns the report to which launches of the kernel add the races that they find; null if hpe does not look for
  /// races. `in_trial`: whether the launch begins in a find_race_trial(). Call this after find.
  [[nodiscard]] ptx::race_report* races_of(const ptx::function& kernel, bool in_trial);
  /// Whether the device prints the races.
  [[nodiscard]] bool tells_races() const { return execution_.finds_races; }
  /// Returns which accesses of two blocks are a race; null if accesses are not recorded. Call this after find.
  [[nodiscard]] const ptx::site_pairs* pairs() const { return pairs_ ? &*pairs_ : nullptr; }

 private:
  void prepare();

  os::file_descriptor texts_;
  std::size_t bytes_;
  ptx_addresses parts_;
  ptx_execution execution_;
  ptx_recording reads_;
  ptx::record_places record_places_;
  std::optional<ptx::site_pairs> pairs_;
  std::once_flag prepared_;
  std::unique_ptr<ptx::image> image_;
  std::unique_ptr<ptx::compiled_image> compiled_;  // null: kernels are interpreted
  mutex mutex_;
  std::map<const ptx::function*, std::unique_ptr<ptx::kernel_trial>> trials_ HPE_GUARDED_BY(mutex_);
  std::map<const ptx::function*, std::unique_ptr<ptx::kernel_trial>> race_trials_ HPE_GUARDED_BY(mutex_);
  std::map<const ptx::function*, std::unique_ptr<ptx::race_report>> races_ HPE_GUARDED_BY(mutex_);
};

/// Compiles kernels of queued launches in separate threads, while a stream's thread runs earlier commands, unless the
/// launches begin in a trial. Thread-safe.
class kernel_maker {
 public:
  /// Begins to compile a kernel for a block size, and returns at once. Ignores errors of the compiler, because the
  /// launch compiles the kernel again and reports them.
  void make(std::shared_ptr<loaded_ptx_module> module, const std::string& kernel, const ptx::dimensions& block);

 private:
  struct task {
    std::shared_ptr<loaded_ptx_module> module;
    std::string kernel;
    ptx::dimensions block;
  };

  void work();

  mutex mutex_;
  std::deque<task> tasks_ HPE_GUARDED_BY(mutex_);
  unsigned workers_ HPE_GUARDED_BY(mutex_) = 0;
};

/// Runs kernels of PTX on the threads of a device. Thread-safe.
class ptx_runner {
 public:
  ptx_runner(unsigned device, fabric& shared, const address_space& memory, tile_pool& pool, output_writer& output)
      : device_(device),
        shared_(shared),
        memory_(memory),
        pool_(pool),
        output_(output),
        links_(device, shared, memory),
        heap_(kernel_heap::default_size, heap_place_of(shared.configuration().layout)) {}

  /// Lets kernels record their accesses in a file (recorded_accesses.h). Call this before the first kernel runs.
  void record_accesses(os::file_descriptor file);

  /// How a kernel failed.
  struct trouble {
    hpeFault fault = HPE_FAULT_OTHER;
    std::string sentence;
  };

  /// Runs a kernel, and the launches, copies and fills that the kernel queues. Before run returns, it appends the text
  /// that these launches printed to the device's output file. Returns how a kernel failed; nullopt if none failed.
  /// Throws hpe::error if the kernel cannot be started.
  std::optional<trouble> run(loaded_ptx_module& module, const std::string& kernel, const command& what,
                             const void* parameters);
  /// Begins to compile the kernel of a launch that is queued after other launches.
  void expect(const std::shared_ptr<loaded_ptx_module>& module, const std::string& kernel, const command& what);

 private:
  std::optional<trouble> run_queued(loaded_ptx_module& module, const ptx::queued_work& what, std::uint64_t number,
                                    ptx::descendants& order);
  /// Logs the accesses of a grid that has ended.
  void collect(const loaded_ptx_module& module, const ptx::launch_configuration& grid);
  /// Runs one grid. Adds the launches, copies and fills that the grid's threads queue to `order`.
  std::optional<trouble> run_grid(loaded_ptx_module& module, const ptx::launch_configuration& grid, bool cooperative,
                                  ptx::descendants& order);

  const unsigned device_;
  fabric& shared_;
  const address_space& memory_;
  tile_pool& pool_;
  output_writer& output_;
  link_meter links_;
  kernel_heap heap_;
  std::unique_ptr<recorded_memory> recorded_;  // null: accesses are not recorded
  std::mutex recording_;                       // held while a launch records its accesses
  kernel_maker maker_;
};

}  // namespace hpe::device::soft
