#include <fmt/core.h>

#include <string>

#include "apps/hpe/command.h"
#include "hpe/hpe.hpp"
#include "hpe/placement.h"

namespace hpe::cli {

namespace {

std::string in_mib(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

std::string numbers(std::uint64_t set) {
  std::string text;
  for (int d = 0; d < 64; ++d) {
    if ((set >> d & 1) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  }
  return text;
}

}  // namespace

std::string describe_device(int number, const hpeDeviceInfo& device) {
  const char* kind = device.kind == HPE_DEVICE_SOFT ? "soft" : "cuda";
  std::string text = fmt::format("device {}: {} ({})\n", number, device.name, kind);
  if (device.lost != 0) {
    return text + "  LOST: it died, and what only it held is gone; the other devices go on\n";
  }
  text += fmt::format("  memory         {}, {} free\n", in_mib(device.memory_total), in_mib(device.memory_free));
  text += fmt::format("  compute units  {}\n", device.compute_units);
  const std::uint64_t others = device.peers & ~(std::uint64_t{1} << number);
  text += fmt::format("  reaches        {}\n", others == 0 ? "no other device" : "devices " + numbers(others));
  return text;
}

int info(int argc, char** argv) {
  if (argc > 1) {
    fmt::print(asks_for_help(argc, argv) ? stdout : stderr,
               "usage: hpe info\nStarts the runtime as a program would and tells what it finds.\n");
    return asks_for_help(argc, argv) ? 0 : usage_error;
  }
  const int count = device_count();
  fmt::print("hpe {}, {} device{}\n", HPE_PACKAGE_VERSION, count, count == 1 ? "" : "s");
  for (int d = 0; d < count; ++d) {
    const hpeDeviceInfo device = device_info(d);
    fmt::print("\n{}", describe_device(d, device));
    if (device.lost != 0) continue;
    const array<char> probe(1, on_device(d));
    int node = -1;
    hpe::check(hpeGetDeviceNumaNode(d, &node));
    fmt::print("  NUMA node      {}\n", node < 0 ? "any" : std::to_string(node));
    fmt::print("  addresses      from {}\n", static_cast<void*>(probe.data()));
  }
  fmt::print("\nOne address space; memory is placed in units of {} KiB.\n", granularity() >> 10);
  return 0;
}

}  // namespace hpe::cli
