#pragma once

#include <string>

namespace hpe::device {

/// Whether open_devices() opens GPUs, and not soft devices, for this specification.
[[nodiscard]] bool opens_gpus(const std::string& specification);

}  // namespace hpe::device
