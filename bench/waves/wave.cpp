// The wave stencil of `hpe wave`: the fraction of the copy rate that each order reaches on one device, and the speed-up
// of several devices for each way to cut the grid. A point counts 16 bytes, a copy a byte read and a byte written; see
// bench/waves/rtm_step.h.

#include <algorithm>
#include <string>
#include <vector>

#include "apps/fdtd/field.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/copies/device_copy.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::result;
using hpe::fdtd::triple;

constexpr int steps = 20;

hpe::fdtd::field make_field(std::int64_t cells, std::int64_t order, const triple& parts) {
  const auto speed = static_cast<float>(0.5 * hpe::fdtd::stable_speed(order));
  return {{cells, cells, cells}, order, parts, [=](auto, auto, auto) { return speed; }};
}

void run(hpe::fdtd::field& f) {
  for (int t = 0; t < steps; ++t) f.step();
  hpe::synchronize();
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = hpe::bench::parse(argc, argv,
                                           "the stencil of `hpe wave`, of orders 2 to 16, against a copy, and on "
                                           "several devices in slabs, pencils and boxes");
  const bool gpus = hpe::bench::on_gpus();
  const std::int64_t cells = gpus ? 512 : 160;
  const auto points = static_cast<double>(cells * cells * cells) * steps;
  std::vector<result> results;
  double time_of_one = 0;
  {
    const auto bytes =
        static_cast<std::size_t>(hpe::kernels::make_box_layout(cells, cells, cells, 4).size()) * sizeof(float);
    const hpe::array<std::byte> from(bytes, hpe::on_device(0)), to(bytes, hpe::on_device(0));
    hpe::fill(from.data(), 1, bytes);
    for (const std::int64_t order : {2, 4, 8, 12, 16}) {
      hpe::fdtd::field f = make_field(cells, order, {1, 1, 1});
      const auto [copying, stepping] = hpe::bench::paired_medians(
          arguments.repeats, [] {},
          [&] {
            for (int t = 0; t < steps; ++t) hpe::bench::copy_on_device(to.data(), from.data(), bytes);
            hpe::synchronize();
          },
          [] {}, [&] { run(f); });
      const double copied = 2 * static_cast<double>(bytes) * steps / copying, stepped = 16 * points / stepping;
      if (order == 8) time_of_one = stepping;
      const bool has_bar = gpus && (order == 2 || order == 8 || order == 16);
      const double bar = order == 8 ? 0.7 : 0.6;
      const std::string name = "order " + std::to_string(order);
      results.push_back({name + ", 16 bytes a point", stepped * 1e-9, "GB/s", "", true});
      results.push_back({name + ", of the copy rate", stepped / copied, "",
                         has_bar ? (order == 8 ? ">= 0.7" : ">= 0.6") : "", stepped >= bar * copied});
    }
  }
  for (const int devices : {2, 4, 8}) {
    if (devices > hpe::device_count()) continue;
    triple before{0, 0, 0};
    for (const auto how : {hpe::fdtd::cut::slabs, hpe::fdtd::cut::pencils, hpe::fdtd::cut::boxes}) {
      const triple parts = hpe::fdtd::arrange(devices, how);
      if (parts == before) continue;
      before = parts;
      hpe::fdtd::field f = make_field(cells, 8, parts);
      const double time = hpe::bench::median_seconds(
          arguments.repeats, [] {}, [&] { run(f); });
      results.push_back({"order 8 on " + std::to_string(parts[0]) + " x " + std::to_string(parts[1]) + " x " +
                             std::to_string(parts[2]) + " devices, faster than one",
                         time_of_one / time, "x", "", true});
    }
  }
  return hpe::bench::report("wave stencil, " + std::to_string(cells) + "^3 cells, " + hpe::device_info(0).name, results,
                            arguments);
}
