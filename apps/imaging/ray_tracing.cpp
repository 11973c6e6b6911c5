// Frames of moving spheres. Device d of n computes the rows d, d + n, d + 2 n and so on, which balances the load. After
// each frame, the host moves the spheres and sends the new state to each device.

#include <fmt/core.h>

#include "apps/imaging/imaging_program.h"
#include "apps/pictures/picture.h"
#include "kernels/rays.h"

namespace hpe::imaging {

namespace {

using hpe::kernels::scene;
using hpe::kernels::trace_rays;

struct request : common {
  std::int64_t scale = 1, width = 1024, height = 768, frames = 4, seed = 1;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return with_common(
      {{"SIZE", "", "WIDTHxHEIGHT of a frame (1024x768)", to_sizes({&r.width, &r.height})},
       {"--scale", "N", "factor for width and height (1)", to_whole(r.scale, 1, 64)},
       {"--frames", "N", "number of frames in a run; the spheres move after each frame (4)", to_whole(r.frames, 1)},
       {"--seed", "N", "seed of the spheres (1)", to_whole(r.seed, 0)}},
      r, "write the last frame: .png, or .npy with the mean of red, green and blue");
}

std::string help_text() {
  request defaults;
  return "Usage: hpe rays [options] [SIZE]\n\n"
         "Traces rays through a room of 282 spheres, with shadows and one reflection, over all devices, frame by "
         "frame.\n"
         "After each frame, the state of the scene, 13548 bytes, is sent to all devices.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe rays --scale 4 --frames 10\n"
         "  hpe rays 640x480 --frames 1 --output spheres.png\n";
}

/// Returns the pixel at column x and row y. rows: the rows of all members, member by member.
std::uint32_t pixel_at(const std::vector<std::uint32_t>& rows, const division& parts, std::int64_t width,
                       std::int64_t x, std::int64_t y) {
  const auto members = static_cast<std::int64_t>(parts.size());
  const auto begin = static_cast<std::int64_t>(parts[static_cast<std::size_t>(y % members)].begin / sizeof(rows[0]));
  return rows[static_cast<std::size_t>(begin + y / members * width + x)];
}

/// Divides a frame: member r has the rows r, r + members, r + 2 members and so on.
division rows_of(const request& r, int members) {
  division parts;
  std::size_t begin = 0;
  for (int m = 0; m < members; ++m) {
    const std::int64_t rows = (r.height - m + members - 1) / members;
    parts.push_back({begin, static_cast<std::size_t>(rows * r.width) * sizeof(std::uint32_t)});
    begin += parts.back().bytes;
  }
  return parts;
}

void work(member& me, const request& r, std::vector<std::uint32_t>& frame, const division& parts) {
  const std::size_t bytes = parts[static_cast<std::size_t>(me.rank())].bytes;
  const hpe::array<std::uint32_t> pixels(bytes / sizeof(std::uint32_t), on_device(me.device()));
  const hpe::array<scene> state(1, on_device(me.device()));
  const hpe::kernel<trace_rays> kernel(kernels(), "imaging_trace_rays");
  trace_rays p{state.data(),
               pixels.data(),
               static_cast<std::int32_t>(r.width),
               static_cast<std::int32_t>(r.height),
               me.rank(),
               me.size(),
               0};
  p.part = static_cast<std::int32_t>(pixels.size() / static_cast<std::size_t>(r.width));
  scene now{};

  me.measure(r.repeats, [&] {
    now = hpe::kernels::first_scene(static_cast<std::uint32_t>(r.seed));
    for (std::int64_t f = 0; f < r.frames; ++f) {
      if (f > 0) me.in(phase::cpu, [&] { hpe::kernels::move_spheres(now); });
      const std::byte* current = nullptr;
      me.in(phase::exchange, [&] { current = me.broadcast_host(&now, sizeof(now)); });
      me.in(phase::links, [&] { hpe::copy(state.data(), current, sizeof(scene)); });
      me.in(phase::kernels, [&] {
        if (p.part > 0) hpe::launch_on(me.device(), kernel, grid_for(p.count()), p, hpe::in(state), hpe::out(pixels));
      });
      std::byte* const rows = me.room(frame.data(), parts);
      me.in(phase::links, [&] { hpe::copy(rows, pixels.data(), bytes); });
      me.in(phase::exchange, [&] { me.deliver(frame.data(), parts); });
    }
  });
}

void write_frame(const request& r, const command_line::output_files& outputs, const std::vector<std::uint32_t>& frame,
                 const division& parts) {
  pictures::picture p(r.width, r.height);
  image mean{r.height, r.width, {}};
  for (std::int64_t y = 0; y < r.height; ++y)
    for (std::int64_t x = 0; x < r.width; ++x) {
      const std::uint32_t v = pixel_at(frame, parts, r.width, x, y);
      constexpr std::uint32_t byte = 255;
      const std::array<double, 3> c{static_cast<double>(v & byte), static_cast<double>(v >> 8 & byte),
                                    static_cast<double>(v >> 16 & byte)};
      p.put(x, y, c);
      mean.values.push_back(static_cast<float>((c[0] + c[1] + c[2]) / 3));
    }
  if (outputs.has(".png")) pictures::write_png(outputs.stem + ".png", p);
  if (outputs.has(".npy")) write_image({outputs.stem, {".npy"}}, mean);
}

}  // namespace

int run_rays(const make_team& make, int argc, char** argv) {
  request r;
  const std::unique_ptr<team> all = begin(make, options_of(r), r, help_text, argc, argv);
  if (all == nullptr) return 0;
  const auto outputs = checked_outputs(r.output, r.json, output_kind::image);
  r.width *= r.scale;
  r.height *= r.scale;
  constexpr std::int64_t most = 1 << 20;
  if (r.width > most || r.height > most)
    throw bad_input(fmt::format("frames of {} x {} pixels: up to 2^20 x 2^20 are possible", r.width, r.height));
  const double pixels = static_cast<double>(r.width) * static_cast<double>(r.height);
  check_memory(fmt::format("frames of {} x {} pixels", r.width, r.height), *all, pixels, pixels);
  const division parts = rows_of(r, all->size());
  std::vector<std::uint32_t> frame(all->leads() ? static_cast<std::size_t>(r.width * r.height) : 0);
  const times t = all->run([&](member& me) { work(me, r, frame, parts); });
  if (all->leads() && !outputs.endings.empty()) write_frame(r, outputs, frame, parts);
  tell("rays", fmt::format("{} frame{} of {} x {} pixels", r.frames, r.frames == 1 ? "" : "s", r.width, r.height), r,
       *all, t, fmt::format("{:.1f} frames a second\n", static_cast<double>(r.frames) / t.seconds));
  return 0;
}

}  // namespace hpe::imaging
