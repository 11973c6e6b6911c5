#include "runtime/core/operations/console_output.h"

#include <cstdio>

#include "runtime/device/ptx_module.h"

namespace hpe::core {

void console_output::write(device::device_set& devices) {
  device::ptx_capability* const ptx = devices.ptx();
  if (ptx == nullptr) return;  // a CUDA driver prints itself
  const std::lock_guard lock(mutex_);
  for (const device::printed& what : ptx->take_output())
    std::fwrite(what.text.data(), 1, what.text.size(), what.is_error ? stderr : stdout);
}

}  // namespace hpe::core
