#include "apps/fdtd/fdtd_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "apps/command_line/values.h"
#include "apps/fdtd/field.h"

namespace hpe::fdtd {

namespace {

struct request {
  bool help = false;
  triple cells{0, 0, 0};
  std::int64_t order = 8, steps = 100, devices = 0;
  cut how = cut::slabs;
  bool check = false;
};

triple size(const std::string& name, const std::string& text) {
  constexpr std::int64_t most = 100000;
  triple cells{};
  std::size_t begin = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t end = axis < 2 ? text.find('x', begin) : text.size();
    if (end == std::string::npos) throw bad_input(fmt::format("{} \"{}\": it looks like 512x512x512", name, text));
    cells[axis] = command_line::whole_number(name, text.substr(begin, end - begin), 1, most);
    begin = end + 1;
  }
  return cells;
}

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  constexpr std::int64_t most = 1000000000;
  return {
      {"--size", "NXxNYxNZ", "cells (256x256x256; 512x512x512 on GPUs)",
       [&r](const std::string& name, const std::string& text) { r.cells = size(name, text); }},
      {"--order", "N", "order in space: 2, 4, ... 16 (8)", to_whole(r.order, 1, 2 * kernels::fdtd_most_radius)},
      {"--steps", "N", "time steps (100)", to_whole(r.steps, 1, most)},
      {"--devices", "N", "how many devices share the grid (all)", to_whole(r.devices, 1, most)},
      {"--cut", "HOW", "slabs: along x; pencils: along x and y; boxes: along all axes (slabs)",
       to_one_of<cut>(r.how, {{"slabs", cut::slabs}, {"pencils", cut::pencils}, {"boxes", cut::boxes}})},
      {"--check", "", "compute it once more on one device, and compare every bit", to_flag(r.check)},
      {"--help", "", "this text", to_flag(r.help)},
  };
}

std::string help_text() {
  constexpr std::size_t column = 20;
  request defaults;
  return "Usage: hpe wave [options]\n\n"
         "Computes a wave on a grid of cells, by a finite-difference stencil, on several devices.\n\n" +
         command_line::lines_of_help(options_of(defaults), column);
}

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv);
  return r;
}

/// Two layers; the wave begins as a round hill near the middle.
field make_field(const triple& cells, std::int64_t order, const triple& parts) {
  const auto fast = static_cast<float>(0.9 * stable_speed(order));
  field f(cells, order, parts,
          [&](std::int64_t, std::int64_t, std::int64_t z) { return 2 * z < cells[2] ? 0.4F * fast : fast; });
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

int run(request r) {
  const bool gpus = device_info(0).kind == HPE_DEVICE_CUDA;
  if (r.cells[0] == 0) r.cells = gpus ? triple{512, 512, 512} : triple{256, 256, 256};
  if (r.devices == 0) r.devices = device_count();
  const triple parts = arrange(static_cast<int>(std::min<std::int64_t>(r.devices, 1 << 20)), r.how);
  field f = make_field(r.cells, r.order, parts);
  synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t t = 0; t < r.steps; ++t) f.step();
  synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double points = static_cast<double>(r.cells[0] * r.cells[1] * r.cells[2]) * static_cast<double>(r.steps);
  fmt::print("{} x {} x {} cells on {} x {} x {} devices, order {}, {} steps: {:.3f} s\n", r.cells[0], r.cells[1],
             r.cells[2], parts[0], parts[1], parts[2], r.order, r.steps, seconds);
  fmt::print("{:.1f} million points a second, {:.1f} GB/s at 16 bytes a point\n", points / seconds * 1e-6,
             16 * points / seconds * 1e-9);
  if (!r.check) return 0;
  field one = make_field(r.cells, r.order, {1, 1, 1});
  for (std::int64_t t = 0; t < r.steps; ++t) one.step();
  const std::vector<float> got = f.values(), wanted = one.values();
  const bool same = std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0;
  fmt::print("{}\n", same ? "the same bits as on one device" : "NOT the same bits as on one device");
  return same ? 0 : 1;
}

}  // namespace

}  // namespace hpe::fdtd

int fdtd_main(int argc, char** argv) {
  try {
    const hpe::fdtd::request r = hpe::fdtd::parse(argc, argv);
    if (r.help) {
      std::fputs(hpe::fdtd::help_text().c_str(), stdout);
      return 0;
    }
    return hpe::fdtd::run(r);
  } catch (const hpe::fdtd::bad_input& e) {
    std::fprintf(stderr, "hpe wave: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hpe wave: %s\n", e.what());
    return 1;
  }
}
