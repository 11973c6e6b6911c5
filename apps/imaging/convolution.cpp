// Convolution of an image in segments of rows. Neighbouring segments overlap by the reach of the weights, so devices do
// not communicate.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "apps/imaging/imaging_program.h"
#include "kernels/imaging.h"

namespace hpe::imaging {

namespace {

using hpe::kernels::convolve;
using hpe::kernels::weight_reach;
using hpe::kernels::weight_side;

struct request : common {
  std::int64_t rows = 2048, columns = 2048, segment = std::int64_t{256} << 20, seed = 1;
  std::string file, weights;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return with_common(
      {{"SIZE|FILE", "",
        "ROWSxCOLUMNS of random values (2048x2048); or an image: .npy (f32, two axes), or .png, read as grey",
        to_size_or_file(to_sizes({&r.rows, &r.columns}), r.file)},
       {"--weights", "FILE", "7 x 7 weights as .npy, f32 (a Gaussian of 1.5 pixels)", to_text(r.weights)},
       {"--segment", "BYTES", "device memory for a segment and its result (256M)", to_whole(r.segment, 1)},
       {"--seed", "N", "seed of the random values (1)", to_whole(r.seed, 0)}},
      r, "write the result: .npy, or .png with values from 0 to 255");
}

std::string help_text() {
  request defaults;
  return "Usage: hpe convolve [options] [SIZE|FILE]\n\n"
         "Convolves an image with 7 x 7 weights over all devices. Each device has a band of rows and computes it in\n"
         "segments, so the image may be larger than a device. Pixels beyond the image count as 0.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe convolve 20000x20000 --segment 64M\n"
         "  hpe convolve photo.png --output blurred.png\n";
}

image input_of(request& r, bool leads) {
  if (!r.file.empty()) {
    image i = read_image(r.file);
    r.rows = i.rows;
    r.columns = i.columns;
    return i;
  }
  image i{r.rows, r.columns, {}};
  if (!leads) return i;
  i.values.resize(static_cast<std::size_t>(r.rows * r.columns));
  std::mt19937 random(static_cast<std::uint32_t>(r.seed));
  for (float& v : i.values) v = static_cast<float>(random() % 256);
  return i;
}

void set_weights(convolve& kernel, const std::string& file) {
  if (!file.empty()) {
    const image w = read_image(file);
    if (w.rows != weight_side || w.columns != weight_side)
      throw bad_input(fmt::format("--weights {}: {} x {} values; 7 x 7 are needed", file, w.rows, w.columns));
    std::copy(w.values.begin(), w.values.end(), kernel.weights);
    return;
  }
  constexpr float width = 1.5F;
  float sum = 0;
  for (int i = 0; i < weight_side; ++i)
    for (int j = 0; j < weight_side; ++j) {
      const auto y = static_cast<float>(i - weight_reach), x = static_cast<float>(j - weight_reach);
      sum += kernel.weights[i * weight_side + j] = std::exp(-(x * x + y * y) / (2 * width * width));
    }
  for (float& w : kernel.weights) w /= sum;
}

/// The rows [first, first + rows) of a member, and the numbers of its neighbours' rows that it needs above and below
/// them.
struct band {
  std::int64_t first, rows, above, below;
};

band band_of(std::int64_t rows, int rank, int size) {
  const std::int64_t first = rows * rank / size, end = rows * (rank + 1) / size;
  if (first == end) return {first, 0, 0, 0};
  return {first, end - first, std::min<std::int64_t>(first, weight_reach),
          std::min<std::int64_t>(rows - end, weight_reach)};
}

void work(member& me, const request& r, const convolve& with, const image& from, image& to) {
  const std::size_t line = static_cast<std::size_t>(r.columns) * sizeof(float);
  division with_rims;
  for (int m = 0; m < me.size(); ++m) {
    const band b = band_of(r.rows, m, me.size());
    with_rims.push_back({static_cast<std::size_t>(b.first - b.above) * line,
                         static_cast<std::size_t>(b.above + b.rows + b.below) * line});
  }
  const division without = divide(r.rows, me.size(), line);
  const band mine = band_of(r.rows, me.rank(), me.size());
  const std::int64_t in_a_segment =
      std::clamp<std::int64_t>((r.segment / static_cast<std::int64_t>(line) - 2 * weight_reach) / 2, 1, r.rows);
  const std::int64_t at_most = std::max<std::int64_t>(std::min(in_a_segment, mine.rows), 1);
  const hpe::array<float> source(static_cast<std::size_t>((at_most + 2 * weight_reach) * r.columns),
                                 on_device(me.device()));
  const hpe::array<float> target(static_cast<std::size_t>(at_most * r.columns), on_device(me.device()));
  const hpe::kernel<convolve> kernel(kernels(), "imaging_convolve");

  me.measure(r.repeats, [&] {
    const std::byte* band_source = nullptr;
    std::byte* band_target = nullptr;
    me.in(phase::exchange, [&] {
      band_source = me.fetch(from.values.data(), with_rims);
      band_target = me.room(to.values.data(), without);
    });
    for (std::int64_t row = 0; row < mine.rows; row += at_most) {
      const std::int64_t rows = std::min(at_most, mine.rows - row);
      const std::int64_t begin = std::max<std::int64_t>(row + mine.above - weight_reach, 0);
      const std::int64_t end = std::min(row + mine.above + rows + weight_reach, mine.above + mine.rows + mine.below);
      const std::size_t bytes = static_cast<std::size_t>(end - begin) * line;
      me.in(phase::links,
            [&] { hpe::copy(source.data(), band_source + static_cast<std::size_t>(begin) * line, bytes); });
      convolve p = with;
      p.source = source.data();
      p.target = target.data();
      p.width = static_cast<std::int32_t>(r.columns);
      p.source_rows = static_cast<std::int32_t>(end - begin);
      p.above = static_cast<std::int32_t>(row + mine.above - begin);
      p.rows = static_cast<std::int32_t>(rows);
      const auto count = static_cast<std::size_t>(rows * r.columns);
      me.in(phase::kernels, [&] {
        hpe::launch_on(me.device(), kernel, grid_for(p.count()), p, hpe::in(source.span().first(bytes / sizeof(float))),
                       hpe::out(target.span().first(count)));
      });
      me.in(phase::links, [&] {
        hpe::copy(band_target + static_cast<std::size_t>(row) * line, target.data(), count * sizeof(float));
      });
    }
    me.in(phase::exchange, [&] { me.deliver(to.values.data(), without); });
  });
}

}  // namespace

int run_convolution(const make_team& make, int argc, char** argv) {
  request r;
  const std::unique_ptr<team> all = begin(make, options_of(r), r, help_text, argc, argv);
  if (all == nullptr) return 0;
  const auto outputs = checked_outputs(r.output, r.json, output_kind::image, {r.file, r.weights});
  const double pixels = static_cast<double>(r.rows) * static_cast<double>(r.columns);
  if (r.file.empty()) check_memory(fmt::format("an image of {} x {} pixels", r.rows, r.columns), *all, 2 * pixels, 0);
  const image from = input_of(r, all->leads());
  convolve with{};
  set_weights(with, r.weights);
  image to{r.rows, r.columns, {}};
  if (all->leads()) to.values.resize(from.values.size());
  const times t = all->run([&](member& me) { work(me, r, with, from, to); });
  if (all->leads()) write_image(outputs, to);
  tell("convolve", fmt::format("convolution of {} x {} pixels", r.rows, r.columns), r, *all, t);
  return 0;
}

}  // namespace hpe::imaging
