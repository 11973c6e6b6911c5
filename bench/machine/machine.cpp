// Measures a machine's profile for `hpe predict`: links in both directions with 1, 2, 4, ... and all devices, links
// between devices, launches, host memory, the disk and, if mpirun started several ranks, MPI messages.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/command_line/report.h"
#include "apps/predict/machine_profile.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/copies/file_schemes.h"
#include "bench/machine/device_rates.h"
#include "bench/machine/kernel_rates.h"
#include "bench/machine/machine_table.h"
#include "bench/machine/ranks.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::fastest_seconds;
using hpe::predict::machine_profile;
using hpe::predict::rate_table;

struct wishes {
  std::size_t bytes = std::size_t{32} << 20;
  std::string folder = ".", name;
  unsigned repeats = 7;
};

/// Measures copies by hpe between devices and memory from malloc. Each device has a thread of its own.
rate_table pageable(bool to_device, int all, const wishes& w) {
  std::vector<hpe::predict::shared_rate> rows;
  std::vector<hpe::array<std::byte>> there;
  std::vector<std::vector<std::byte>> here(static_cast<std::size_t>(all), std::vector<std::byte>(w.bytes));
  for (int d = 0; d < all; ++d) there.emplace_back(w.bytes, hpe::on_device(d));
  for (const int devices : hpe::bench::numbers_of_devices(all)) {
    // The device writes the arrays before each copy, because hpe would otherwise find valid copies in host memory and
    // copy nothing.
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

/// Returns the seconds that a copy of a few bytes from pageable memory to device 0 takes, including the wait for it.
double pageable_latency(const wishes& w) {
  constexpr std::size_t few_bytes = 64;
  const hpe::array<std::byte> there(few_bytes, hpe::on_device(0));
  const std::vector<std::byte> here(few_bytes);
  return fastest_seconds(w.repeats, [&] {
    hpe::copy(there.data(), here.data(), few_bytes);
    hpe::synchronize(0);
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

/// Returns the rate of reading or of writing a file, whichever is lower. The transfers bypass the page cache if the
/// file system supports O_DIRECT.
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
  throw hpe::command_line::bad_input("--folder " + w.folder + ": cannot create a file in this folder");
}

/// Measures copies between devices and host memory, and between devices, without hpe's runtime.
void measure_links(machine_profile& m, const wishes& w) {
  using way = hpe::bench::device_rates::way;
  hpe::bench::device_rates links((hpe::bench::on_gpus() ? "cuda:" : "soft:") + std::to_string(m.devices), m.devices,
                                 w.bytes, w.repeats);
  m.pinned_to_device = links.pinned(way::to_device);
  m.pinned_to_host = links.pinned(way::to_host);
  m.both_ways = links.pinned(way::both);
  m.link_latency = links.latency();
  m.peers = links.peers();
}

machine_profile measure(const wishes& w) {
  machine_profile m;
  m.devices = hpe::device_count();
  const hpeDeviceInfo first = hpe::device_info(0);
  m.name = w.name.empty() ? fmt::format("{} of {}, {}", m.devices, first.name, hpe::command_line::machine()) : w.name;
  m.origin = "measured";
  m.sources = {fmt::format("hpe bench machine, fastest of {}, {}", w.repeats, hpe::bench::load_of_machine())};
  m.device_memory = static_cast<double>(first.memory_total);
  hpe::bench::measure_launches(m, w.repeats);
  m.pageable_to_device = pageable(true, m.devices, w);
  m.pageable_to_host = pageable(false, m.devices, w);
  m.pageable_latency = pageable_latency(w);
  measure_host(m, w);
  m.disk = disk_rate(w);
  measure_links(m, w);
  hpe::bench::measure_kernels(m, w.repeats);
  return m;
}

/// Returns the profile as JSON, with the commit, the machine and the time of the measurement.
std::string as_text(const machine_profile& m) {
  auto all = nlohmann::ordered_json::parse(as_json(m));
  all["commit"] = hpe::command_line::commit();
  all["machine"] = hpe::command_line::machine();
  all["time"] = hpe::command_line::time_now();
  return hpe::command_line::text_of(all, 1) + "\n";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hpe::command_line;
  wishes w;
  const hpe::bench::arguments given = hpe::bench::parse(
      argc, argv, "a profile of this machine for hpe predict: links, peers, launches, host memory, disk, MPI",
      {{"--repeats", "N", "timed runs, of which the fastest counts (7)", to_whole(w.repeats, 1, 1000000)},
       {"--size", "BYTES", "the size of each copy (32M)", to_whole(w.bytes, 1 << 20, std::int64_t{1} << 30)},
       {"--folder", "FOLDER", "a folder on the disk to measure (.)", to_text(w.folder)},
       {"--name", "NAME", "the machine's name in the profile", to_text(w.name)}});
  hpe::bench::ranks all(argv);
  const hpe::bench::message_rates messages = all.messages(w.bytes, w.repeats);
  machine_profile m = all.leads() ? measure(w) : machine_profile{};
  hpe::bench::measure_kernels_on_machines(m, w.repeats, all);
  if (!all.leads()) return 0;
  m.between_ranks = messages.on_one_machine;
  m.between_nodes = messages.between_machines;
  if (!given.quiet && given.json != "-") fmt::print("{}", hpe::bench::as_table(m));
  write_text(as_text(m), given.json);
  return with_output_written("hpe-bench-machine", 0);
}
