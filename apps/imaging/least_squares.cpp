// Least-squares fits of many paths to one path. Each device has a part of the paths. Devices do not communicate.

#include <fmt/core.h>

#include <algorithm>
#include <random>

#include "apps/files/element_file.h"
#include "apps/imaging/imaging_program.h"
#include "kernels/imaging.h"

namespace hpe::imaging {

namespace {

using hpe::kernels::fit_paths;

constexpr std::size_t values_of_a_point = 3, values_of_a_fit = 9;

struct request : common {
  std::int64_t paths = 1 << 18, points = 32, segment = std::int64_t{256} << 20, seed = 1;
  std::string file, reference;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  const setter to_paths = [&r](const std::string& name, const std::string& text) {
    r.paths = whole_number(name, text, 1, std::int64_t{1} << 32);
  };
  return with_common(
      {{"PATHS|FILE", "", "the number of random paths (2^18); or a file: .npy, f32, PATHS x POINTS x 3",
        to_size_or_file(to_paths, r.file)},
       {"--points", "N", "points of a random path (32)", to_whole(r.points, 3, 4096)},
       {"--reference", "FILE", "the reference path: .npy, f32, POINTS x 3 (the first path)", to_text(r.reference)},
       {"--segment", "BYTES", "device memory for the paths and results of one segment (256M)", to_whole(r.segment, 1)},
       {"--seed", "N", "seed of the random paths (1)", to_whole(r.seed, 0)}},
      r, "write the matrices: .npy, f32, PATHS x 3 x 3");
}

std::string help_text() {
  request defaults;
  return "Usage: hpe least-squares [options] [PATHS|FILE]\n\n"
         "Uses all devices to compare paths of points in space with a reference path: computes for each path the\n"
         "3 x 3 matrix M = pinv(A) R that brings its points A nearest to the points R of the reference, by least\n"
         "squares. The matrix is 0 if the points are in a plane through the origin.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe least-squares 2^20 --points 64\n"
         "  hpe least-squares paths.npy --reference first.npy --output matrices.npy\n";
}

std::vector<float> read_values(const std::string& file, std::size_t axes, std::vector<std::uint64_t>& shape) {
  const files::description d = files::describe(file);
  d.must_hold("f32");
  shape = d.shape;
  if (shape.size() != axes || shape.back() != values_of_a_point)
    throw bad_input(fmt::format("{}: {} axes are needed, the last of 3 coordinates", file, axes));
  std::vector<float> values(d.elements(sizeof(float)));
  files::read(d, values.data());
  return values;
}

std::vector<float> paths_of(request& r, bool leads) {
  if (!r.file.empty()) {
    std::vector<std::uint64_t> shape;
    std::vector<float> values = read_values(r.file, 3, shape);
    r.paths = static_cast<std::int64_t>(shape[0]);
    r.points = static_cast<std::int64_t>(shape[1]);
    return values;
  }
  std::vector<float> values(leads ? static_cast<std::size_t>(r.paths * r.points) * values_of_a_point : 0);
  std::mt19937 random(static_cast<std::uint32_t>(r.seed));
  for (float& v : values) v = static_cast<float>(random()) * 0x1p-31F - 1;
  return values;
}

std::vector<float> reference_of(const request& r, const std::vector<float>& paths) {
  const std::size_t count = static_cast<std::size_t>(r.points) * values_of_a_point;
  if (r.reference.empty())
    return {paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(std::min(count, paths.size()))};
  std::vector<std::uint64_t> shape;
  std::vector<float> values = read_values(r.reference, 2, shape);
  if (values.size() != count)
    throw bad_input(fmt::format("--reference {}: {} points; the paths have {}", r.reference, shape[0], r.points));
  return values;
}

void work(member& me, const request& r, const std::vector<float>& paths, const std::vector<float>& reference,
          std::vector<float>& fits) {
  const std::size_t path_values = static_cast<std::size_t>(r.points) * values_of_a_point;
  const std::size_t path_bytes = path_values * sizeof(float), fit_bytes = values_of_a_fit * sizeof(float);
  const division from = divide(r.paths, me.size(), path_bytes), to = divide(r.paths, me.size(), fit_bytes);
  const std::size_t mine = from[static_cast<std::size_t>(me.rank())].bytes / path_bytes;
  const std::size_t at_most = std::clamp<std::size_t>(static_cast<std::size_t>(r.segment) / (path_bytes + fit_bytes), 1,
                                                      std::max<std::size_t>(mine, 1));
  const hpe::array<float> there(at_most * path_values, on_device(me.device()));
  const hpe::array<float> reference_there(path_values, on_device(me.device()));
  const hpe::array<float> result(at_most * values_of_a_fit, on_device(me.device()));
  const hpe::kernel<fit_paths> kernel(kernels(), "imaging_fit_paths");

  me.measure(r.repeats, [&] {
    const std::byte* input = nullptr;
    const std::byte* compared = nullptr;
    std::byte* output = nullptr;
    me.in(phase::exchange, [&] {
      input = me.fetch(paths.data(), from);
      compared = me.broadcast_host(reference.data(), path_bytes);
      output = me.room(fits.data(), to);
    });
    me.in(phase::links, [&] { hpe::copy(reference_there.data(), compared, path_bytes); });
    for (std::size_t first = 0; first < mine; first += at_most) {
      const std::size_t count = std::min(at_most, mine - first);
      me.in(phase::links, [&] { hpe::copy(there.data(), input + first * path_bytes, count * path_bytes); });
      const fit_paths p{there.data(), reference_there.data(), result.data(), count,
                        static_cast<std::uint32_t>(r.points)};
      me.in(phase::kernels, [&] {
        hpe::launch_on(me.device(), kernel, grid_for(count), p, hpe::in(there.span().first(count * path_values)),
                       hpe::in(reference_there), hpe::out(result.span().first(count * values_of_a_fit)));
      });
      me.in(phase::links, [&] { hpe::copy(output + first * fit_bytes, result.data(), count * fit_bytes); });
    }
    me.in(phase::exchange, [&] { me.deliver(fits.data(), to); });
  });
}

}  // namespace

int run_least_squares(const make_team& make, int argc, char** argv) {
  request r;
  const std::unique_ptr<team> all = begin(make, options_of(r), r, help_text, argc, argv);
  if (all == nullptr) return 0;
  const auto outputs = checked_outputs(r.output, r.json, output_kind::array, {r.file, r.reference});
  const double values =
      static_cast<double>(r.paths) * static_cast<double>(values_of_a_point * r.points + values_of_a_fit);
  if (r.file.empty()) check_memory(fmt::format("{} paths of {} points", r.paths, r.points), *all, values, 0);
  const std::vector<float> paths = paths_of(r, all->leads());
  const std::vector<float> reference = reference_of(r, paths);
  std::vector<float> fits(all->leads() ? static_cast<std::size_t>(r.paths) * values_of_a_fit : 0);
  const times t = all->run([&](member& me) { work(me, r, paths, reference, fits); });
  if (all->leads() && outputs.has(".npy"))
    files::write(outputs.stem + ".npy", "f32", {static_cast<std::uint64_t>(r.paths), 3, 3}, fits.data(), sizeof(float));
  tell("least-squares", fmt::format("{} paths of {} points", r.paths, r.points), r, *all, t);
  return 0;
}

}  // namespace hpe::imaging
