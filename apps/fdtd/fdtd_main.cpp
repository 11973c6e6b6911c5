#include "apps/fdtd/fdtd_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/fdtd/field.h"
#include "apps/fdtd/frame.h"

namespace hpe::fdtd {

namespace {

struct request {
  bool help = false, quiet = false;
  triple cells{0, 0, 0};
  std::int64_t order = 8, steps = 100, every = 0, devices = 0;
  cut how = cut::slabs;
  exchange by = exchange::copied;
  bool check = false;
  std::string output, json;
};

/// Parses a size, for example 512 or 512x256x128.
triple size(const std::string& name, const std::string& text) {
  constexpr std::int64_t most = 100000;
  triple cells{};
  if (text.find('x') == std::string::npos) {
    cells.fill(command_line::whole_number(name, text, 1, most));
    return cells;
  }
  std::size_t begin = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t end = axis < 2 ? text.find('x', begin) : text.size();
    if (end == std::string::npos)
      throw bad_input(fmt::format(
          "{} {}: expected one size, or three sizes with x between them, as in 512 or 400x300x200", name, text));
    cells[axis] = command_line::whole_number(name, text.substr(begin, end - begin), 1, most);
    begin = end + 1;
  }
  return cells;
}

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  constexpr std::int64_t most = 1000000000;
  const setter to_cells = [&r](const std::string& name, const std::string& text) { r.cells = size(name, text); };
  return {
      {"SIZE", "", "number of cells, as in 400x300x200; 300 means 300x300x300 (default: 256; 512 on GPUs)", to_cells},
      {"--size", "NXxNYxNZ", "the same as SIZE, given as an option", to_cells},
      {"--order", "N", "order in space: 2, 4, ... 16 (8)", to_whole(r.order, 1, 2 * kernels::most_radius)},
      {"--steps", "N", "time steps (100)", to_whole(r.steps, 1, most)},
      devices_option(r.devices),
      {"--cut", "HOW", "slabs: cut the grid along x; pencils: along x and y; boxes: along all axes (slabs)",
       to_one_of<cut>(r.how, {{"slabs", cut::slabs}, {"pencils", cut::pencils}, {"boxes", cut::boxes}})},
      {"--exchange", "HOW",
       "copied: neighbours' cells are copied into a halo; direct: kernels read neighbours' cells remotely, which needs "
       "slabs (copied)",
       to_one_of<exchange>(r.by, {{"copied", exchange::copied}, {"direct", exchange::direct}})},
      {"--check", "", "repeat the computation on one device, and compare the results bit by bit", to_flag(r.check)},
      {"--output", "NAME",
       "write frames of the middle plane perpendicular to y: NAME-STEP.png and NAME-STEP.npy (float32, x before z); a "
       "NAME that ends in .png or .npy selects one of the two formats",
       to_text(r.output)},
      {"--every", "STEPS", "steps from one frame to the next (a tenth of all steps)", to_whole(r.every, 1, most)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help),
  };
}

std::string help_text() {
  request defaults;
  return "Usage: hpe wave [options] [SIZE]\n\n"
         "Computes a wave on a grid of cells, by a finite-difference stencil, on several devices.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe wave 400x300x200 --steps 500 --output wave\n"
         "  HPE_DEVICES=soft:4 hpe wave --cut pencils --order 4 --check\n";
}

/// Returns a field whose medium has two layers. The initial wave is a round hill near the middle of the grid.
field make_field(const triple& cells, std::int64_t order, const triple& parts, exchange by) {
  const auto fast = static_cast<float>(0.9 * stable_speed(order));
  field f(
      cells, order, parts,
      [&](std::int64_t, std::int64_t, std::int64_t z) { return 2 * z < cells[2] ? 0.4F * fast : fast; }, by);
  const auto hill = [&](std::int64_t i, std::size_t axis) {
    constexpr double width = 5;
    const double distance = (static_cast<double>(i) - 0.5 * static_cast<double>(cells[axis])) / width;
    return std::exp(-distance * distance);
  };
  std::vector<double> along[3];
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::int64_t i = 0; i < cells[axis]; ++i) along[axis].push_back(hill(i, axis));
  f.set([&](std::int64_t x, std::int64_t y, std::int64_t z) {
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    const auto value = static_cast<float>(along[0][at(x)] * along[1][at(y)] * along[2][at(z)]);
    return value > 1e-12F ? value : 0.F;
  });
  return f;
}

/// Runs all steps. Returns their duration in seconds, without the time to write frames.
double run_steps(field& f, const request& r, const command_line::output_files& frames) {
  constexpr std::int64_t least = 10, pauses = 50;
  // The loop pauses and waits for the devices at regular intervals, to show the progress and to write frames.
  const std::int64_t pause = std::max(least, r.steps / pauses);
  const std::int64_t frame =
      r.output.empty() ? r.steps + 1 : (r.every > 0 ? r.every : std::max<std::int64_t>(1, r.steps / 10));
  command_line::progress progress("step", static_cast<double>(r.steps), r.quiet);
  double seconds = 0;
  synchronize();
  auto begin = std::chrono::steady_clock::now();
  for (std::int64_t t = 1; t <= r.steps; ++t) {
    f.step();
    const bool last = t == r.steps, shown = t % frame == 0;
    if (!last && !shown && t % pause != 0) continue;
    synchronize();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (shown) write_frame(frames, t, r.cells, f.values(r.cells[1] / 2, r.cells[1] / 2 + 1));
    progress.at(static_cast<double>(t));
    begin = std::chrono::steady_clock::now();
  }
  return seconds;
}

int run(request r) {
  const int devices = command_line::devices_of(r.devices);
  const std::int64_t usual = device_info(0).kind == HPE_DEVICE_CUDA ? 512 : 256;
  if (r.cells[0] == 0) r.cells.fill(usual);
  const triple parts = arrange(devices, r.how);
  const std::string size = fmt::format("{} x {} x {} cells", r.cells[0], r.cells[1], r.cells[2]);
  constexpr double arrays = 3;
  const double cells =
      static_cast<double>(r.cells[0]) * static_cast<double>(r.cells[1]) * static_cast<double>(r.cells[2]);
  command_line::check_room(size, {arrays * cells * sizeof(float), r.check ? 2 * cells * sizeof(float) : 0}, devices);
  if (r.check)
    command_line::check_room(size + ", repeated on one device", {.on_devices = arrays * cells * sizeof(float)}, 1);
  const command_line::output_files frames = command_line::outputs_named(r.output, {".png", ".npy"}, {".png", ".npy"});
  std::vector<std::string> outputs = frame_of(frames, r.steps).names();
  outputs.push_back(r.json);
  command_line::check_outputs(outputs);

  field f = make_field(r.cells, r.order, parts, r.by);
  const double seconds = run_steps(f, r, frames);
  const double rate = cells * static_cast<double>(r.steps) / seconds;
  const std::string title = fmt::format("{} on {} x {} x {} devices, order {}, {} step{}", size, parts[0], parts[1],
                                        parts[2], r.order, r.steps, r.steps == 1 ? "" : "s");
  bool same = true;
  if (r.check) {
    field one = make_field(r.cells, r.order, {1, 1, 1}, exchange::copied);
    for (std::int64_t t = 0; t < r.steps; ++t) one.step();
    const std::vector<float> got = f.values(), wanted = one.values();
    same = std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0;
  }
  std::string text = fmt::format("{}: {:.3f} s\n{:.1f} million points a second, {:.1f} GB/s at 16 bytes a point\n",
                                 title, seconds, rate * 1e-6, 16 * rate * 1e-9);
  if (r.check) text += same ? "the same bits as on one device\n" : "NOT the same bits as on one device\n";
  command_line::report result{"hpe wave",
                              "a wave on a grid of cells, by a stencil",
                              title,
                              1,
                              command_line::names_of_devices(devices),
                              {{"time", seconds, "s"}, {"points a second", rate * 1e-6, "M/s"}}};
  if (r.check) result.figures.push_back({"the same bits as on one device", same ? 1. : 0., "", "1", same});
  command_line::answer(result, text, r.json, r.quiet);
  return same ? 0 : command_line::failed;
}

}  // namespace

}  // namespace hpe::fdtd

int fdtd_main(int argc, char** argv) {
  return hpe::command_line::guarded("hpe wave", [&] {
    hpe::fdtd::request r;
    hpe::command_line::read(hpe::fdtd::options_of(r), argc, argv);
    if (!r.help) return hpe::fdtd::run(r);
    hpe::command_line::print_help(hpe::fdtd::help_text());
    return 0;
  });
}
