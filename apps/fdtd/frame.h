#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/fdtd/boxes.h"

namespace hpe::fdtd {

/// The name of the frame of a step, without ".png" or ".npy": NAME-000120.
[[nodiscard]] std::string name_of_frame(const std::string& name, std::int64_t step);

/// Writes one plane of a wave, x across and z down, z fastest in memory: as a picture whose axes count cells (red is
/// above zero, blue is below, white is zero; the largest value of the frame is full colour), and as .npy of shape
/// (cells[0], cells[2]). Throws if a file cannot be written.
void write_frame(const std::string& name, std::int64_t step, const triple& cells, const std::vector<float>& plane);

}  // namespace hpe::fdtd
