// A whole shot of reverse time migration, both passes, with the history of the source's wave field stored on devices,
// on the host or on disk. The benchmark measures the ratio of the time that the memory accesses alone need to the time
// of the shot, the time that disk I/O adds, and a naive scheme that waits for each stored field.

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/rtm/keep/sink.h"
#include "apps/rtm/migration.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/copies/device_copy.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::result;
using namespace hpe::rtm;

struct request {
  std::int64_t size = 0, steps = 0, every = 10, bits = 8;
  std::string folder = ".";
  bool only_devices = false;
};

/// The naive scheme: copies a field, waits for the copy, writes the field to the file, and only then continues.
class waiting_history final : public source_history {
 public:
  waiting_history(const history_shape& shape, const request& r)
      : every_(r.every),
        devices_(shape.parts.devices()),
        one_(shape.cells, shape.parts, 1, r.bits),
        file_(file_in(r.folder, bytes() * static_cast<std::size_t>(shape.fields()))) {}

  void before_step(propagator<float>& forward, std::int64_t t) override {
    if (t % every_ != 0) return;
    forward.keep(one_, 0);
    hpe::synchronize();
    for_parts(t / every_,
              [&](std::span<std::uint8_t> part, std::size_t at) { file_->write(part.data(), part.size(), at); });
  }
  void turn(const propagator<float>& /*forward*/, const medium<float>& /*m*/,
            const traces<float>& /*source*/) override {}
  void correlate(propagator<float>& backward, std::int64_t t, const stack<float>& onto) override {
    if (t % every_ != 0) return;
    hpe::synchronize();
    for_parts(t / every_,
              [&](std::span<std::uint8_t> part, std::size_t at) { file_->read(part.data(), part.size(), at); });
    backward.correlate(one_, 0, onto);
    hpe::synchronize();
  }

 private:
  [[nodiscard]] std::size_t bytes() const {
    std::size_t all = 0;
    for (int d = 0; d < devices_; ++d) all += one_.room(d, 0).size();
    return all;
  }
  template <class Move>
  void for_parts(std::int64_t number, Move move) {
    std::size_t at = bytes() * static_cast<std::size_t>(number);
    for (int d = 0; d < devices_; ++d) {
      const std::span<std::uint8_t> part = one_.room(d, 0);
      move(part, at);
      at += part.size();
    }
  }

  const std::int64_t every_;
  const int devices_;
  const kept_fields<float> one_;
  const std::unique_ptr<sink> file_;
};

/// Returns the time of both passes of a shot. naive: store the fields by waiting_history, not by the history that k
/// describes.
hpe::bench::timing time_of(const request& r, int devices, const keeping& k, bool naive, unsigned repeats) {
  const volume ground = make_volume(r.size, r.size, r.size, 10, 2000);
  migration_settings s;
  s.time_step = 0.9 * stable_step(3, ground.spacing, 2000);
  s.frequency = 20;
  s.steps = r.steps;
  s.keep_every = r.every;
  s.keep = k;
  s.devices = devices;
  s.edges.sponge = 0;  // so that the history contains all cells of the grid
  simulation on(ground, 2000, s, nullptr);
  const medium<float> m = on.medium_of(ground);
  const auto middle = static_cast<std::int32_t>(r.size / 2);
  shot one{{middle, middle, 2}, {}};
  for (std::int32_t x = 0; x < r.size; x += 8) one.receivers.push_back({x, middle, 2});
  const traces<float> source = on.source_of(one), receivers = on.receivers_of(one);
  const stack<float> onto(on.cells(), on.parts());
  const std::unique_ptr<source_history> history =
      naive ? std::make_unique<waiting_history>(on.shape(), r) : make_history(on.shape(), k);
  return hpe::bench::timed(
      repeats, [] {},
      [&] {
        on.forward(m, source, receivers, history.get(), "");
        on.backward(m, receivers, *history, onto, "");
        hpe::synchronize();
      });
}

/// Returns the rate of a copy within the memory of the first device in bytes per second; a copied byte counts as read
/// and as written.
double copy_rate(std::size_t bytes, unsigned repeats) {
  const hpe::array<float> from(bytes / sizeof(float), hpe::on_device(0)), to(from.size(), hpe::on_device(0));
  const double seconds = hpe::bench::median_seconds(
      repeats, [] {},
      [&] {
        hpe::bench::copy_on_device(to.data(), from.data(), bytes);
        hpe::synchronize();
      });
  return 2 * static_cast<double>(bytes) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  using hpe::bench::to_text;
  using hpe::bench::to_whole;
  request r;
  const auto arguments = hpe::bench::parse(
      argc, argv, "a shot of reverse time migration that stores its wave fields on devices, on the host and on disk",
      {{"--size", "CELLS", "cells along each side of the cube (512 on GPUs, else 64)", to_whole(r.size, 16, 4096)},
       {"--steps", "N", "time steps of each pass (1000 on GPUs, else 60)", to_whole(r.steps, 1, 1000000)},
       {"--keep-every", "STEPS", "time steps between two stored fields (10)", to_whole(r.every, 1, 1000000)},
       {"--compress", "BITS", "bits for each cell of a stored field: 0 for no compression, 4, 8 or 16 (default: 8)",
        to_whole(r.bits, 0, 16)},
       {"--folder", "FOLDER", "the folder for the fields on disk (.)", to_text(r.folder)},
       {"--only-devices", "", "store fields only on devices", hpe::bench::to_flag(r.only_devices)}});
  const bool gpus = hpe::bench::on_gpus();
  if (r.size == 0) r.size = gpus ? 512 : 64;
  if (r.steps == 0) r.steps = gpus ? 1000 : 60;

  const double points = static_cast<double>(r.size) * static_cast<double>(r.size) * static_cast<double>(r.size);
  const double fields = static_cast<double>((r.steps + r.every - 1) / r.every);
  const double kept = r.bits == 0 ? 4.0 : static_cast<double>(r.bits) / 8 + 0.25;
  constexpr double of_step = 16, of_field = 4, of_sums = 16;
  const double bytes =
      points * (2 * static_cast<double>(r.steps) * of_step + fields * (2 * kept + 2 * of_field + of_sums));
  const double limit = bytes / copy_rate(static_cast<std::size_t>(points) * sizeof(float), arguments.repeats);

  std::vector<result> results{{"time of the bytes alone", limit, "s"}};
  const auto way = [&](keep_place where) {
    keeping k;
    k.how = keep_method::fields;
    k.where = where;
    k.bits = r.bits;
    k.folder = r.folder;
    return k;
  };
  double on_devices = 0;
  struct scheme {
    const char* name;
    keep_place where;
    bool naive;
  };
  for (const scheme& it : {scheme{"on devices", keep_place::device, false},
                           scheme{"on the host", keep_place::host, false}, scheme{"on disk", keep_place::disk, false},
                           scheme{"on disk, waiting for each field", keep_place::disk, true}}) {
    if (r.only_devices && it.where != keep_place::device) continue;
    const auto time = time_of(r, 1, way(it.where), it.naive, arguments.repeats);
    const std::string spread = fmt::format("{:.3g} to {:.3g} s", time.fastest, time.slowest);
    results.push_back({fmt::format("{}: time", it.name), time.median, "s", "", true, spread});
    const double share = limit / time.median;
    results.push_back({fmt::format("{}: time of the bytes alone / measured time", it.name), share, "",
                       it.naive ? "" : ">= 0.6", it.naive || share >= 0.6});
    if (it.where == keep_place::device) on_devices = time.median;
    if (it.where == keep_place::disk && !it.naive) {
      const double added = 100 * (time.median / on_devices - 1);
      results.push_back({"on disk: added to the time on devices", added, "%", "<= 5", added <= 5});
    }
  }
  for (int devices = 2; devices <= hpe::device_count(); devices *= 2) {
    const double faster = on_devices / time_of(r, devices, way(keep_place::device), false, arguments.repeats).median;
    const double bar = devices == 2 ? 1.95 : 0.95 * devices;
    results.push_back({fmt::format("on {} devices: faster than on one", devices), faster, "x",
                       fmt::format(">= {:.3g}", bar), faster >= bar});
  }
  return hpe::bench::report(fmt::format("rtm-shot, {} cells a side, {} steps, a field every {} steps, {} bits", r.size,
                                        r.steps, r.every, r.bits),
                            results, arguments);
}
