#pragma once

/// Makes a first specification of a program from a trace or a profile of a run on one device.

#include <string>

#include "apps/predict/formula_value.h"

namespace hpe::predict {

/// Reads a trace (HPE_TRACE, `hpe run --trace`) and returns a specification as TOML. The specification describes the
/// run from its first kernel to its last: kernels, copies between the host and the device, and the idle time of the
/// device. The specification assumes that the work of kernels and copies can be divided among devices, and that other
/// work cannot. The trace of one device does not show the data that several devices would exchange. If the first launch
/// of a kernel took longer than all its later launches together, it counts with their median time, so that work of the
/// first launch alone, such as making a plan, is left out.
///
/// file names the trace in messages and in the specification. Throws bad_input if text is not a trace, is incomplete,
/// or has kernels of no device or of several devices: predictions for several devices must be based on a run on one
/// device.
[[nodiscard]] std::string specification_of_trace(const std::string& text, const std::string& file);

/// Makes a specification in the same way from the output of HPE_PROFILE=1, which may have other lines before and after
/// it. A profile has no times of kernels, so all time in which no thread waited for data counts as kernel time, and
/// each launch as an iteration.
[[nodiscard]] std::string specification_of_profile(const std::string& text, const std::string& file);

}  // namespace hpe::predict
