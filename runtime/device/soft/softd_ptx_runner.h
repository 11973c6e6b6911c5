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

  /// How a kernel failed.
  struct trouble {
    hpeFault fault = HPE_FAULT_OTHER;
    std::string sentence;
  };

  /// What the kernel printed is in the output when this returns. Throws hpe::error where it cannot be started.
  std::optional<trouble> run(softd_ptx_module& module, const std::string& kernel, const command& what,
                             const void* parameters);

 private:
  const softd_memory& memory_;
  softd_pool& pool_;
  output_writer& output_;
  softd_heap heap_;
};

}  // namespace hpe::device::soft
