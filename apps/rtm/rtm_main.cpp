#include "apps/rtm/rtm_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/rtm/migration.h"
#include "apps/rtm/model/model_file.h"
#include "apps/rtm/model/model_picture.h"
#include "apps/rtm/rtm_request.h"
#include "apps/rtm/verbs.h"
#include "hpe/hpe.hpp"

namespace hpe::rtm {

namespace {

std::int64_t whole(double value, const std::string& what) {
  if (value != std::floor(value) || std::abs(value) > 1e6)
    throw bad_input(what + ": " + std::to_string(value) + " is not a number of cells");
  return static_cast<std::int64_t>(value);
}

/// Throws bad_input if host memory is too small for the model, the smooth model, the image, and temporary copies.
void check_size(std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  constexpr double copies = 6;
  const double cells = static_cast<double>(nx) * static_cast<double>(ny) * static_cast<double>(nz);
  command_line::check_room(fmt::format("models of {} x {} x {} cells", nx, ny, nz),
                           {.on_host = copies * cells * sizeof(float)}, 0);
}

volume velocities(const request& r) {
  const bool needs_file = r.model == "marmousi" || r.model == "raw";
  if (needs_file && r.file.empty()) throw bad_input("--model " + r.model + " needs the file with the velocities");
  if (!needs_file && !r.file.empty())
    throw bad_input("--model " + r.model + " is built in and reads no file; for " + r.file + " use --model raw");
  if (r.model == "marmousi") return read_raw(r.file, {1601, 1, 401, 7.5, 1000, "zyx"});

  std::int64_t n[3] = {600, 1, 300};
  if (!r.size.empty()) {
    const std::vector<double> size = numbers(r.size, 'x', 3, 3, "--size");
    for (std::size_t i = 0; i < 3; ++i) n[i] = whole(size[i], "--size");
    check_size(n[0], n[1], n[2]);
  }
  if (r.model == "raw") {
    if (r.size.empty() || r.spacing <= 0) throw bad_input("--model raw needs --size and --spacing");
    if (r.unit != "m/s" && r.unit != "km/s") throw bad_input("--unit " + r.unit + ": m/s and km/s are possible");
    return read_raw(r.file, {n[0], n[1], n[2], r.spacing, r.unit == "m/s" ? 1.0 : 1000.0, r.order});
  }
  const double spacing = r.spacing > 0 ? r.spacing : 3000.0 / static_cast<double>(std::max<std::int64_t>(n[2], 1));
  if (r.model == "salt") return salt_model(n[0], n[1], n[2], spacing);
  if (r.model == "flat")
    return flat_model(n[0], n[1], n[2], spacing, 0.5 * static_cast<double>(n[2]) * spacing, 2000, 2600);
  throw bad_input("--model " + r.model + ": salt, flat, marmousi and raw are possible");
}

std::int32_t depth_cell(double metres, const volume& v) {
  return static_cast<std::int32_t>(metres < 0 ? 2 : std::min(std::lround(metres / v.spacing.z), 1000000L));
}

std::vector<kernels::point> receivers(const request& r, const volume& v) {
  std::vector<double> range{0, static_cast<double>(v.nx - 1) * v.spacing.x, 2 * v.spacing.x};
  if (!r.receivers.empty()) range = numbers(r.receivers, ':', 3, 3, "--receivers");
  const double last = static_cast<double>(v.nx - 1) * v.spacing.x;
  if (range[0] < 0 || range[1] < range[0] || range[1] > last + 0.5 * v.spacing.x || range[2] <= 0)
    throw bad_input("--receivers " + r.receivers + ": expected positions from 0 to " + std::to_string(last) +
                    " m, in rising order, with a step above 0");
  // With a smaller step, a cell would have several receivers. The factor allows for rounding.
  if (range[2] < 0.999 * v.spacing.x)
    throw bad_input(
        fmt::format("--receivers {}: the step must not be below the side of a cell, {} m", r.receivers, v.spacing.x));
  const bool thin = v.ny <= boundaries{}.thin;
  const auto y_step = thin ? 1 : std::max<std::int64_t>(1, std::lround(range[2] / v.spacing.y));
  std::vector<kernels::point> all;
  for (double x = range[0]; x <= range[1] + 1e-6 * range[2]; x += range[2])
    for (std::int64_t y = 0; y < v.ny; y += y_step)
      all.push_back({static_cast<std::int32_t>(std::lround(x / v.spacing.x)), static_cast<std::int32_t>(y),
                     depth_cell(r.receiver_depth, v)});
  return all;
}

std::vector<kernels::point> sources(const request& r, const volume& v) {
  const std::vector<double> counts = numbers(r.shots.empty() ? "16" : r.shots, 'x', 1, 2, "--shots");
  const std::int64_t across = whole(counts[0], "--shots"), along = counts.size() > 1 ? whole(counts[1], "--shots") : 1;
  if (across < 1 || along < 1 || across > v.nx || along > v.ny)
    throw bad_input("--shots " + r.shots + ": from 1 to " + std::to_string(v.nx) + " across and 1 to " +
                    std::to_string(v.ny) + " along y are possible");
  std::vector<kernels::point> all;
  for (std::int64_t i = 0; i < across; ++i)
    for (std::int64_t j = 0; j < along; ++j)
      all.push_back({static_cast<std::int32_t>((2 * i + 1) * v.nx / (2 * across)),
                     static_cast<std::int32_t>((2 * j + 1) * v.ny / (2 * along)), depth_cell(r.shot_depth, v)});
  return all;
}

migration_settings settings(const request& r, const volume& v) {
  const auto [slow, fast] = std::minmax_element(v.values.begin(), v.values.end());
  migration_settings s;
  s.frequency = r.frequency > 0 ? r.frequency : default_frequency(*slow, longest_side(v));
  check_frequency(v, s.frequency);
  s.order = r.space_order;
  s.time_step = r.time_step > 0 ? r.time_step : 0.9 * stable_step(v.ny == 1 ? 2 : 3, v.spacing, *fast, s.order);
  const double time = r.time > 0 ? r.time : record_length(v, s.frequency);
  if (time / s.time_step > 10'000'000)
    throw bad_input(
        fmt::format("a record of {:.4g} s takes more than ten million steps of {:.4g} s", time, s.time_step));
  s.steps = std::max<std::int64_t>(1, std::lround(time / s.time_step));
  s.keep_every = r.keep_every > 0 ? r.keep_every : default_keep_every(s.frequency, s.time_step);
  s.keep = r.keep;
  s.edges.sponge = r.sponge;
  s.edges.cpml = r.cpml;
  s.edges.free_surface = r.free_surface;
  if (r.data != "mute" && r.data != "residual")
    throw bad_input("--data " + r.data + ": mute and residual are possible");
  s.data = r.data == "mute" ? preparation::mute : preparation::residual;
  return s;
}

int run(const request& r) {
  const int devices = command_line::devices_of(r.devices);
  const volume given = velocities(r);
  if (r.extrude > 1) check_size(given.nx, r.extrude, given.nz);
  const volume truth = r.extrude > 1 ? extrude(given, r.extrude) : given;
  const std::vector<kernels::point> listening = receivers(r, truth), firing = sources(r, truth);
  migration_settings s = settings(r, truth);
  s.devices = devices;
  // Each sample of a trace is stored twice on the devices, and twice on the host while the data are prepared.
  const double record = 2.0 * static_cast<double>(listening.size()) * static_cast<double>(s.steps) * sizeof(float);
  command_line::check_room(fmt::format("records of {} receivers and {} steps", listening.size(), s.steps),
                           {record, record}, devices);
  const volume smoothed = smooth(truth, r.smooth < 0 ? 8 * truth.spacing.z : r.smooth, 6 * truth.spacing.z);
  const command_line::output_files files =
      command_line::outputs_named(r.output, {".png", ".f32", ".npy", ".sgy"}, {".png", ".f32"});
  std::vector<std::string> outputs = files.names();
  outputs.push_back(r.json);
  command_line::check_outputs(outputs, {r.file});

  const std::string title =
      fmt::format("{} x {} x {} cells of {} m, {} shots, {} receivers, {} steps of {:.3g} ms, {:.3g} Hz, {} device{}",
                  truth.nx, truth.ny, truth.nz, truth.spacing.text(), firing.size(), listening.size(), s.steps,
                  s.time_step * 1e3, s.frequency, s.devices, s.devices == 1 ? "" : "s");
  constexpr int passes = 3;
  if (!r.quiet) fmt::print(stderr, "{}\n{}\n", title, estimate(truth, s, listening.size(), firing.size(), passes));
  command_line::progress progress("shot", static_cast<double>(firing.size()), r.quiet);
  std::size_t done = 0;
  simulation on(truth, std::max(fastest(truth), fastest(smoothed)), s,
                [&](const std::string& what, double part) { progress.at(static_cast<double>(done) + part, what); });
  const medium<float> ground = on.medium_of(truth);
  migration work(on, smoothed);
  for (const kernels::point& source : firing) {
    const shot one{source, listening};
    on.begin_shot(passes);
    work.add(one, on.record(ground, one, "recording"));
    progress.at(static_cast<double>(++done));
  }
  const double seconds = progress.seconds();

  volume image = work.image();
  if (!r.raw_image) image = without_background(image);
  std::string written;
  for (const std::string& file : files.names()) {
    const bool picture = file.ends_with(".png");
    if (picture)
      pictures::write_png(file, draw(truth, image, r.gain, r.width));
    else
      save(file, image, {title, "Written by hpe rtm"});
    written += fmt::format("{}: {}\n", file,
                           picture ? "velocities, image, and image with the model's interfaces"
                                   : fmt::format("{} x {} x {} float32, depth fastest", image.nx, image.ny, image.nz));
  }
  const double points =
      static_cast<double>(truth.cells()) * static_cast<double>(s.steps) * static_cast<double>(firing.size());
  command_line::answer({"hpe rtm",
                        "a seismic image by reverse time migration",
                        title,
                        1,
                        command_line::names_of_devices(devices),
                        {{"time", seconds, "s"},
                         {"a shot", seconds / static_cast<double>(firing.size()), "s"},
                         {"cells of a record", points / seconds * 1e-6, "M/s"}}},
                       fmt::format("{}{:.1f} s\n", written, seconds), r.json, r.quiet);
  return 0;
}

}  // namespace

}  // namespace hpe::rtm

int rtm_main(int argc, char** argv) {
  using namespace hpe::rtm;
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "model" || verb == "migrate")
    return hpe::command_line::guarded("hpe rtm " + verb, [&] {
      if (hpe::command_line::one_of_several_ranks()) hpe::command_line::become("hpe-rtm-mpi", argv);
      team alone;
      return verb == "model" ? model_survey(argc - 1, argv + 1, alone) : migrate_survey(argc - 1, argv + 1, alone);
    });
  const int skipped = verb == "demo" ? 1 : 0;
  return hpe::command_line::guarded("hpe rtm", [&] {
    const request r = parse(argc - skipped, argv + skipped);
    if (!r.help) return run(r);
    hpe::command_line::print_help(help_text());
    return 0;
  });
}
