// A machine's profile for `hpe predict`: links with 1, 2, 4 and all devices, both ways, peers, launches, host memory,
// disk, and messages of MPI between ranks where mpirun started several.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/modules/modules.h"
#include "apps/predict/machine_profile.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/copies/file_schemes.h"
#include "bench/machine/device_rates.h"
#include "bench/machine/ranks.h"
#include "hpe/hpe.hpp"
#include "kernels/rays.h"
#include "kernels/wave.h"

namespace {

using hpe::bench::fastest_seconds;
using hpe::predict::machine_profile;
using hpe::predict::rate_table;

struct wishes {
  std::size_t bytes = std::size_t{32} << 20;
  std::string folder = ".", name;
  unsigned repeats = 7;
};

/// Copies between memory of malloc and devices, by hpe: a thread for each device.
rate_table pageable(bool to_device, int all, const wishes& w) {
  std::vector<hpe::predict::shared_rate> rows;
  std::vector<hpe::array<std::byte>> there;
  std::vector<std::vector<std::byte>> here(static_cast<std::size_t>(all), std::vector<std::byte>(w.bytes));
  for (int d = 0; d < all; ++d) there.emplace_back(w.bytes, hpe::on_device(d));
  for (const int devices : hpe::bench::numbers_of_devices(all)) {
    // Without the fill the host would still have the bytes.
    const auto make_new = [&] {
      for (const auto& array : there) hpe::fill(array.data(), 1, w.bytes);
      hpe::synchronize();
    };
    const auto copy = [&] {
      std::vector<std::jthread> threads;
      for (int d = 0; d < devices; ++d)
        threads.emplace_back([&, i = static_cast<std::size_t>(d)] {
          void* const on_device = there[i].data();
          to_device ? hpe::copy(on_device, here[i].data(), w.bytes) : hpe::copy(here[i].data(), on_device, w.bytes);
        });
      threads.clear();
      hpe::synchronize();
    };
    const double seconds = fastest_seconds(w.repeats, copy, make_new);
    rows.push_back({devices, static_cast<double>(w.bytes) / seconds});
  }
  return rate_table(std::move(rows));
}

/// The time of a launch of an empty kernel with the wait for it, and the time of each of many launches in a row.
void measure_kernels(machine_profile& m, const wishes& w) {
  constexpr int many = 200;
  const hpe::kernel<hpe::kernels::keep<float>> empty(hpe::module(), "keep_f32");
  const hpe::kernels::keep<float> no_cells{};
  const hpe::array<float> named(1, hpe::on_device(0));
  const auto launch = [&] { hpe::launch_on(0, empty, hpe::grid(1), no_cells, hpe::in(named)); };
  const double waited = fastest_seconds(w.repeats, [&] {
    launch();
    hpe::synchronize();
  });
  const double in_a_row = fastest_seconds(w.repeats,
                                          [&] {
                                            for (int i = 0; i < many; ++i) launch();
                                            hpe::synchronize();
                                          }) /
                          many;
  m.kernel_floor = in_a_row;
  m.launch = std::max(0.0, waited - in_a_row);
}

/// The speed of kernels on several devices concurrently, relative to one. It is below 1 where the devices share
/// resources: soft devices share the cores and the memory of the host. run(devices) runs kernels on that many devices
/// and waits for them.
rate_table speeds_together(int all, const wishes& w, const std::function<void(int)>& run) {
  if (all == 1) return {};  // empty: there is one device only
  std::vector<hpe::predict::shared_rate> rows{{1, 1}};
  for (const int devices : hpe::bench::numbers_of_devices(all)) {
    if (devices == 1) continue;
    const auto in_turn = hpe::bench::paired_timings(
        w.repeats, [] {}, [&] { run(1); }, [] {}, [&] { run(devices); });
    rows.push_back({devices, in_turn.first.fastest / in_turn.second.fastest});
  }
  return rate_table(std::move(rows));
}

/// Measures memory rates, alone and together, with a kernel that copies cells from memory, not from caches. On GPUs the
/// kernel takes far longer than its launch, so the host does not bound it.
void measure_memory(machine_profile& m, const wishes& w) {
  using namespace hpe::kernels;
  const std::int64_t side = hpe::bench::on_gpus() ? 512 : 192;
  const int launches = hpe::bench::on_gpus() ? 100 : 10;
  const field_layout layout = make_layout(side, side, side, y_ends::closed, false);
  const window cells{0, 0, 0, side, side, side};
  const slab part{0, side, 1, side, hpe::bench::on_gpus() ? side : 0};
  const hpe::kernel<keep<float>> copy(hpe::module(), "keep_f32");
  std::vector<hpe::array<float>> fields, kept;
  for (int d = 0; d < m.devices; ++d) {
    fields.emplace_back(static_cast<std::size_t>(layout.size()), hpe::on_device(d));
    kept.emplace_back(static_cast<std::size_t>(side * side * side), hpe::on_device(d));
  }
  const auto run_on = [&](int devices) {
    for (int i = 0; i < launches; ++i)
      for (int d = 0; d < devices; ++d) {
        const auto n = static_cast<std::size_t>(d);
        hpe::launch_on(d, copy, window_shape(part, cells), {kept[n].data(), fields[n].data(), layout, part, cells},
                       hpe::out(kept[n]), hpe::in(fields[n]));
      }
    hpe::synchronize();
  };
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(launches) * static_cast<double>(side * side * side);
  m.kernel_memory = bytes / fastest_seconds(w.repeats, [&] { run_on(1); });
  m.memory_speeds_together = speeds_together(m.devices, w, run_on);
}

/// Measures the slowdown of arithmetic with a ray tracer, whose data fits into caches.
void measure_arithmetic(machine_profile& m, const wishes& w) {
  using hpe::kernels::scene;
  using hpe::kernels::trace_rays;
  const std::int32_t width = hpe::bench::on_gpus() ? 2048 : 128, height = width * 3 / 4;
  constexpr int launches = 10;
  const hpe::kernel<trace_rays> trace(hpe::module(hpe::modules::require("libhpe-imaging-kernels.so")),
                                      "imaging_trace_rays");
  std::vector<hpe::array<scene>> states;
  std::vector<hpe::array<std::uint32_t>> pixels;
  for (int d = 0; d < m.devices; ++d) {
    states.emplace_back(1, hpe::on_device(d));
    states.back()[0] = hpe::kernels::first_scene(1);
    pixels.emplace_back(static_cast<std::size_t>(width * height), hpe::on_device(d));
  }
  m.speeds_together = speeds_together(m.devices, w, [&](int devices) {
    for (int i = 0; i < launches; ++i)
      for (int d = 0; d < devices; ++d) {
        const auto n = static_cast<std::size_t>(d);
        const trace_rays p{states[n].data(), pixels[n].data(), width, height, 0, 1, height};
        constexpr std::uint64_t threads = 256;
        hpe::launch_on(d, trace, hpe::grid(static_cast<std::uint32_t>(p.count() / threads)), p, hpe::in(states[n]),
                       hpe::out(pixels[n]));
      }
    hpe::synchronize();
  });
}

void measure_host(machine_profile& m, const wishes& w) {
  std::vector<std::byte> from(w.bytes, std::byte{1}), to(w.bytes);
  m.host_memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  m.host_copy =
      static_cast<double>(w.bytes) / fastest_seconds(w.repeats, [&] { std::memcpy(to.data(), from.data(), w.bytes); });
  const auto allocation = [&](std::size_t bytes) {
    return fastest_seconds(w.repeats, [&] { const hpe::array<std::byte> a(bytes, hpe::on_host()); });
  };
  constexpr std::size_t small = 4096;
  m.pinned_allocation = allocation(small);
  m.pinned_allocation_a_byte =
      std::max(0.0, allocation(w.bytes) - m.pinned_allocation) / static_cast<double>(w.bytes - small);
}

/// The rate of reading or writing a file, whichever is slower, past the page cache where the file system allows it.
double disk_rate(const wishes& w) {
  for (const bool direct : {true, false}) {
    const hpe::bench::disk_file file(w.folder, w.bytes, direct);
    if (!file.good()) continue;
    constexpr std::size_t page = 4096;
    std::vector<std::byte> storage(w.bytes + page, std::byte{1});
    std::byte* const aligned = storage.data() + (page - reinterpret_cast<std::uintptr_t>(storage.data()) % page) % page;
    const double read = fastest_seconds(w.repeats, [&] { file.read(aligned, w.bytes, 0); });
    const double write = fastest_seconds(w.repeats, [&] { file.write(aligned, w.bytes, 0); });
    return static_cast<double>(w.bytes) / std::max(read, write);
  }
  throw hpe::command_line::bad_input("--folder " + w.folder + ": no file can be made there");
}

machine_profile measure(const wishes& w, const hpe::bench::message_rates& messages) {
  using way = hpe::bench::device_rates::way;
  machine_profile m;
  m.devices = hpe::device_count();
  const hpeDeviceInfo first = hpe::device_info(0);
  m.name = w.name.empty() ? fmt::format("{} of {}, {}", m.devices, first.name, hpe::command_line::machine()) : w.name;
  m.origin = "measured";
  m.sources = {fmt::format("hpe bench machine, fastest of {}, {}", w.repeats, hpe::bench::load_of_machine())};
  m.device_memory = static_cast<double>(first.memory_total);
  measure_kernels(m, w);
  measure_memory(m, w);
  measure_arithmetic(m, w);
  m.pageable_to_device = pageable(true, m.devices, w);
  m.pageable_to_host = pageable(false, m.devices, w);
  measure_host(m, w);
  m.disk = disk_rate(w);
  hpe::bench::device_rates links((hpe::bench::on_gpus() ? "cuda:" : "soft:") + std::to_string(m.devices), m.devices,
                                 w.bytes, w.repeats);
  m.pinned_to_device = links.pinned(way::to_device);
  m.pinned_to_host = links.pinned(way::to_host);
  m.both_ways = links.pinned(way::both);
  m.link_latency = links.latency();
  m.peers = links.peers();
  m.between_ranks = messages.on_one_machine;
  m.between_nodes = messages.between_machines;
  return m;
}

std::string as_table(const machine_profile& m) {
  constexpr double giga = 1e9, micro = 1e-6;
  std::string text = m.name + "\n";
  const auto row = [&](const std::string& what, double value, const char* unit) {
    text += fmt::format("  {:<44} {:>10.3f} {}\n", what, value, unit);
  };
  const auto rows = [&](const std::string& what, const rate_table& t) {
    for (const auto& r : t.rows())
      row(fmt::format("{}, {} device{}, each", what, r.devices, r.devices == 1 ? "" : "s"), r.rate / giga, "GB/s");
  };
  rows("pinned to device", m.pinned_to_device);
  rows("pinned to host", m.pinned_to_host);
  rows("both ways", m.both_ways);
  rows("pageable to device", m.pageable_to_device);
  rows("pageable to host", m.pageable_to_host);
  row("a copy of a few bytes", m.link_latency / micro, "us");
  if (m.peers) row("between devices, slowest pair", m.peers->rate(m.devices) / giga, "GB/s");
  row("synchronous launch, without its kernel", m.launch / micro, "us");
  row("one of many empty kernels", m.kernel_floor / micro, "us");
  row("device memory, by a kernel", m.kernel_memory / giga, "GB/s");
  for (const auto& r : m.speeds_together.rows())
    row(fmt::format("arithmetic of kernels on {} devices concurrently, relative to one", r.devices), r.rate, "x");
  for (const auto& r : m.memory_speeds_together.rows())
    row(fmt::format("memory of kernels on {} devices concurrently, relative to one", r.devices), r.rate, "x");
  row("copy in host memory", m.host_copy / giga, "GB/s");
  row("allocation of pinned memory", m.pinned_allocation / micro, "us");
  row("disk", m.disk / giga, "GB/s");
  for (const auto& messages : {m.between_ranks, m.between_nodes})
    if (messages) {
      row("MPI, rate of large messages", messages->rate / giga, "GB/s");
      row("MPI, latency", messages->latency / micro, "us");
    }
  return text;
}

/// The profile as JSON, with the commit, the machine and the time of the measurement.
std::string as_text(const machine_profile& m) {
  auto all = nlohmann::ordered_json::parse(as_json(m));
  all["commit"] = hpe::command_line::commit();
  all["machine"] = hpe::command_line::machine();
  all["time"] = hpe::command_line::time_now();
  return all.dump(1) + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hpe::command_line;
  wishes w;
  const hpe::bench::arguments given = hpe::bench::parse(
      argc, argv, "a profile of this machine for hpe predict: links, peers, launches, host memory, disk, MPI",
      {{"--repeats", "N", "timed runs, of which the fastest counts (7)", to_whole(w.repeats, 1, 1000000)},
       {"--size", "BYTES", "of each copy (32M)", to_whole(w.bytes, 1 << 20, std::int64_t{1} << 30)},
       {"--folder", "FOLDER", "where to measure the disk (.)", to_text(w.folder)},
       {"--name", "NAME", "the machine's name in the profile", to_text(w.name)}});
  const hpe::bench::message_rates messages = hpe::bench::measure_messages(w.bytes, w.repeats);
  if (!messages.leads) return 0;
  const machine_profile m = measure(w, messages);
  if (!given.quiet && given.json != "-") fmt::print("{}", as_table(m));
  write_text(as_text(m), given.json);
  return with_output_written("hpe-bench-machine", 0);
}
