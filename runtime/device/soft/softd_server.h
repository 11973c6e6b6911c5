#pragma once

/// The conversation with the owner, from the device's side.

#include <memory>
#include <string>

#include "runtime/device/soft/softd_memory.h"

namespace hpe::device::soft {

/// Serves requests until the owner asks to quit or is dead, and ends the process. `memory` holds the address space; if
/// that could not be taken, `refusal` is what the owner is told instead.
[[noreturn]] void serve(unsigned device, std::unique_ptr<softd_memory> memory, const std::string& refusal);

}  // namespace hpe::device::soft
