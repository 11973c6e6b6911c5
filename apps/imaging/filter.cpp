// Image filters. The image is one array over all devices, and kernels read the rows of neighbouring devices remotely.
// All threads of a kernel read the table of weights. Either each device has a copy of this table, or the table is
// stored once (docs/gpu-sm.md).

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>

#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/imaging/imaging_main.h"
#include "apps/imaging/imaging_program.h"
#include "apps/pictures/picture.h"
#include "kernels/imaging.h"

namespace hpe::imaging {

namespace {

using kernels::filter_image;
using kernels::load_path;

enum class shape { mean, gaussian, sharpen, edges, emboss };
enum class weights_in { each, first, host };

constexpr std::int64_t most_side = 63;

struct request {
  bool help = false, quiet = false, no_check = false;
  std::int64_t rows = 1024, columns = 1024, side = 3, devices = 0, repeats = 5;
  std::string file, weights, output, json;
  shape filter = shape::gaussian;
  weights_in where = weights_in::each;
  load_path loads = load_path::plain;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SIZE|FILE", "",
       "ROWSxCOLUMNS of a built-in picture, rings that get finer outwards (1024x1024); or an image: .png, grey or in "
       "colours, or .npy (f32, two axes)",
       to_size_or_file(to_sizes({&r.rows, &r.columns}), r.file)},
      {"--filter", "NAME", "mean, gaussian, sharpen, edges or emboss (gaussian)",
       to_one_of<shape>(r.filter, {{"mean", shape::mean},
                                   {"gaussian", shape::gaussian},
                                   {"sharpen", shape::sharpen},
                                   {"edges", shape::edges},
                                   {"emboss", shape::emboss}})},
      {"--side", "N", fmt::format("rows and columns of weights, an odd number from 3 to {} (3)", most_side),
       to_whole(r.side, 3, most_side)},
      {"--weights", "FILE", "the weights as .npy, f32, of as many rows as columns, instead of --filter and --side",
       to_text(r.weights)},
      {"--weights-in", "WHERE",
       "where the weights are stored: each: a copy on each device; first: the first device's memory; host: host memory "
       "(each)",
       to_one_of<weights_in>(r.where,
                             {{"each", weights_in::each}, {"first", weights_in::first}, {"host", weights_in::host}})},
      {"--loads", "HOW",
       "how kernels on GPUs read the weights: plain; read-only: through the cache for data that no thread writes; "
       "uncached: from memory each time (plain)",
       to_one_of<load_path>(
           r.loads,
           {{"plain", load_path::plain}, {"read-only", load_path::read_only}, {"uncached", load_path::uncached}})},
      {"--output", "FILE",
       "write the result: .png, with values from 0 to 255, or .npy for one channel; if FILE has no ending, "
       "a file of each of these formats",
       to_text(r.output)},
      devices_option(r.devices),
      repeats_option(r.repeats),
      {"--no-check", "", "do not compare the result with a plain loop on the host", to_flag(r.no_check)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help)};
}

std::string help_text() {
  request defaults;
  return "Usage: hpe filter [options] [SIZE|FILE]\n\n"
         "Filters an image on all devices: each pixel becomes the weighted sum of the pixels around it. Outside\n"
         "the image, the nearest pixel at the edge is used. Each device has a band of rows and reads the rows of its "
         "neighbours in place.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe filter photo.png --filter sharpen --side 5 --output sharp.png\n"
         "  hpe filter 4096x4096 --side 7 --weights-in host --loads read-only\n";
}

struct picture_data {
  std::int64_t rows, columns, channels;
  std::vector<float> values;
};

/// Makes a picture of rings that become narrower outwards; at the nearer edges they are two pixels wide.
picture_data built_in(std::int64_t rows, std::int64_t columns) {
  picture_data p{rows, columns, 1, std::vector<float>(static_cast<std::size_t>(rows * columns))};
  constexpr double middle = 127.5;
  const double finest = 0.5 * std::numbers::pi / static_cast<double>(std::min(rows, columns));
  for (std::int64_t y = 0; y < rows; ++y)
    for (std::int64_t x = 0; x < columns; ++x) {
      const auto dy = static_cast<double>(2 * y - rows), dx = static_cast<double>(2 * x - columns);
      const double value = middle + middle * std::cos(finest * (dx * dx + dy * dy) / 4);
      p.values[static_cast<std::size_t>(y * columns + x)] = static_cast<float>(std::round(value));
    }
  return p;
}

picture_data input_of(const request& r) {
  if (r.file.empty()) return built_in(r.rows, r.columns);
  if (files::is_npy(r.file)) {
    image i = read_image(r.file);
    return {i.rows, i.columns, 1, std::move(i.values)};
  }
  const pictures::pixels p = pictures::read_png(r.file, true);
  return {p.height, p.width, p.channels, {p.values.begin(), p.values.end()}};
}

std::vector<float> weights_of(const request& r) {
  if (!r.weights.empty()) {
    const image w = read_image(r.weights);
    if (w.rows != w.columns || w.rows % 2 == 0 || w.rows > most_side)
      throw bad_input(
          fmt::format("--weights {}: {} x {} values; as many rows as columns are needed, an odd number up "
                      "to {}",
                      r.weights, w.rows, w.columns, most_side));
    return w.values;
  }
  if (r.side % 2 == 0) throw bad_input(fmt::format("--side {}: an odd number is needed", r.side));
  const std::int64_t reach = r.side / 2;
  const auto all = static_cast<float>(r.side * r.side);
  std::vector<float> bell, weights;
  for (std::int64_t i = -reach; i <= reach; ++i)
    for (std::int64_t j = -reach; j <= reach; ++j) {
      const float width = static_cast<float>(r.side) / 5;
      bell.push_back(std::exp(-static_cast<float>(i * i + j * j) / (2 * width * width)));
    }
  const float sum = std::accumulate(bell.begin(), bell.end(), 0.0F);
  for (std::int64_t i = -reach; i <= reach; ++i)
    for (std::int64_t j = -reach; j <= reach; ++j) {
      const float one = i == 0 && j == 0 ? 1 : 0, soft = bell[weights.size()] / sum;
      switch (r.filter) {
        case shape::mean: weights.push_back(1 / all); break;
        case shape::gaussian: weights.push_back(soft); break;
        case shape::sharpen: weights.push_back(2 * one - soft); break;
        case shape::edges: weights.push_back(all * one - 1); break;
        case shape::emboss: weights.push_back(one + static_cast<float>(i + j) / static_cast<float>(reach)); break;
      }
    }
  return weights;
}

/// Filters the picture with a plain loop.
std::vector<float> filtered(const picture_data& p, const std::vector<float>& weights, std::int64_t reach) {
  std::vector<float> result(p.values.size());
  auto place = result.begin();
  for (std::int64_t y = 0; y < p.rows; ++y)
    for (std::int64_t x = 0; x < p.columns; ++x)
      for (std::int64_t c = 0; c < p.channels; ++c) {
        auto weight = weights.begin();
        for (std::int64_t i = y - reach; i <= y + reach; ++i)
          for (std::int64_t j = x - reach; j <= x + reach; ++j) {
            const std::int64_t row = std::clamp<std::int64_t>(i, 0, p.rows - 1);
            const std::int64_t column = std::clamp<std::int64_t>(j, 0, p.columns - 1);
            *place += *weight++ * p.values[static_cast<std::size_t>((row * p.columns + column) * p.channels + c)];
          }
        ++place;
      }
  return result;
}

void write(const command_line::output_files& outputs, const picture_data& shape, const float* values) {
  if (outputs.has(".npy"))
    files::write(outputs.stem + ".npy", "f32",
                 {static_cast<std::uint64_t>(shape.rows), static_cast<std::uint64_t>(shape.columns)}, values,
                 sizeof(float));
  if (!outputs.has(".png")) return;
  pictures::picture p(shape.columns, shape.rows);
  for (std::int64_t y = 0; y < shape.rows; ++y)
    for (std::int64_t x = 0; x < shape.columns; ++x, values += shape.channels)
      p.put(x, y,
            {std::round(values[0]), std::round(values[shape.channels / 2]), std::round(values[shape.channels - 1])});
  pictures::write_png(outputs.stem + ".png", p);
}

/// Returns the arrays of weights: one that all devices read, or one for each device.
std::vector<array<float>> placed(const std::vector<float>& weights, weights_in where, const std::vector<int>& devices) {
  std::vector<array<float>> all;
  const std::size_t copies = where == weights_in::each ? devices.size() : 1;
  for (std::size_t d = 0; d < copies; ++d) {
    all.emplace_back(weights.size(), where == weights_in::host ? on_host() : on_device(devices[d]));
    copy(all.back().data(), weights.data(), weights.size() * sizeof(float));
  }
  return all;
}

int run(const request& r) {
  const int count = command_line::devices_of(r.devices);
  command_line::output_files outputs = checked_outputs(r.output, r.json, output_kind::image, {r.file, r.weights});
  const auto room = [&](double values, const std::string& what) {
    command_line::check_room(what, {2 * values * sizeof(float), 3 * values * sizeof(float)}, count);
  };
  if (r.file.empty())
    room(static_cast<double>(r.rows) * static_cast<double>(r.columns),
         fmt::format("an image of {} x {} pixels", r.rows, r.columns));
  const std::vector<float> weights = weights_of(r);
  const picture_data given = input_of(r);
  room(static_cast<double>(given.values.size()), fmt::format("{} values of pixels", given.values.size()));
  if (given.channels > 1 && outputs.endings == std::vector<std::string>{".npy"})
    throw bad_input(fmt::format("--output {}: an image in colours can be written as .png only", r.output));
  if (given.channels > 1) std::erase(outputs.endings, ".npy");
  constexpr std::int64_t most_line = std::int64_t{1} << 31;
  if (given.values.empty() || given.rows >= most_line || given.columns * given.channels >= most_line)
    throw bad_input(
        fmt::format("an image of {} x {} pixels is empty or too large to be filtered", given.rows, given.columns));

  std::vector<int> devices(static_cast<std::size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  const placement over = count == 1 ? on_device(0) : block_distribution(devices);
  const array<float> source(given.values.size(), over), target(given.values.size(), over);
  copy(source.data(), given.values.data(), given.values.size() * sizeof(float));
  const std::vector<array<float>> tables = placed(weights, r.where, devices);
  const kernel<filter_image> kernel(kernels(), "imaging_filter");
  const auto reach = static_cast<std::int64_t>(std::sqrt(weights.size())) / 2;
  const std::int64_t line = given.columns * given.channels;
  const auto rows_of = [&](const array<float>& a, std::int64_t from, std::int64_t to) {
    const std::int64_t begin = std::max<std::int64_t>(from, 0), end = std::min(to, given.rows);
    return a.span().subspan(static_cast<std::size_t>(begin * line), static_cast<std::size_t>((end - begin) * line));
  };
  const auto filter = [&] {
    for (std::int64_t d = 0; d < count; ++d) {
      const std::int64_t first = given.rows * d / count, end = given.rows * (d + 1) / count;
      if (first == end) continue;
      const array<float>& table = tables[tables.size() == 1 ? 0 : static_cast<std::size_t>(d)];
      const filter_image p{source.data(),
                           target.data(),
                           table.data(),
                           static_cast<std::int32_t>(given.rows),
                           static_cast<std::int32_t>(given.columns),
                           static_cast<std::int32_t>(given.channels),
                           static_cast<std::int32_t>(reach),
                           static_cast<std::int32_t>(first),
                           static_cast<std::int32_t>(end - first),
                           r.loads};
      launch_on(static_cast<int>(d), kernel, grid_for(p.count()), p, in(rows_of(source, first - reach, end + reach)),
                in(table), out(rows_of(target, first, end)));
    }
  };
  const double time = command_line::median_seconds(r.repeats, r.quiet, filter);

  std::string beside;
  if (!r.no_check) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<float> wanted = filtered(given, weights, reach);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // Results may differ by rounding, because compilers may fuse multiplications with additions.
    const float greatest = std::abs(*std::max_element(given.values.begin(), given.values.end(),
                                                      [](float a, float b) { return std::abs(a) < std::abs(b); }));
    float tolerance = 0;
    for (const float w : weights) tolerance += std::abs(w) * greatest * 1e-5F;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (!(std::abs(wanted[i] - target[i]) <= tolerance)) {
        fmt::print(stderr, "hpe filter: the result is wrong\n");
        return command_line::failed;
      }
    beside = fmt::format("; the result is right, a plain loop took {:.3f} ms", 1e3 * seconds);
  }
  write(outputs, given, target.data());
  const double pixels = static_cast<double>(given.rows) * static_cast<double>(given.columns);
  const std::string title =
      fmt::format("filter of {0} x {1} pixels by {2} x {2} weights", given.rows, given.columns, 2 * reach + 1);
  command_line::answer({"hpe filter",
                        "for each pixel, a weighted sum of the pixels around it",
                        title,
                        r.repeats,
                        command_line::names_of_devices(count),
                        {{"time", 1e3 * time, "ms"}, {"pixels a second", 1e-6 * pixels / time, "M/s"}}},
                       fmt::format("{} in {:.3f} ms, {:.1f} million pixels a second{}\n", title, 1e3 * time,
                                   1e-6 * pixels / time, beside),
                       r.json, r.quiet);
  return 0;
}

}  // namespace

}  // namespace hpe::imaging

int filter_main(int argc, char** argv) {
  return hpe::command_line::guarded("hpe filter", [&] {
    hpe::imaging::request r;
    hpe::command_line::read(hpe::imaging::options_of(r), argc, argv);
    if (!r.help) return hpe::imaging::run(r);
    hpe::command_line::print_help(hpe::imaging::help_text());
    return 0;
  });
}
