#include "apps/fdtd/frame.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/files/element_file.h"
#include "apps/pictures/chart.h"

namespace hpe::fdtd {

command_line::output_files frame_of(const command_line::output_files& frames, std::int64_t step) {
  return {fmt::format("{}-{:06}", frames.stem, step), frames.endings};
}

void write_frame(const command_line::output_files& frames, std::int64_t step, const triple& cells,
                 const std::vector<float>& plane) {
  const command_line::output_files frame = frame_of(frames, step);
  if (frame.has(".npy"))
    files::write(frame.stem + ".npy", "f32",
                 {static_cast<std::uint64_t>(cells[0]), static_cast<std::uint64_t>(cells[2])}, plane.data(),
                 sizeof(float));
  if (!frame.has(".png")) return;
  float largest = 0;
  for (const float v : plane) largest = std::max(largest, std::abs(v));
  if (largest == 0) largest = 1;
  constexpr std::int64_t width = 900;
  const pictures::chart c{fmt::format("Wave after {} steps, middle plane", step),
                          {"x [cells]", 0, 1},
                          {"z [cells]", 0, 1},
                          "field",
                          -static_cast<double>(largest),
                          static_cast<double>(largest),
                          pictures::blue_to_red};
  pictures::write_png(frame.stem + ".png", pictures::draw(c, cells[0], cells[2], plane, width));
}

}  // namespace hpe::fdtd
