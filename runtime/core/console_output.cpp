#include "runtime/core/console_output.h"

#include <cstdio>

namespace hpe::core {

void console_output::write(device::device_set& devices) {
  const std::lock_guard lock(mutex_);
  for (const device::printed& what : devices.take_output())
    std::fwrite(what.text.data(), 1, what.text.size(), what.is_error ? stderr : stdout);
}

}  // namespace hpe::core
