#pragma once

/// The family of GPUs. In a build of hpe without the CUDA toolkit, absent.cpp takes the place of the other
/// files.

#include <memory>
#include <optional>
#include <string>

#include "runtime/base/options.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

/// Opens the GPUs that "cuda" or "cuda:N" names. Throws HPE_ERROR_INITIALIZATION with the reason.
std::unique_ptr<device_set> open(const std::string& specification, const uvas_layout& layout, const options& wanted);

/// Whether there is a driver with at least one device.
[[nodiscard]] bool present();

/// Parses "cuda" (all GPUs; empty) or "cuda:N" (the first N GPUs). Throws HPE_ERROR_INITIALIZATION for other
/// text.
[[nodiscard]] std::optional<unsigned> parse_count(const std::string& text);

}  // namespace hpe::device::cuda
