// Tomosynthesis by multiplicative corrections. Devices divide the views for the comparison of projections with
// measurements, and the slices for the correction. Each device has the whole volume and all ratios. After each half of
// an iteration, each device receives the new parts of all other devices.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/files/element_file.h"
#include "apps/imaging/imaging_program.h"
#include "kernels/imaging.h"

namespace hpe::imaging {

namespace {

using hpe::kernels::compare_views;
using hpe::kernels::correct_slices;
using hpe::kernels::tomography;

struct request : common {
  std::int64_t slices = 16, rows = 128, columns = 128, views = 15, iterations = 8;
  double step = 0.5;
  std::string file;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return with_common(
      {{"SIZE|FILE", "",
        "SLICESxROWSxCOLUMNS of a generated volume, which is projected (16x128x128); or measured views:\n"
        ".npy, f32, VIEWS x ROWS x COLUMNS",
        to_size_or_file(to_sizes({&r.slices, &r.rows, &r.columns}), r.file)},
       {"--slices", "N", "number of slices of the volume that is computed from measured views (16)",
        to_whole(r.slices, 1, 1 << 16)},
       {"--views", "N", "number of views of the generated volume (15)", to_whole(r.views, 1, 1 << 16)},
       {"--step", "COLUMNS",
        "columns by which a slice moves relative to the next slice, from one view to the next (0.5)",
        to_not_negative(r.step)},
       {"--iterations", "N", "number of corrections of the volume (8)", to_whole(r.iterations, 1)}},
      r, "write the volume as .npy, f32, SLICES x ROWS x COLUMNS; or its middle slice as .png");
}

std::string help_text() {
  request defaults;
  return "Usage: hpe tomosynthesis [options] [SIZE|FILE]\n\n"
         "Reconstructs a volume from X-ray views over all devices. Rays are parallel: in view v, slice z appears\n"
         "(v - (VIEWS - 1) / 2) * step * z columns to the right, and a pixel is the mean of all slices along its ray.\n"
         "Each iteration multiplies the volume by the mean ratio of measured to computed pixels.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe tomosynthesis 64x512x1024 --iterations 20\n"
         "  hpe tomosynthesis views.npy --slices 40 --output volume.npy\n";
}

tomography geometry_of(const request& r) {
  return {static_cast<std::int32_t>(r.views), static_cast<std::int32_t>(r.slices), static_cast<std::int32_t>(r.rows),
          static_cast<std::int32_t>(r.columns), static_cast<float>(r.step)};
}

/// Makes a grey volume with bright balls.
std::vector<float> made_up_volume(const request& r) {
  std::vector<float> volume(static_cast<std::size_t>(r.slices * r.rows * r.columns), 40);
  constexpr std::array<std::array<double, 4>, 3> balls{
      {{0.5, 0.5, 0.5, 0.3},
       {0.2, 0.3, 0.25, 0.15},
       {0.8, 0.6, 0.75, 0.12}}};  // z, y and x of the centre, and the radius, as fractions of the volume
  for (std::int64_t z = 0; z < r.slices; ++z)
    for (std::int64_t y = 0; y < r.rows; ++y)
      for (std::int64_t x = 0; x < r.columns; ++x)
        for (const auto& b : balls) {
          const auto off = [](std::int64_t at, std::int64_t of, double from) {
            return (static_cast<double>(at) + 0.5) / static_cast<double>(of) - from;
          };
          if (std::hypot(off(z, r.slices, b[0]), off(y, r.rows, b[1]), off(x, r.columns, b[2])) < b[3])
            volume[static_cast<std::size_t>((z * r.rows + y) * r.columns + x)] += 100;
        }
  return volume;
}

std::vector<float> views_of(request& r, bool leads) {
  if (!r.file.empty()) {
    const files::description d = files::describe(r.file);
    d.must_hold("f32");
    if (d.shape.size() != 3) throw bad_input(fmt::format("{} has {} axes; views have three", r.file, d.shape.size()));
    r.views = static_cast<std::int64_t>(d.shape[0]);
    r.rows = static_cast<std::int64_t>(d.shape[1]);
    r.columns = static_cast<std::int64_t>(d.shape[2]);
    std::vector<float> views(d.elements(sizeof(float)));
    files::read(d, views.data());
    return views;
  }
  const auto count = static_cast<std::size_t>(r.views * r.rows * r.columns);
  if (!leads) return {};
  std::vector<float> views(count);
  const std::vector<float> volume = made_up_volume(r);
  const std::vector<float> ones(count, 1);
  compare_views p{geometry_of(r), volume.data(), ones.data(), views.data(), 0, static_cast<std::int32_t>(r.views)};
  for (std::uint64_t i = 0; i < p.count(); ++i) {
    p.element(i);
    views[i] = 1 / views[i];
  }
  return views;
}

struct result {
  std::vector<float> volume;
  double distance = 0;  ///< mean distance of the ratios of the last iteration from 1
};

void work(member& me, const request& r, const std::vector<float>& views, result& to) {
  const auto plane = static_cast<std::size_t>(r.rows * r.columns);
  const std::size_t plane_bytes = plane * sizeof(float);
  const division slices = divide(r.slices, me.size(), plane_bytes), by_view = divide(r.views, me.size(), plane_bytes);
  const auto first_of = [&](const division& d) {
    return static_cast<std::int32_t>(d[static_cast<std::size_t>(me.rank())].begin / plane_bytes);
  };
  const auto count_of = [&](const division& d) {
    return static_cast<std::int32_t>(d[static_cast<std::size_t>(me.rank())].bytes / plane_bytes);
  };
  const auto where = on_device(me.device());
  const std::size_t my_view_bytes = by_view[static_cast<std::size_t>(me.rank())].bytes;
  const hpe::array<float> volume(static_cast<std::size_t>(r.slices) * plane, where);
  const hpe::array<float> ratios(static_cast<std::size_t>(r.views) * plane, where);
  const hpe::array<float> measured(std::max<std::size_t>(my_view_bytes / sizeof(float), 1), where);
  const hpe::kernel<compare_views> compare(kernels(), "imaging_compare_views");
  const hpe::kernel<correct_slices> correct(kernels(), "imaging_correct_slices");
  const compare_views comparison{geometry_of(r), volume.data(),     measured.data(),
                                 ratios.data(),  first_of(by_view), count_of(by_view)};
  const correct_slices correction{geometry_of(r), ratios.data(), volume.data(), first_of(slices), count_of(slices)};
  const auto bytes_of = [](const hpe::array<float>& a) { return reinterpret_cast<std::byte*>(a.data()); };
  // All values of the initial volume are equal; each consists of four bytes of this value. Any value above 0 would do,
  // because the first correction replaces it.
  constexpr int bytes_of_gray = 0x3f;

  me.measure(r.repeats, [&] {
    const std::byte* input = nullptr;
    me.in(phase::exchange, [&] { input = me.fetch(views.data(), by_view); });
    me.in(phase::links, [&] { hpe::copy(measured.data(), input, my_view_bytes); });
    me.in(phase::kernels, [&] { hpe::fill(volume.data(), bytes_of_gray, volume.size() * sizeof(float)); });
    for (std::int64_t i = 0; i < r.iterations; ++i) {
      me.in(phase::kernels, [&] {
        if (comparison.part > 0)
          hpe::launch_on(me.device(), compare, grid_for(comparison.count()), comparison, hpe::in(volume),
                         hpe::in(measured), hpe::inout(ratios));
      });
      me.in(phase::exchange, [&] { me.all_gather(bytes_of(ratios), by_view); });
      me.in(phase::kernels, [&] {
        if (correction.part > 0)
          hpe::launch_on(me.device(), correct, grid_for(correction.count()), correction, hpe::in(ratios),
                         hpe::inout(volume));
      });
      me.in(phase::exchange, [&] { me.all_gather(bytes_of(volume), slices); });
    }
    me.in(phase::links, [&] {
      if (me.rank() == 0) hpe::copy(to.volume.data(), volume.data(), to.volume.size() * sizeof(float));
    });
  });
  if (me.rank() == 0) {
    for (const float ratio : ratios) to.distance += std::abs(static_cast<double>(ratio) - 1);
    to.distance /= static_cast<double>(ratios.size());
  }
}

}  // namespace

int run_tomosynthesis(const make_team& make, int argc, char** argv) {
  request r;
  const std::unique_ptr<team> all = begin(make, options_of(r), r, help_text, argc, argv);
  if (all == nullptr) return 0;
  const auto outputs = checked_outputs(r.output, r.json, output_kind::image, {r.file});
  const double pixels = static_cast<double>(r.rows) * static_cast<double>(r.columns);
  const auto planes = [&](double devices) {
    return static_cast<double>(r.views) + devices * static_cast<double>(r.slices + r.views);
  };
  const std::string volume = fmt::format("a volume of {} slices", r.slices);
  if (r.file.empty()) check_memory(volume, *all, pixels * planes(1), pixels * planes(all->devices_here()));
  const std::vector<float> views = views_of(r, all->leads());
  result to;
  const auto plane = static_cast<std::size_t>(r.rows * r.columns);
  if (all->leads()) to.volume.resize(static_cast<std::size_t>(r.slices) * plane);
  const times t = all->run([&](member& me) { work(me, r, views, to); });
  if (all->leads() && outputs.has(".npy")) {
    const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    files::write(outputs.stem + ".npy", "f32", {size(r.slices), size(r.rows), size(r.columns)}, to.volume.data(),
                 sizeof(float));
  }
  if (all->leads() && outputs.has(".png")) {
    const auto* const middle = to.volume.data() + static_cast<std::size_t>(r.slices / 2) * plane;
    write_image({outputs.stem, {".png"}}, {r.rows, r.columns, {middle, middle + plane}});
  }
  tell("tomosynthesis",
       fmt::format("{} iterations of {} x {} x {} values from {} views", r.iterations, r.slices, r.rows, r.columns,
                   r.views),
       r, *all, t,
       fmt::format("mean distance of measured and computed pixels before the last correction: {:.3g} %\n",
                   100 * to.distance));
  return 0;
}

}  // namespace hpe::imaging
