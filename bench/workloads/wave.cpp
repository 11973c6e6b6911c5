// The wave stencil of order 8 on slabs. Like the FDTD of J. Cabezas's thesis (2015), the hand-written version first
// computes the four outer planes on each side of a slab, and then copies these planes to the neighbours while it
// computes the other cells.

#include <cmath>

#include "apps/fdtd/field.h"
#include "bench/workloads/workload.h"

namespace hpe::bench {

namespace {

constexpr std::int64_t order = 8, radius = order / 2;

std::int64_t cells() { return on_gpus() ? 512 : 128; }
int steps() { return on_gpus() ? 50 : 10; }

float speed() {
  static const auto result = static_cast<float>(0.5 * fdtd::stable_speed(order));
  return result;
}

/// Returns the initial wave: a hill in the middle of x without denormal numbers, which are slow on CPU cores.
float hill(std::int64_t x) {
  const double distance = 16 * (static_cast<double>(x) / static_cast<double>(cells()) - 0.5);
  return static_cast<float>(1 + std::exp(-distance * distance));
}

class through_hpe final : public program {
 public:
  explicit through_hpe(int devices) : given_(make(devices)), field_(make(devices)) {
    std::vector<float> hills;
    for (std::int64_t x = 0; x < cells(); ++x) hills.push_back(hill(x));
    given_.set([&](std::int64_t x, auto, auto) { return hills[static_cast<std::size_t>(x)]; });
  }
  void reset() override {
    field_.set(given_);
    synchronize();
  }
  void run() override {
    for (int t = 0; t < steps(); ++t) field_.step();
    synchronize();
  }
  [[nodiscard]] std::vector<double> probe() override {
    const std::vector<float> all = field_.values();
    std::vector<double> some;
    for (std::int64_t x = 0; x < cells(); x += 7)
      some.push_back(all[static_cast<std::size_t>((x * cells() + cells() / 2) * cells() + 3)]);
    return some;
  }

 private:
  static fdtd::field make(int devices) {
    return {{cells(), cells(), cells()}, order, {devices, 1, 1}, [](auto, auto, auto) { return speed(); }};
  }
  fdtd::field given_, field_;
};

class written_by_hand final : public on_team {
 public:
  explicit written_by_hand(int devices)
      : on_team(devices, bytes_for(devices)),
        boxes_(cut(devices)),
        step_(team_.find(modules::path_of("libhpe-kernels.so"), "wave_step_8_f32")) {
    for (const fdtd::box& b : boxes_) {
      const auto size = static_cast<std::size_t>(b.layout.size());
      const auto ones = static_cast<std::size_t>(kernels::whole_vectors(cells()));
      slab s{fdtd::rims_first(b),
             team_.take<float>(b.device, size),
             team_.take<float>(b.device, size),
             team_.take<float>(b.device, size),
             team_.take<float>(b.device, size),
             team_.take<float>(b.device, ones)};
      team_.put(b.device, s.ones, std::vector<float>(ones, 1).data(), ones * sizeof(float));
      std::vector<float> speeds(size);
      for_rows(
          b, [&](float* row, std::int64_t) { std::fill_n(row, b.cells[2], speed()); }, speeds);
      team_.put(b.device, s.speed, speeds.data(), size * sizeof(float));
      const std::vector<float> values = beginning(b);
      team_.put(b.device, s.given, values.data(), size * sizeof(float));
      slabs_.push_back(std::move(s));
    }
  }

  void reset() override {
    for (std::size_t n = 0; n < boxes_.size(); ++n)
      for (float* field : {slabs_[n].now, slabs_[n].next})
        team_.copy(boxes_[n].device, field, slabs_[n].given,
                   static_cast<std::size_t>(boxes_[n].layout.size()) * sizeof(float));
  }

  void run() override {
    for (int t = 0; t < steps(); ++t) step();
    team_.finish();
  }

  [[nodiscard]] std::vector<double> probe() override {
    std::vector<double> some;
    for (std::size_t n = 0; n < boxes_.size(); ++n) {
      const fdtd::box& b = boxes_[n];
      std::vector<float> values(static_cast<std::size_t>(b.layout.size()));
      team_.get(b.device, values.data(), slabs_[n].now, values.size() * sizeof(float));
      for (std::int64_t x = 0; x < b.cells[0]; ++x)
        if ((b.origin[0] + x) % 7 == 0)
          some.push_back(values[static_cast<std::size_t>(b.layout.index(x, cells() / 2, 3))]);
    }
    return some;
  }

 private:
  struct slab {
    fdtd::order_of_work work;
    float *now, *next, *speed, *given, *ones;
  };

  static std::vector<float> beginning(const fdtd::box& b) {
    std::vector<float> values(static_cast<std::size_t>(b.layout.size()));
    for_rows(
        b, [&](float* row, std::int64_t x) { std::fill_n(row, b.cells[2], hill(x)); }, values);
    // Also fills the rims with the planes of the neighbouring slabs.
    for (const int side : {0, 1})
      if (b.neighbour[static_cast<std::size_t>(side)] >= 0)
        for (std::int64_t k = 0; k < radius; ++k) {
          const std::int64_t x = side == 0 ? k - radius : b.cells[0] + k;
          for (std::int64_t y = 0; y < b.cells[1]; ++y)
            std::fill_n(values.data() + b.layout.index(x, y, 0), b.cells[2], hill(b.origin[0] + x));
        }
    return values;
  }

  static std::vector<fdtd::box> cut(int devices) {
    return fdtd::cut_grid({cells(), cells(), cells()}, radius, {devices, 1, 1});
  }
  static std::size_t bytes_for(int devices) {
    return 6 * static_cast<std::size_t>(cut(devices).front().layout.size()) * sizeof(float);
  }

  template <class Row>
  static void for_rows(const fdtd::box& b, Row row, std::vector<float>& field) {
    for (std::int64_t x = 0; x < b.cells[0]; ++x)
      for (std::int64_t y = 0; y < b.cells[1]; ++y) row(field.data() + b.layout.index(x, y, 0), b.origin[0] + x);
  }

  timepoint compute(std::size_t n, const kernels::cell_range& range) {
    const fdtd::box& b = boxes_[n];
    kernels::wave_step<float> p{};
    p.next = slabs_[n].next;
    p.now = slabs_[n].now;
    p.speed = slabs_[n].speed;
    p.layout = b.layout;
    p.ends = kernels::y_ends::closed;
    p.taper_x = p.taper_y = p.taper_z = slabs_[n].ones;
    p.set_weights(1, 1, 1);
    kernels::set_cells(p, range, team_.on_gpus() ? team_.units() : 0);
    return team_.launch(b.device, step_, kernels::step_shape(p.part, p.across), p);
  }

  void step() {
    std::vector<timepoint> rims(boxes_.size());
    for (std::size_t n = 0; n < boxes_.size(); ++n) {
      for (const kernels::cell_range& range : slabs_[n].work.first) rims[n] = compute(n, range);
      if (rims[n].none()) rims[n] = team_.last(boxes_[n].device);
    }
    for (std::size_t n = 0; n < boxes_.size(); ++n)
      for (const kernels::cell_range& range : slabs_[n].work.then) compute(n, range);
    std::vector<transfer> faces;
    for (std::size_t n = 0; n + 1 < boxes_.size(); ++n) {
      const kernels::field_layout &left = boxes_[n].layout, &right = boxes_[n + 1].layout;
      const auto bytes = static_cast<std::size_t>(radius * left.plane) * sizeof(float);
      float *const l = slabs_[n].next, *const r = slabs_[n + 1].next;
      const int a = boxes_[n].device, b = boxes_[n + 1].device;
      faces.push_back({a, b, l + left.nx * left.plane, r, bytes, rims[n], rims[n + 1]});
      faces.push_back(
          {b, a, r + radius * right.plane, l + (left.nx + radius) * left.plane, bytes, rims[n + 1], rims[n]});
    }
    team_.exchange(faces);
    for (slab& s : slabs_) std::swap(s.now, s.next);
  }

  const std::vector<fdtd::box> boxes_;
  device::kernel_id step_;
  std::vector<slab> slabs_;
};

}  // namespace

workload wave_workload() {
  return {"wave",
          std::to_string(cells()) + "^3 cells, order 8, " + std::to_string(steps()) + " steps",
          0,
          [](int devices) -> std::unique_ptr<program> { return std::make_unique<through_hpe>(devices); },
          [](int devices) -> std::unique_ptr<hand_written> { return std::make_unique<written_by_hand>(devices); },
          "",
          nullptr};
}

}  // namespace hpe::bench
