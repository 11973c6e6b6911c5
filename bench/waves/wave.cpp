// The wave stencil of `hpe wave`: the fraction of the copy rate that each order reaches on one device, and the speed-up
// of several devices for each way to cut the grid. A step counts 16 bytes for each point, and a copied byte counts
// twice, as read and as written; see bench/waves/rtm_step.h.

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

hpe::fdtd::field make_field(std::int64_t cells, std::int64_t order, const triple& parts,
                            hpe::fdtd::exchange by = hpe::fdtd::exchange::copied) {
  const auto speed = static_cast<float>(0.5 * hpe::fdtd::stable_speed(order));
  return {{cells, cells, cells}, order, parts, [=](auto, auto, auto) { return speed; }, by};
}

void run(hpe::fdtd::field& f) {
  for (int t = 0; t < steps; ++t) f.step();
  hpe::synchronize();
}

/// Compares slabs whose kernels read neighbours' cells in place with slabs whose faces are copied, as in figure 6.12 of
/// J. Cabezas's thesis, and compares both with one device.
void compare_exchanges(std::vector<result>& results, const std::vector<std::int64_t>& sides,
                       const std::vector<std::int64_t>& orders, unsigned repeats) {
  using hpe::fdtd::exchange;
  for (const std::int64_t cells : sides)
    for (const std::int64_t order : orders)
      for (const std::int64_t devices : {2, 4, 8}) {
        if (devices > hpe::device_count()) continue;
        double alone = 0;
        {
          hpe::fdtd::field one = make_field(cells, order, {1, 1, 1});
          alone = hpe::bench::median_seconds(
              repeats, [] {}, [&] { run(one); });
        }
        hpe::fdtd::field copied = make_field(cells, order, {devices, 1, 1});
        hpe::fdtd::field direct = make_field(cells, order, {devices, 1, 1}, exchange::direct);
        const auto [by_copies, in_place] = hpe::bench::paired_medians(
            repeats, [] {}, [&] { run(copied); }, [] {}, [&] { run(direct); });
        const std::string name = std::to_string(cells) + "^3, order " + std::to_string(order) + ", " +
                                 std::to_string(devices) + " devices, ";
        results.push_back({name + "faces copied, faster than one", alone / by_copies, "x", "", true});
        results.push_back({name + "read in place, faster than one", alone / in_place, "x", "", true});
        const bool has_bar = hpe::bench::on_gpus() && cells >= 512;
        results.push_back({"  speed with faces read in place / speed with faces copied", by_copies / in_place, "x",
                           has_bar ? ">= 0.92" : "", by_copies >= 0.92 * in_place});
      }
}

}  // namespace

int main(int argc, char** argv) {
  bool exchanges_only = false;
  const auto arguments =
      hpe::bench::parse(argc, argv,
                        "the stencil of `hpe wave`, of orders 2 to 16, against a copy, and on several devices in "
                        "slabs, pencils and boxes, with faces copied or read in place",
                        {{"--exchanges", "", "only the comparison of copied faces and faces read in place",
                          hpe::bench::to_flag(exchanges_only)}});
  const bool gpus = hpe::bench::on_gpus();
  const std::int64_t cells = gpus ? 512 : 160;
  const auto points = static_cast<double>(cells * cells * cells) * steps;
  std::vector<result> results;
  const auto told = [&] {
    return hpe::bench::report("wave stencil, " + std::to_string(cells) + "^3 cells, " + hpe::device_info(0).name,
                              results, arguments);
  };
  const auto compare = [&] {
    if (gpus)
      compare_exchanges(results, {128, 512, 768}, {4, 8, 16}, arguments.repeats);
    else
      compare_exchanges(results, {cells}, {8}, arguments.repeats);
  };
  if (exchanges_only) {
    compare();
    return told();
  }
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
  compare();
  return told();
}
