// The wave step on a GPU: order 8 at several sizes; every order with a sponge (which costs no extra time) and with
// matched layers of 20 cells within the grid; and steps with a varying density. Launches follow each other without a
// pause. The reference is the driver's copy between two arrays of the wave field's size.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/copies/device_copy.h"
#include "bench/waves/rtm_step.h"
#include "hpe/hpe.hpp"
#include "kernels/absorb.h"
#include "kernels/wave_parameters.h"

namespace {

using namespace hpe::kernels;
using hpe::bench::result;

constexpr double bar = 0.7;
constexpr int at_once = 8;

class stepper {
 public:
  explicit stepper(std::int64_t cells, std::int64_t order = 2 * usual_radius, std::int64_t matched = 0,
                   bool varying_density = false)
      : layout_(make_layout(cells, cells, cells, y_ends::closed, false, order / 2)),
        now_(static_cast<std::size_t>(layout_.size())),
        next_(now_.size()),
        speed_(now_.size()),
        tapers_(static_cast<std::size_t>(3 * (cells + row_multiple))),
        rates_(static_cast<std::size_t>(6 * matched * layer_rates)),
        step_(hpe::module(), ("wave_step_" + std::to_string(order) + "_f32").c_str()) {
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
    if (varying_density) {
      potential_ = hpe::array<float>(now_.size());
      hpe::fill(potential_.data(), 0, potential_.size() * sizeof(float));
      p_.potential = potential_.data();
    }
    if (matched == 0) return;

    layers_.speed = speed_.data();
    layers_.layout = layout_;
    layers_.x1 = cells;
    for (int axis = 0; axis < 3; ++axis) {
      layers_.ends[axis] = {cells, matched, matched};
      layers_.set_weights(axis, 1);
    }
    memory_ = hpe::array<float>(static_cast<std::size_t>(layers_.memory_size()));
    for (const auto* a : {&memory_, &rates_}) hpe::fill(a->data(), 0, a->size() * sizeof(float));
    layers_.memory = memory_.data();
    layers_.rates = rates_.data();
  }

  [[nodiscard]] double points() const { return static_cast<double>(layout_.nx * layout_.ny * layout_.nz); }
  [[nodiscard]] double bytes() const { return static_cast<double>(now_.size() * sizeof(float)); }

  void step() {
    for (int i = 0; i < at_once; ++i) {
      p_.now = now_.data();
      p_.next = next_.data();
      if (memory_.size() > 0) {
        layers_.now = p_.now;
        layers_.next = p_.next;
        hpe::launch(absorb_, absorb_shape(layers_, true), layers_, in(now_), inout(next_), in(speed_), inout(memory_),
                    in(rates_));
      }
      hpe::launch(step_, step_shape(p_.part, p_.across), p_, in(now_), inout(next_), in(speed_), in(potential_),
                  in(tapers_));
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
  hpe::array<float> now_, next_, speed_, tapers_, rates_, memory_, potential_;
  wave_step<float> p_{};
  absorb<float> layers_{};
  hpe::kernel<wave_step<float>> step_;
  hpe::kernel<absorb<float>> absorb_{hpe::module(), "absorb_f32"};
};

/// The rates of copies and of steps in bytes per second; a step counts 16 bytes for each point.
struct rates {
  double copied, stepped;
};
rates measured(stepper& it, const hpe::bench::arguments& options) {
  const auto [copying, stepping] = hpe::bench::paired_medians(
      options.repeats, [] {}, [&] { it.copy(); }, [] {}, [&] { it.step(); });
  return {2 * it.bytes() * at_once / copying, 16 * it.points() * at_once / stepping};
}

}  // namespace

int hpe::bench::measure_device_step(const arguments& options) {
  std::vector<result> results;
  for (const std::int64_t cells : {512, 768, 1024}) {
    stepper it(cells);
    const auto [copied, stepped] = measured(it, options);
    const std::string name = std::to_string(cells) + "^3";
    results.push_back({name + ": copy of the field, read and written", copied * 1e-9, "GB/s", "", true});
    results.push_back({name + ": step, 16 bytes a point", stepped * 1e-9, "GB/s", "", true});
    results.push_back({name + ": step, of the copy rate", stepped / copied, "", ">= 0.7", stepped >= bar * copied});
  }
  for (const std::int64_t order : {4, 8, 12, 16})
    for (const std::int64_t matched : {0, 20}) {
      stepper it(512, order, matched);
      const auto [copied, stepped] = measured(it, options);
      const std::string name =
          "512^3, order " + std::to_string(order) + (matched > 0 ? ", matched layers" : ", sponge");
      results.push_back({name + ", 16 bytes a point", stepped * 1e-9, "GB/s", "", true});
      results.push_back({name + ", of the copy rate", stepped / copied, "", "", true});
    }
  for (const std::int64_t order : {4, 8, 12, 16}) {
    stepper it(512, order, 0, true);
    const auto [copied, stepped] = measured(it, options);
    constexpr double bytes = 20.0 / 16;
    const std::string name = "512^3, order " + std::to_string(order) + ", varying density";
    results.push_back({name + ", 20 bytes a point", bytes * stepped * 1e-9, "GB/s", "", true});
    results.push_back({name + ", of the copy rate", bytes * stepped / copied, "", "", true});
  }
  return report("wave step on " + std::string(device_info(0).name), results, options);
}
