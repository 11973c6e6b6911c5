// The wave step on a GPU. Launches follow each other without a pause; the reference is the driver's copy between two
// arrays of the wave field.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/copies/device_copy.h"
#include "bench/waves/rtm_step.h"
#include "hpe/hpe.hpp"
#include "kernels/wave.h"

namespace {

using namespace hpe::kernels;
using hpe::bench::result;

constexpr double bar = 0.7;
constexpr int at_once = 8;

class stepper {
 public:
  explicit stepper(std::int64_t cells)
      : layout_(make_layout(cells, cells, cells, y_ends::closed, false)),
        now_(static_cast<std::size_t>(layout_.size())),
        next_(now_.size()),
        speed_(now_.size()),
        tapers_(static_cast<std::size_t>(3 * (cells + row_multiple))) {
    for (const auto* a : {&now_, &next_, &speed_}) hpe::fill(a->data(), 0, a->size() * sizeof(float));
    for (std::int64_t x = 0; x < cells; ++x)
      for (std::int64_t y = 0; y < cells; ++y) std::fill_n(speed_.data() + layout_.index(x, y, 0), cells, 0.1F);
    std::fill(tapers_.begin(), tapers_.end(), 1.0F);
    now_[static_cast<std::size_t>(layout_.index(cells / 2, cells / 2, cells / 2))] = 1.0F;

    p_.speed = speed_.data();
    p_.taper_x = p_.taper_y = p_.taper_z = tapers_.data();
    p_.layout = layout_;
    p_.across = whole_section(layout_);
    p_.ends = y_ends::closed;
    p_.part = make_cuda_slab(p_.across, p_.ends, 0, cells, hpe::device_info(0).compute_units);
    p_.set_weights(1, 1, 1);
  }

  [[nodiscard]] double points() const { return static_cast<double>(layout_.nx * layout_.ny * layout_.nz); }
  [[nodiscard]] double bytes() const { return static_cast<double>(now_.size() * sizeof(float)); }

  void step() {
    for (int i = 0; i < at_once; ++i) {
      p_.now = now_.data();
      p_.next = next_.data();
      hpe::launch(step_, step_shape(p_.part, p_.across), p_, in(now_), inout(next_), in(speed_), in(tapers_));
      std::swap(now_, next_);
    }
    hpe::synchronize();
  }

  void copy() {
    for (int i = 0; i < at_once; ++i) {
      hpe::bench::copy_on_device(next_.data(), now_.data(), now_.size() * sizeof(float));
      std::swap(now_, next_);
    }
    hpe::synchronize();
  }

 private:
  const field_layout layout_;
  hpe::array<float> now_, next_, speed_, tapers_;
  wave_step<float> p_{};
  hpe::kernel<wave_step<float>> step_{hpe::module(), "wave_step_8_f32"};
};

}  // namespace

int hpe::bench::measure_device_step(const arguments& options) {
  std::vector<result> results;
  for (const std::int64_t cells : {512, 768, 1024}) {
    stepper it(cells);
    const auto [copying, stepping] = paired_medians(
        options.repeats, [] {}, [&] { it.copy(); }, [] {}, [&] { it.step(); });
    const double copied = 2 * it.bytes() * at_once / copying;
    const double stepped = 16 * it.points() * at_once / stepping;
    const std::string name = std::to_string(cells) + "^3";
    results.push_back({name + ": copy of the field, read and written", copied * 1e-9, "GB/s", "", true});
    results.push_back({name + ": step, 16 bytes a point", stepped * 1e-9, "GB/s", "", true});
    results.push_back({name + ": step, of the copy rate", stepped / copied, "", ">= 0.7", stepped >= bar * copied});
  }
  return report("wave step on " + std::string(device_info(0).name), results, options);
}
