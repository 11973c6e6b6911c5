// Time steps of reverse time migration. The hand-written version works as that of bench/waves/rtm.cpp: local arrays
// with rims, and copies of four planes to each neighbour after each step.

#include <algorithm>

#include "apps/rtm/wave.h"
#include "bench/workloads/workload.h"

namespace hpe::bench {

namespace {

constexpr std::int64_t sponge = 16;
constexpr float speed_everywhere = 0.05F;

std::int64_t cells() { return on_gpus() ? 448 : 112; }
int steps() { return on_gpus() ? 50 : 10; }

rtm::grid make_grid() { return rtm::make_grid(cells(), cells(), cells(), 10, rtm::boundaries{.sponge = sponge}, 0.9); }

class through_hpe final : public program {
 public:
  explicit through_hpe(int devices)
      : grid_(make_grid()),
        parts_(rtm::decompose(grid_.layout, devices, sizeof(float))),
        waves_(grid_, parts_),
        medium_(grid_, parts_,
                {cells(), cells(), cells(), 10,
                 std::vector<float>(static_cast<std::size_t>(cells() * cells() * cells()), 2000.F)},
                1e-3) {}
  void run() override {
    for (int t = 0; t < steps(); ++t) waves_.step(medium_, nullptr, nullptr, t);
    synchronize();
  }
  [[nodiscard]] std::vector<double> probe() override { return {}; }

 private:
  const rtm::grid grid_;
  const rtm::decomposition parts_;
  rtm::propagator<float> waves_;
  const rtm::medium<float> medium_;
};

class written_by_hand final : public on_team {
 public:
  explicit written_by_hand(int devices)
      : on_team(devices, bytes_for(devices)),
        grid_(make_grid()),
        step_(team_.find(modules::path_of("libhpe-kernels.so"), "wave_step_8_f32")) {
    for (int d = 0; d < devices; ++d) {
      slab s{};
      s.layout = grid_.layout;
      s.layout.nx = grid_.layout.nx * (d + 1) / devices - grid_.layout.nx * d / devices;
      const auto size = static_cast<std::size_t>(s.layout.size());
      for (float** field : {&s.now, &s.next, &s.speed}) *field = team_.take<float>(d, size);
      const std::vector<float> speeds(size, speed_everywhere);
      team_.put(d, s.speed, speeds.data(), size * sizeof(float));
      std::vector<float> tapers;
      for (const auto* axis : {&grid_.taper_x, &grid_.taper_y, &grid_.taper_z})
        for (const double v : *axis) tapers.push_back(static_cast<float>(v));
      s.tapers = team_.take<float>(d, tapers.size());
      team_.put(d, s.tapers, tapers.data(), tapers.size() * sizeof(float));
      slabs_.push_back(s);
    }
  }

  void run() override {
    for (int t = 0; t < steps(); ++t) step();
    team_.finish();
  }
  [[nodiscard]] std::vector<double> probe() override { return {}; }

 private:
  struct slab {
    kernels::field_layout layout;
    float *now, *next, *speed, *tapers;
  };
  static std::size_t bytes(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); }
  static std::size_t bytes_for(int devices) {
    const kernels::field_layout layout = make_grid().layout;
    return 4 * bytes(layout.size() / devices + 12 * layout.plane);
  }

  timepoint compute(int d, std::int64_t x0, std::int64_t x1) {
    const slab& s = slabs_[static_cast<std::size_t>(d)];
    kernels::wave_step<float> p{};
    p.next = s.next;
    p.now = s.now;
    p.speed = s.speed;
    p.layout = s.layout;
    p.across = kernels::whole_section(s.layout);
    p.ends = grid_.ends;
    p.set_weights(0.01, 0.01, 0.01);
    p.part = on_gpus() ? kernels::make_cuda_slab(p.across, grid_.ends, x0, x1, team_.units())
                       : kernels::make_slab(s.layout, p.across, x0, x1, sizeof(float));
    p.taper_x = s.tapers;
    p.taper_y = p.taper_x + grid_.taper_x.size();
    p.taper_z = p.taper_y + grid_.taper_y.size();
    return team_.launch(d, step_, kernels::step_shape(p.part, p.across), p);
  }

  void step() {
    constexpr std::int64_t rim = kernels::usual_radius;
    const int devices = team_.devices();
    std::vector<timepoint> rims;
    for (int d = 0; d < devices; ++d) {
      const std::int64_t nx = slabs_[static_cast<std::size_t>(d)].layout.nx;
      if (d > 0) compute(d, 0, rim);
      if (d + 1 < devices) compute(d, nx - rim, nx);
      rims.push_back(team_.last(d));
    }
    for (int d = 0; d < devices; ++d) {
      const std::int64_t nx = slabs_[static_cast<std::size_t>(d)].layout.nx;
      compute(d, d > 0 ? rim : 0, d + 1 < devices ? nx - rim : nx);
    }
    std::vector<transfer> faces;
    for (int d = 0; d + 1 < devices; ++d) {
      const slab &left = slabs_[static_cast<std::size_t>(d)], &right = slabs_[static_cast<std::size_t>(d) + 1];
      const timepoint a = rims[static_cast<std::size_t>(d)], b = rims[static_cast<std::size_t>(d) + 1];
      float* const end_of_left = left.next + left.layout.index(left.layout.nx, 0, 0) - left.layout.lead;
      float* const start_of_right = right.next + right.layout.index(0, 0, 0) - right.layout.lead;
      const std::int64_t size = rim * grid_.layout.plane;
      faces.push_back({d + 1, d, start_of_right, end_of_left, bytes(size), b, a});
      faces.push_back({d, d + 1, end_of_left - size, start_of_right - size, bytes(size), a, b});
    }
    team_.exchange(faces);
    for (slab& s : slabs_) std::swap(s.now, s.next);
  }

  const rtm::grid grid_;
  device::kernel_id step_;
  std::vector<slab> slabs_;
};

}  // namespace

workload rtm_workload() {
  return {"rtm step",
          std::to_string(cells() + 2 * sponge) + "^3 points, " + std::to_string(steps()) + " steps",
          0,
          [](int devices) -> std::unique_ptr<program> { return std::make_unique<through_hpe>(devices); },
          [](int devices) -> std::unique_ptr<hand_written> { return std::make_unique<written_by_hand>(devices); },
          "",
          nullptr};
}

}  // namespace hpe::bench
