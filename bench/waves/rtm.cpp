// The wave steps of reverse time migration through hpe, compared with a hand-written program that runs the same kernels
// on the same devices without hpe's runtime. The hand-written program has local arrays with rims, copies four planes to
// each neighbour after each step, and orders streams by events. The benchmark shows the cost of coherence for an
// application, and the speed-up of several devices.

#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "apps/rtm/wave.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "hpe/hpe.hpp"
#include "runtime/base/granule.h"
#include "runtime/base/options.h"
#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"

namespace {

using hpe::timepoint;
using hpe::bench::on_gpus;
using hpe::bench::result;
namespace kernels = hpe::kernels;

constexpr float speed_everywhere = 0.05F;
constexpr std::int64_t sponge = 20;

/// Returns the path of this build's kernel module, or the path that HPE_KERNELS names.
std::string kernel_module() {
  const std::string elsewhere = hpe::options::from_environment().kernels;
  return elsewhere.empty() ? HPE_KERNEL_MODULE : elsewhere;
}

/// Returns the number of steps of a run: so many that the first launches, on idle devices, hardly affect the result.
int steps() { return on_gpus() ? 100 : 20; }

/// Returns the velocity model. On GPUs, the grid, which includes the sponge on all sides, is a cube with 768 cells
/// along each side.
hpe::rtm::volume model() {
  constexpr std::int64_t cube = 768 - 2 * sponge;
  const std::int64_t x = on_gpus() ? cube : 240, y = on_gpus() ? cube : 160, z = x;
  return {x, y, z, 10, std::vector<float>(static_cast<std::size_t>(x * y * z), 2000.F)};
}

// The slab of one device as a separate array, with four planes of the neighbouring slab on either side.
struct local_part {
  kernels::field_layout layout;
  float* fields[2];
  float* speed;
  float* tapers;
  hpe::device::stream* work;
  timepoint done;      // the end of the slab's last step
  timepoint received;  // the arrival of the last halo
};

class by_hand {
 public:
  by_hand(const hpe::rtm::grid& grid, unsigned devices)
      : grid_(grid),
        space_(0, std::size_t{1} << 35, devices),
        // Opens as many devices as hpe uses, so that soft devices have the same number of threads.
        devices_(hpe::device::open_devices((on_gpus() ? "cuda:" : "soft:") + std::to_string(hpe::device_count()),
                                           space_.layout())) {
    kernel_ = devices_->find_kernel(devices_->load_module(kernel_module()), "wave_step_8_f32");
    devices_->register_host(alias(), space_.layout().size(), space_.shadow_file(), 0);
    space_.open_alias(space_.segment_begin(hpe::memory::segment_kind::device, 0), space_.layout().size());
    for (unsigned d = 0; d < devices; ++d) parts_.push_back(make_part(d, devices));
  }

  void run() {
    for (int t = 0; t < steps(); ++t) step();
    for (const local_part& p : parts_) devices_->wait(p.work->last(), forever);
  }

 private:
  static constexpr auto forever = std::chrono::steady_clock::time_point::max();

  std::byte* alias() { return space_.alias(space_.segment_begin(hpe::memory::segment_kind::device, 0)); }

  local_part make_part(unsigned d, unsigned devices) {
    local_part p{};
    const std::int64_t x0 = grid_.layout.nx * d / devices;
    const std::int64_t x1 = grid_.layout.nx * (d + 1) / devices;
    p.layout = grid_.layout;
    p.layout.nx = x1 - x0;
    std::byte* at = space_.segment_begin(hpe::memory::segment_kind::device, d);
    const std::size_t bytes =
        hpe::round_up(static_cast<std::size_t>(p.layout.size()) * sizeof(float), hpe::granule_size);
    p.work = &devices_->at(d).create_stream(hpe::device::priority::launch);
    const auto take = [&](std::size_t size) {
      devices_->at(d).map(at, size);
      auto* mine = reinterpret_cast<float*>(at);
      at += size;
      return mine;
    };
    for (float*& field : p.fields) field = take(bytes);
    p.speed = take(bytes);
    p.tapers = take(hpe::granule_size);

    auto* staged = reinterpret_cast<float*>(space_.alias(p.speed));
    std::fill(staged, staged + p.layout.size(), speed_everywhere);
    p.work->copy(p.speed, staged, bytes);
    staged = reinterpret_cast<float*>(space_.alias(p.tapers));
    for (const auto* axis : {&grid_.taper_x, &grid_.taper_y, &grid_.taper_z})
      for (const double v : *axis) *staged++ = static_cast<float>(v);
    p.work->copy(p.tapers, space_.alias(p.tapers), hpe::granule_size);
    return p;
  }

  void step() {
    for (local_part& p : parts_) {
      kernels::wave_step<float> q{};
      q.next = p.fields[1];
      q.now = p.fields[0];
      q.speed = p.speed;
      q.layout = p.layout;
      q.across = kernels::whole_section(p.layout);
      q.ends = grid_.ends;
      q.set_weights(0.01, 0.01, 0.01);
      q.part = on_gpus() ? kernels::make_cuda_slab(q.across, grid_.ends, 0, p.layout.nx, multiprocessors_)
                         : kernels::make_slab(p.layout, q.across, 0, p.layout.nx, sizeof(float));
      q.taper_x = p.tapers;
      q.taper_y = q.taper_x + grid_.taper_x.size();
      q.taper_z = q.taper_y + grid_.taper_y.size();
      const hpeShape shape = kernels::step_shape(q.part, q.across);
      p.done = p.work->launch(
          kernel_, {{shape.grid[0], shape.grid[1], shape.grid[2]}, {shape.block[0], shape.block[1], shape.block[2]}},
          std::as_bytes(std::span(&q, 1)));
    }
    const std::size_t rim = kernels::usual_radius * static_cast<std::size_t>(grid_.layout.plane);
    for (std::size_t d = 0; d + 1 < parts_.size(); ++d) {
      local_part& left = parts_[d];
      local_part& right = parts_[d + 1];
      float* end_of_left = left.fields[1] + left.layout.index(left.layout.nx, 0, 0) - left.layout.lead;
      float* start_of_right = right.fields[1] + right.layout.index(0, 0, 0) - right.layout.lead;
      left.work->wait(right.done);
      left.work->copy(end_of_left, start_of_right, rim * sizeof(float));
      right.work->wait(left.done);
      right.received = right.work->copy(start_of_right - rim, end_of_left - rim, rim * sizeof(float));
      left.received = left.work->last();
    }
    // A step may overwrite a device's planes only after the neighbour has copied them.
    for (std::size_t d = 0; d + 1 < parts_.size(); ++d) {
      parts_[d].work->wait(parts_[d + 1].received);
      parts_[d + 1].work->wait(parts_[d].received);
    }
    for (local_part& p : parts_) std::swap(p.fields[0], p.fields[1]);
  }

  const hpe::rtm::grid grid_;
  const std::int64_t multiprocessors_ = hpe::device_info(0).compute_units;
  hpe::memory::uvas space_;
  std::unique_ptr<hpe::device::device_set> devices_;
  hpe::device::kernel_id kernel_;
  std::vector<local_part> parts_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = hpe::bench::parse(
      argc, argv,
      "wave steps of reverse time migration through hpe, compared with halo copies by hand on bare devices");
  const hpe::rtm::volume velocities = model();
  const hpe::rtm::grid grid = hpe::rtm::make_grid(velocities.nx, velocities.ny, velocities.nz, velocities.spacing,
                                                  hpe::rtm::boundaries{.sponge = sponge}, 0.9);
  const double points =
      static_cast<double>(grid.layout.nx) * static_cast<double>(grid.layout.ny * grid.layout.nz) * steps();
  std::vector<result> results;
  std::vector<float> field_of_one;
  double time_of_one = 0;
  for (const int devices : {1, 2, 4}) {
    if (devices > hpe::device_count()) continue;
    by_hand hand(grid, static_cast<unsigned>(devices));
    using hpe::rtm::exchange;
    using hpe::rtm::launch_order;
    struct way {
      launch_order order;
      exchange how;
      const char* name;
    };
    for (const auto& [order, how, words] : {way{launch_order::rims_first, exchange::direct, "rims first"},
                                            way{launch_order::at_once, exchange::direct, "at once"},
                                            way{launch_order::rims_first, exchange::copied, "rims first and copied"}}) {
      const bool first = order == launch_order::rims_first && how == exchange::direct;
      if (devices == 1 && !first) continue;
      const hpe::rtm::decomposition parts = hpe::rtm::decompose(grid.layout, devices, sizeof(float), order);
      hpe::rtm::propagator<float> waves(grid, parts, how);
      const hpe::rtm::medium<float> medium(grid, parts, velocities, 1e-3);
      hpe::rtm::traces<float> source(parts, {grid.cell(velocities.nx / 2, velocities.ny / 2, 3)}, steps());
      source.write(std::vector<float>(static_cast<std::size_t>(steps()), 1.F));
      const auto run = [&](const hpe::rtm::traces<float>* injected) {
        for (int t = 0; t < steps(); ++t) waves.step(medium, injected, nullptr, t);
        hpe::synchronize();
      };
      const auto times = hpe::bench::paired_medians(
          arguments.repeats, [] {}, [&] { run(nullptr); }, [] {}, [&] { hand.run(); });
      const double ratio = times.first / times.second;
      const std::string name =
          std::to_string(devices) + (devices == 1 ? " device: " : std::string(" devices, ") + words + ": ");
      results.push_back(
          {name + "time through hpe / time of the program without hpe", ratio, "x", "<= 1.05", ratio <= 1.05});
      results.push_back({name + "points a second through hpe", points / times.first / 1e6, "M/s", "", true});
      // Only this last, untimed run adds the source, because CPU cores are slow with the denormal numbers at the front
      // of a wave.
      run(&source);
      if (devices == 1) {
        field_of_one.assign(waves.field().begin(), waves.field().end());
        time_of_one = times.first;
        continue;
      }
      const double faster = time_of_one / times.first;
      const bool same =
          std::memcmp(field_of_one.data(), waves.field().data(), field_of_one.size() * sizeof(float)) == 0;
      results.push_back({name + "faster than one", faster, "x", devices == 4 ? ">= 3.8" : "", faster >= 3.8});
      results.push_back({name + "the same bits as one", same ? 1. : 0., "", "1", same});
    }
  }
  const std::string size =
      std::to_string(grid.layout.nx) + " x " + std::to_string(grid.layout.ny) + " x " + std::to_string(grid.layout.nz);
  return hpe::bench::report("rtm, " + size + " points", results, arguments);
}
