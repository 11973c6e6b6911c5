#pragma once

/// Opens GPUs as devices. If hpe is built without the CUDA toolkit, absent.cpp implements open() and present(), and
/// reports that there are no GPUs.

#include <memory>
#include <optional>
#include <string>

#include "runtime/base/options.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

/// Opens the GPUs that `specification`, "cuda" or "cuda:N", names. Throws HPE_ERROR_INITIALIZATION if these GPUs cannot
/// be used; the message states the reason.
std::unique_ptr<device_set> open(const std::string& specification, const uvas_layout& layout, const options& wanted);

/// Whether the CUDA driver is installed and has at least one device.
[[nodiscard]] bool present();

/// Parses "cuda" (all GPUs; the result is empty) or "cuda:N" (the first N GPUs). Throws HPE_ERROR_INITIALIZATION for
/// any other text.
[[nodiscard]] std::optional<unsigned> parse_count(const std::string& text);

}  // namespace hpe::device::cuda
