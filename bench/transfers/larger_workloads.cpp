#include "bench/transfers/larger_workloads.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "apps/scan/scan_plan.h"
#include "bench/common/devices.h"
#include "hpe/hpe.hpp"
#include "kernels/wave_parameters.h"

namespace hpe::bench {

namespace {

/// The bytes that one run must move over the link.
struct traffic {
  double up_alone = 0;
  double both_ways = 0;  // bytes in each direction, both at the same time
};

/// Time steps of a wave field in three arrays: the values at the current step, the values at the next step, and the
/// wave speed.
class wave_field {
 public:
  /// bytes: the size of the three arrays together. part: the bytes that one launch accesses.
  wave_field(std::size_t bytes, std::size_t part) {
    const auto plane_bytes = static_cast<std::size_t>(layout_of(1).plane) * sizeof(float);
    layout_ = layout_of(static_cast<std::int64_t>(bytes / arrays / plane_bytes) - 2 * kernels::usual_radius);
    slab_planes_ =
        std::max<std::int64_t>(kernels::usual_radius, static_cast<std::int64_t>(part / arrays / plane_bytes));
    for (array<float>* a : {&now_, &next_, &speed_}) {
      *a = array<float>(static_cast<std::size_t>(layout_.size()));
      fill(a->data(), 0, a->size() * sizeof(float));
    }
    taper_ =
        array<float>(static_cast<std::size_t>(std::max({layout_.nx, layout_.ny, layout_.nz}) + kernels::row_multiple));
    std::fill(taper_.begin(), taper_.end(), 1.0F);
    parameters_.taper_x = parameters_.taper_y = parameters_.taper_z = taper_.data();
    parameters_.layout = layout_;
    parameters_.across = kernels::whole_section(layout_);
    parameters_.ends = kernels::y_ends::closed;
    parameters_.set_weights(1, 1, 1);
  }

  void step() {
    const int units = static_cast<int>(device_info(0).compute_units);
    for (std::int64_t x0 = 0; x0 < layout_.nx; x0 += slab_planes_) {
      const std::int64_t x1 = std::min(layout_.nx, x0 + slab_planes_);
      auto p = parameters_;
      p.now = now_.data();
      p.next = next_.data();
      p.speed = speed_.data();
      p.part = on_gpus() ? kernels::make_cuda_slab(p.across, p.ends, x0, x1, units)
                         : kernels::make_slab(layout_, p.across, x0, x1, sizeof(float));
      launch(kernel_, kernels::step_shape(p.part, p.across), p,
             in(planes(now_, x0 - layout_.radius, x1 + layout_.radius)), inout(planes(next_, x0, x1)),
             in(planes(speed_, x0, x1)), in(taper_));
    }
    std::swap(now_, next_);
    synchronize();
  }

  [[nodiscard]] std::size_t bytes() const { return arrays * now_.size() * sizeof(float); }
  /// A step uploads all three arrays and downloads one; the download overlaps with an upload of the same size.
  [[nodiscard]] traffic moved() const {
    const auto one = static_cast<double>(now_.size() * sizeof(float));
    return {2 * one, one};
  }

 private:
  static constexpr std::size_t arrays = 3;
  static constexpr std::int64_t edge_on_gpus = 512, edge_on_soft_devices = 64;
  static kernels::field_layout layout_of(std::int64_t planes) {
    const std::int64_t edge = on_gpus() ? edge_on_gpus : edge_on_soft_devices;
    return kernels::make_layout(planes, edge, edge, kernels::y_ends::closed, false);
  }
  [[nodiscard]] std::span<float> planes(const array<float>& field, std::int64_t x0, std::int64_t x1) const {
    const std::int64_t plane = layout_.plane;
    return {field.data() + (x0 + layout_.radius) * plane, static_cast<std::size_t>((x1 - x0) * plane)};
  }

  kernels::field_layout layout_{};
  std::int64_t slab_planes_ = 0;
  array<float> now_, next_, speed_, taper_;
  kernels::wave_step<float> parameters_{};
  kernel<kernels::wave_step<float>> kernel_{module(),
                                            fmt::format("wave_step_{}_f32", 2 * kernels::usual_radius).c_str()};
};

/// Scans of a batch of problems in place, with one launch for each problem.
class batch_of_scans {
 public:
  batch_of_scans(std::size_t bytes, std::size_t part)
      : length_(part / sizeof(float)),
        data_(bytes / part * length_),
        plan_(scan::operation_for<float>(scan::built_in::sum), {.length = length_, .problems = 1},
              {.how = scan::algorithm::single_pass,
               .spread = scan::split::automatic,
               .devices = {0},
               .iterations = 0,
               .cache = {}}) {
    fill(data_.data(), 0, data_.size() * sizeof(float));
  }
  void run() {
    for (std::size_t at = 0; at < data_.size(); at += length_) plan_.run(data_.data() + at, data_.data() + at);
    synchronize();
  }
  [[nodiscard]] std::size_t bytes() const { return data_.size() * sizeof(float); }
  [[nodiscard]] traffic moved() const { return {0, static_cast<double>(bytes())}; }

 private:
  const std::size_t length_;
  array<float> data_;
  scan::plan plan_;
};

/// Returns the median time of a run in seconds. Two untimed runs first allocate and pin the pages in host memory.
template <class Run>
double seconds_of(unsigned repeats, const Run& run) {
  const auto nothing = [] {};
  run();
  run();
  return paired_timings(repeats, nothing, run, nothing, nothing).first.median;
}

template <class Work, class Run>
void measure(const char* what, std::size_t memory, std::size_t part, const link_rates& link, unsigned repeats,
             const Run& run, std::vector<result>& lines) {
  // Times the kernels alone, on data that fills half of the device memory and therefore stays there.
  double kernels_per_byte = 0;
  {
    Work resident(memory / 2, part);
    kernels_per_byte = seconds_of(repeats, [&] { run(resident); }) / static_cast<double>(resident.bytes());
  }
  Work larger(2 * memory, part);
  const double seconds = seconds_of(repeats, [&] { run(larger); });
  const traffic moved = larger.moved();
  const double on_link = moved.up_alone / link.up + moved.both_ways / link.both;
  const double in_kernels = kernels_per_byte * static_cast<double>(larger.bytes());
  const double value = seconds / std::max(on_link, in_kernels);
  constexpr double bar = 1.15;
  lines.push_back({fmt::format("{}, 2 x the memory: time / the longer of link time and kernel time", what), value, "x",
                   "<= 1.15", value <= bar,
                   fmt::format("({:.3f} s; link {:.3f} s, kernels {:.3f} s)", seconds, on_link, in_kernels)});
}

}  // namespace

void measure_workloads(std::size_t memory, std::size_t part, const link_rates& link, unsigned repeats,
                       std::vector<result>& lines) {
  measure<wave_field>(
      "a wave step of RTM", memory, part, link, repeats, [](wave_field& f) { f.step(); }, lines);
  measure<batch_of_scans>(
      "scans of a batch", memory, part, link, repeats, [](batch_of_scans& s) { s.run(); }, lines);
}

}  // namespace hpe::bench
