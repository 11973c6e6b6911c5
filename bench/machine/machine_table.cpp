#include "bench/machine/machine_table.h"

#include <fmt/core.h>

namespace hpe::bench {

std::string as_table(const predict::machine_profile& m) {
  constexpr double giga = 1e9, micro = 1e-6;
  std::string text = m.name + "\n";
  const auto row = [&](const std::string& what, double value, const char* unit) {
    text += fmt::format("  {:<44} {:>10.3f} {}\n", what, value, unit);
  };
  const auto rows = [&](const std::string& what, const predict::rate_table& t) {
    for (const auto& r : t.rows())
      row(fmt::format("{}, {} device{}, each", what, r.devices, r.devices == 1 ? "" : "s"), r.rate / giga, "GB/s");
  };
  rows("pinned to device", m.pinned_to_device);
  rows("pinned to host", m.pinned_to_host);
  rows("both ways", m.both_ways);
  rows("pageable to device", m.pageable_to_device);
  rows("pageable to host", m.pageable_to_host);
  row("a copy of a few bytes, pinned", m.link_latency / micro, "us");
  row("a copy of a few bytes, pageable", m.pageable_latency / micro, "us");
  if (m.peers) row("between devices, slowest pair", m.peers->rate(m.devices) / giga, "GB/s");
  if (m.peers) rows("kernels that read other devices", m.peers->by_kernels);
  row("synchronous launch, without its kernel", m.launch / micro, "us");
  row("one of many empty kernels", m.kernel_floor / micro, "us");
  row("device memory, by a kernel", m.kernel_memory / giga, "GB/s");
  const auto speeds = [&](const char* what, const char* where, const predict::rate_table& t) {
    for (const auto& r : t.rows())
      if (r.devices > 1)
        row(fmt::format("speed of kernels limited by {} on {} {}, relative to one", what, r.devices, where), r.rate,
            "x");
  };
  speeds("arithmetic", "devices", m.speeds_together);
  speeds("memory", "devices", m.memory_speeds_together);
  speeds("arithmetic", "machines", m.speeds_on_machines);
  speeds("memory", "machines", m.memory_speeds_on_machines);
  for (const auto& r : m.copy_speeds_on_machines.rows())
    if (r.devices > 1)
      row(fmt::format("speed of pageable copies on {} machines, relative to one", r.devices), r.rate, "x");
  row("copy in host memory", m.host_copy / giga, "GB/s");
  row("allocation of pinned memory", m.pinned_allocation / micro, "us");
  row("disk", m.disk / giga, "GB/s");
  for (const auto& messages : {m.between_ranks, m.between_nodes})
    if (messages) {
      row("MPI, rate of large messages", messages->rate / giga, "GB/s");
      for (const auto& r : messages->together.rows())
        if (r.devices > 1)
          row(fmt::format("MPI, of each of {} ranks that send and receive", r.devices), r.rate / giga, "GB/s");
      row("MPI, latency", messages->latency / micro, "us");
    }
  return text;
}

}  // namespace hpe::bench
