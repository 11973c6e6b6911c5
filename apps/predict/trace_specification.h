#pragma once

/// A first specification of a program that has none, from a trace or a profile of a run on one device.

#include <string>

#include "apps/predict/expression.h"

namespace hpe::predict {

/// Reads a trace (HPE_TRACE, `hpe run --trace`) and gives a specification as TOML. It describes the run from its first
/// kernel to its last: kernels, copies between the host and the device, and the time in which the device has nothing to
/// do. Kernels and copies are taken to divide among devices, the rest is not. What devices would exchange is not in the
/// trace of one. Work that only the first launch of a kernel did, such as making a plan, is left out.
///
/// file names the trace in messages and in the specification. Throws bad_input if text is no trace, is incomplete, or
/// has kernels of no device or of several: predictions for several devices must not be made of runs on several.
[[nodiscard]] std::string specification_of_trace(const std::string& text, const std::string& file);

/// The same from the output of HPE_PROFILE=1, which may have other lines before and after it. A profile has
/// no times of kernels, so all time in which no thread waited for data counts as kernel time, and each launch as an
/// iteration.
[[nodiscard]] std::string specification_of_profile(const std::string& text, const std::string& file);

}  // namespace hpe::predict
