// Tests the predicted time of traffic on links between pairs of devices, on ports that a device uses for all other
// devices, and in host memory.

#include <gtest/gtest.h>

#include "runtime/spread/cost.h"
#include "tests/ptx/kernel_runner.h"
#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

constexpr std::uint32_t devices = 4;
constexpr std::uint64_t part = 64 * mib;  // bytes of the array on each device

machine one_byte_a_second() {
  machine m = program_on::machine_of(devices);
  m.local_rate = m.memory_rate = 1e30;
  m.read_rate = m.write_rate = m.host_rate = 1;
  m.host_memory_rate = 1e30;
  m.launch_seconds = 0;
  return m;
}

/// Returns the traffic of one block on each device; each block uses `bytes` of the memory of each home.
traffic of_homes(const std::vector<device_number>& homes, bool writes, double bytes) {
  traffic t;
  for (std::uint32_t d = 0; d < devices; ++d) {
    block_traffic& b = t.blocks.emplace_back();
    b.block = {d, 0, 0};
    for (const device_number home : homes)
      b.touches.push_back({0, writes, static_cast<std::uint64_t>(home == host ? devices : home) * part, bytes});
  }
  return t;
}

double seconds(const traffic& t, const machine& m) {
  std::vector<home_run> homes;
  for (std::uint32_t d = 0; d <= devices; ++d)
    homes.push_back({d * part, (d + 1) * part, d == devices ? host : static_cast<device_number>(d)});
  const array_place place{&homes, false};
  return predict(t, cut_grid({devices, 1, 1}, {devices, 1, 1}), std::span(&place, 1), m).seconds;
}

TEST(Links, AllPairsOfADeviceShareItsPort) {
  machine m = one_byte_a_second();
  for (const bool writes : {false, true}) {
    const traffic all = of_homes({0, 1, 2, 3}, writes, 10);
    EXPECT_DOUBLE_EQ(seconds(all, m), 30) << "from three other devices, and to three other devices";
    m.shares_ports = false;
    EXPECT_DOUBLE_EQ(seconds(all, m), 10) << "over three links";
    const traffic of_one = of_homes({1}, writes, 10);
    EXPECT_DOUBLE_EQ(seconds(of_one, m), 10);
    m.shares_ports = true;
    EXPECT_DOUBLE_EQ(seconds(of_one, m), 30) << "all bytes pass the port of device 1";
  }
}

TEST(Links, MemoryServesAllDevices) {
  machine m = one_byte_a_second();
  m.read_rate = 1e30;
  m.local_rate = m.memory_rate = 1;
  EXPECT_DOUBLE_EQ(seconds(of_homes({1}, false, 10), m), 40);
  EXPECT_DOUBLE_EQ(seconds(of_homes({0, 1, 2, 3}, false, 10), m), 40);
}

TEST(Links, HostMemoryIsOne) {
  machine m = one_byte_a_second();
  EXPECT_DOUBLE_EQ(seconds(of_homes({host}, false, 10), m), 10);
  m.host_memory_rate = 2;
  EXPECT_DOUBLE_EQ(seconds(of_homes({host}, false, 10), m), 20);
}

// In a grid-stride loop, each block uses all parts of the arrays. If each device has one port for all other devices, as
// behind a switch, the launch is therefore faster on one device that has all of the arrays.
TEST(Links, GridStrideLoopsLoseBehindASwitch) {
  const std::shared_ptr<const ptx::program> program =
      ptx::parse({ptx::test::read_file(std::string(HPE_PTX_PROGRAMS) + "/course.ptx")});
  const kernel_model model(program, "grid_stride");
  for (const bool shares : {true, false}) {
    machine m = program_on::machine_of(devices);
    m.shares_ports = shares;
    program_on on(m);
    program_on::arguments a(*program->find_kernel("grid_stride"));
    a << on.allocate(2 * gib) << on.allocate(2 * gib) << (1 << 29);
    const decision d = on.decide(model, {528, 1, 1}, {256, 1, 1}, a);
    EXPECT_EQ(d.seconds < d.seconds_on_one, !shares) << d.reason;
  }
}

}  // namespace
}  // namespace hpe::spread::test
