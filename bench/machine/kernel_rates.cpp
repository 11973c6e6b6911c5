#include "bench/machine/kernel_rates.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "apps/modules/modules.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/machine/device_rates.h"
#include "hpe/hpe.hpp"
#include "kernels/rays.h"
#include "kernels/wave_parameters.h"

namespace hpe::bench {

namespace {

using predict::rate_table;

/// Kernels that copy cells on each device, from and to memory rather than caches. On GPUs, a kernel takes far longer
/// than its launch, so that the host does not limit the rate.
class copying_kernels {
 public:
  explicit copying_kernels(int devices) {
    for (int d = 0; d < devices; ++d) {
      fields_.emplace_back(static_cast<std::size_t>(layout_.size()), on_device(d));
      kept_.emplace_back(static_cast<std::size_t>(side_ * side_ * side_), on_device(d));
    }
  }

  /// Runs kernels on the first `devices` devices and waits for the kernels. Device d reads the memory of device
  /// source(d).
  void run_on(int devices, const std::function<int(int)>& source) {
    for (int i = 0; i < launches_; ++i)
      for (int d = 0; d < devices; ++d) {
        const array<float>& from = fields_[static_cast<std::size_t>(source(d))];
        array<float>& to = kept_[static_cast<std::size_t>(d)];
        launch_on(d, copy_, window_shape(part_, cells_), {to.data(), from.data(), layout_, part_, cells_}, out(to),
                  in(from));
      }
    synchronize();
  }
  void run_on(int devices) {
    run_on(devices, [](int d) { return d; });
  }

  /// The number of bytes that the kernels of one device read; they write as many bytes.
  [[nodiscard]] double bytes_read() const {
    return sizeof(float) * static_cast<double>(launches_) * static_cast<double>(side_ * side_ * side_);
  }

 private:
  const std::int64_t side_ = on_gpus() ? 512 : 192;
  const int launches_ = on_gpus() ? 100 : 10;
  const kernels::field_layout layout_ = kernels::make_layout(side_, side_, side_, kernels::y_ends::closed, false);
  const kernels::window cells_{0, 0, 0, side_, side_, side_};
  const kernels::slab part_{0, side_, 1, side_, on_gpus() ? side_ : 0};
  const kernel<kernels::keep<float>> copy_{module(), "keep_f32"};
  std::vector<array<float>> fields_, kept_;
};

/// A ray tracer on each device, whose data fits into caches. Arithmetic limits its speed.
class tracing_kernels {
 public:
  explicit tracing_kernels(int devices) {
    for (int d = 0; d < devices; ++d) {
      states_.emplace_back(1, on_device(d));
      states_.back()[0] = kernels::first_scene(1);
      pixels_.emplace_back(static_cast<std::size_t>(width_ * height_), on_device(d));
    }
  }

  void run_on(int devices) {
    constexpr int launches = 10;
    for (int i = 0; i < launches; ++i)
      for (int d = 0; d < devices; ++d) {
        const auto n = static_cast<std::size_t>(d);
        const kernels::trace_rays p{states_[n].data(), pixels_[n].data(), width_, height_, 0, 1, height_};
        constexpr std::uint64_t threads = 256;
        launch_on(d, trace_, grid(static_cast<std::uint32_t>(p.count() / threads)), p, in(states_[n]), out(pixels_[n]));
      }
    synchronize();
  }

 private:
  const std::int32_t width_ = on_gpus() ? 2048 : 128, height_ = width_ * 3 / 4;
  const kernel<kernels::trace_rays> trace_{module(modules::require("libhpe-imaging-kernels.so")), "imaging_trace_rays"};
  std::vector<array<kernels::scene>> states_;
  std::vector<array<std::uint32_t>> pixels_;
};

/// Measures the speed of kernels that run on several devices at once, relative to one device. The ratio is below 1 if
/// the devices share resources, as soft devices share the cores and memory of the host. Runs on one device and runs on
/// several devices alternate, so that other programs affect both equally.
template <class Kernels>
rate_table speeds_together(int all, unsigned repeats, Kernels& kernels) {
  if (all == 1) return {};  // no rows: there is only one device
  std::vector<predict::shared_rate> rows{{1, 1}};
  for (const int devices : numbers_of_devices(all)) {
    if (devices == 1) continue;
    const auto in_turn = paired_timings(
        repeats, [] {}, [&] { kernels.run_on(1); }, [] {}, [&] { kernels.run_on(devices); });
    rows.push_back({devices, in_turn.first.fastest / in_turn.second.fastest});
  }
  return rate_table(std::move(rows));
}

rate_table rates_from_neighbours(int all, unsigned repeats, copying_kernels& kernels) {
  std::vector<predict::shared_rate> rows;
  for (const int devices : numbers_of_devices(all)) {
    const auto neighbour = [&](int d) { return devices > 1 ? (d + 1) % devices : 1; };
    const double seconds = fastest_seconds(repeats, [&] { kernels.run_on(devices, neighbour); });
    rows.push_back({devices, kernels.bytes_read() / seconds});
  }
  return rate_table(std::move(rows));
}

/// Copies between a device and pageable memory, in both directions.
class pageable_copies {
 public:
  explicit pageable_copies(int /*devices*/) {}

  void run_on(int /*devices*/) {
    constexpr int turns = 2;
    for (int i = 0; i < turns; ++i) {
      hpe::copy(there_.data(), here_.data(), here_.size());
      synchronize();
      hpe::copy(here_.data(), there_.data(), here_.size());
    }
  }

 private:
  std::vector<std::byte> here_ = std::vector<std::byte>(std::size_t{on_gpus() ? 128U : 8U} << 20);
  array<std::byte> there_{here_.size(), on_device(0)};
};

template <class Work>
rate_table speeds_on_machines(unsigned repeats, ranks& all) {
  Work work(1);
  std::vector<predict::shared_rate> rows;
  double alone = 0;
  for (const int machines : numbers_of_devices(all.machines())) {
    const double seconds = all.seconds_on(machines, repeats, [&] { work.run_on(1); });
    if (machines == 1) alone = seconds;
    rows.push_back({machines, alone / seconds});
  }
  return rate_table(std::move(rows));
}

}  // namespace

void measure_launches(predict::machine_profile& m, unsigned repeats) {
  constexpr int many = 200;
  const kernel<kernels::keep<float>> empty(module(), "keep_f32");
  const kernels::keep<float> no_cells{};
  const array<float> named(1, on_device(0));
  const auto launch = [&] { launch_on(0, empty, grid(1), no_cells, in(named)); };
  const double waited = fastest_seconds(repeats, [&] {
    launch();
    synchronize();
  });
  const double in_a_row = fastest_seconds(repeats,
                                          [&] {
                                            for (int i = 0; i < many; ++i) launch();
                                            synchronize();
                                          }) /
                          many;
  m.kernel_floor = in_a_row;
  m.launch = std::max(0.0, waited - in_a_row);
}

void measure_kernels(predict::machine_profile& m, unsigned repeats) {
  {
    tracing_kernels arithmetic(m.devices);
    m.speeds_together = speeds_together(m.devices, repeats, arithmetic);
  }
  copying_kernels memory(m.devices);
  m.kernel_memory = 2 * memory.bytes_read() / fastest_seconds(repeats, [&] { memory.run_on(1); });
  m.memory_speeds_together = speeds_together(m.devices, repeats, memory);
  if (m.peers) m.peers->by_kernels = rates_from_neighbours(m.devices, repeats, memory);
}

void measure_kernels_on_machines(predict::machine_profile& m, unsigned repeats, ranks& all) {
  if (all.machines() == 1) return;
  m.speeds_on_machines = speeds_on_machines<tracing_kernels>(repeats, all);
  m.memory_speeds_on_machines = speeds_on_machines<copying_kernels>(repeats, all);
  m.copy_speeds_on_machines = speeds_on_machines<pageable_copies>(repeats, all);
}

}  // namespace hpe::bench
