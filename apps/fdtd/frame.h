#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/fdtd/boxes.h"

namespace hpe::fdtd {

/// Returns the files of a step's frame, as in NAME-000120.png.
[[nodiscard]] command_line::output_files frame_of(const command_line::output_files& frames, std::int64_t step);

/// Writes one plane of a wave, with x across and z down; z is fastest in memory. A .png file is a picture whose axes
/// count cells: red is above zero, blue is below, white is zero, and the largest value of the frame has full colour. A
/// .npy file has the shape (cells[0], cells[2]). Throws std::runtime_error if a file cannot be written.
void write_frame(const command_line::output_files& frames, std::int64_t step, const triple& cells,
                 const std::vector<float>& plane);

}  // namespace hpe::fdtd
