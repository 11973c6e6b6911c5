#pragma once

#include "runtime/device/soft/fabric.h"
#include "runtime/device/soft/output.h"
#include "runtime/device/soft/softd_heap.h"
#include "runtime/device/soft/softd_memory.h"
#include "runtime/device/soft/softd_pool.h"
#include "runtime/device/soft/softd_ptx_module.h"

namespace hpe::device::soft {

/// Runs kernels of PTX on the threads of a device. Any thread.
class softd_ptx_runner {
 public:
  softd_ptx_runner(const softd_memory& memory, softd_pool& pool, output_writer& output)
      : memory_(memory), pool_(pool), output_(output) {}

  /// Returns what went wrong in the kernel. What it printed is in the output then. Throws hpe::error where it cannot be
  /// started.
  std::optional<ptx::fault> run(softd_ptx_module& module, const std::string& kernel, const command& what,
                                const void* parameters);

 private:
  const softd_memory& memory_;
  softd_pool& pool_;
  output_writer& output_;
  softd_heap heap_;
};

/// How the program is told of a reason.
[[nodiscard]] hpeFault fault_of(ptx::fault::reason why) noexcept;

}  // namespace hpe::device::soft
