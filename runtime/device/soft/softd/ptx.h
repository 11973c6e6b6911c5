#pragma once

/// Modules of PTX and their launches, in a device process.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device/ptx_module.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/shared/output.h"
#include "runtime/device/soft/softd/heap.h"
#include "runtime/device/soft/softd/memory.h"
#include "runtime/device/soft/softd/meter.h"
#include "runtime/device/soft/softd/pool.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/ptx/compiler/compiler.h"
#include "runtime/ptx/execution/calls/device_queue.h"
#include "runtime/ptx/program/image.h"
#include "runtime/ptx/races/race_report.h"

namespace hpe::device::soft {

/// A module of PTX in a device process. It is parsed when its first kernel is launched. Thread-safe.
class loaded_ptx_module {
 public:
  /// texts: a file of pack_texts. parts: the addresses of the module's variables.
  loaded_ptx_module(os::file_descriptor texts, std::size_t bytes, const ptx_addresses& parts,
                    const ptx_execution& execution);

  /// Finds a kernel. Throws HPE_ERROR_NOT_FOUND.
  [[nodiscard]] const ptx::function& find(const std::string& kernel);
  /// To be called after find.
  [[nodiscard]] const ptx::image& image() const { return *image_; }
  /// An engine that runs a kernel's blocks of this size in one thread; the first calls compile the kernel. To be called
  /// after find.
  [[nodiscard]] std::shared_ptr<ptx::engine> engine_for(const ptx::function& kernel, const ptx::dimensions& block);
  /// The races of a kernel so far; null if they are not looked for. To be called after find.
  [[nodiscard]] ptx::race_report* races_of(const ptx::function& kernel);

 private:
  void prepare();

  os::file_descriptor texts_;
  std::size_t bytes_;
  ptx_addresses parts_;
  ptx_execution execution_;
  std::once_flag prepared_;
  std::unique_ptr<ptx::image> image_;
  std::unique_ptr<ptx::compiled_image> compiled_;  // null: interpreted
  mutex mutex_;
  std::map<const ptx::function*, std::unique_ptr<ptx::race_report>> races_ HPE_GUARDED_BY(mutex_);
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
        links_(device, shared, memory) {}

  /// How a kernel failed.
  struct trouble {
    hpeFault fault = HPE_FAULT_OTHER;
    std::string sentence;
  };

  /// Runs a kernel and the work that it queues; their output has been appended when this returns. Throws hpe::error if
  /// the kernel cannot be started.
  std::optional<trouble> run(loaded_ptx_module& module, const std::string& kernel, const command& what,
                             const void* parameters);

 private:
  std::optional<trouble> run_queued(loaded_ptx_module& module, const ptx::queued_work& what, std::uint64_t number,
                                    ptx::descendants& order);
  /// The work that the grid's kernels queue enters the order.
  std::optional<trouble> run_grid(loaded_ptx_module& module, const ptx::launch_configuration& grid, bool cooperative,
                                  ptx::descendants& order);

  const unsigned device_;
  fabric& shared_;
  const address_space& memory_;
  tile_pool& pool_;
  output_writer& output_;
  link_meter links_;
  kernel_heap heap_;
};

}  // namespace hpe::device::soft
