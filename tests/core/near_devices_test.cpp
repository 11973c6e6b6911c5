#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "runtime/core/runtime.h"
#include "runtime/transfer/device_groups.h"
#include "tests/transfer/machine.h"

namespace hpe::core {
namespace {

using groups = std::vector<unsigned>;

/// Sets the NUMA nodes of soft devices (HPE_SOFT_NODES). Soft devices read this variable themselves.
class nodes_of_devices {
 public:
  explicit nodes_of_devices(const char* nodes) { ::setenv("HPE_SOFT_NODES", nodes, 1); }
  ~nodes_of_devices() { ::unsetenv("HPE_SOFT_NODES"); }
  nodes_of_devices(const nodes_of_devices&) = delete;
  nodes_of_devices& operator=(const nodes_of_devices&) = delete;
};

transfer::device_groups placement_for(const char* nodes, const char* devices) {
  const nodes_of_devices here(nodes);
  const transfer_test::machine soft(devices);
  return transfer::near_devices(*soft.set);
}

TEST(near_devices, devices_of_one_node_are_one_group) {
  EXPECT_EQ(placement_for("3,5", "soft:2").group_of, (groups{0, 1}));
  EXPECT_EQ(placement_for("7", "soft:2").group_of, (groups{0, 0}));
  EXPECT_EQ(placement_for("7", "soft:2").groups(), 1u);
}

TEST(near_devices, without_nodes_nothing_is_put_anywhere) {
  const transfer::device_groups nothing = placement_for("", "soft:2");
  EXPECT_EQ(nothing.group_of, groups{});
  EXPECT_EQ(nothing.groups(), 1u);
  EXPECT_EQ(nothing.group(0), 0u);
  EXPECT_EQ(nothing.group(1), 0u);
}

TEST(near_devices, nodes_that_this_machine_lacks_harm_nobody) {
  const transfer::device_groups far = placement_for("998,999", "soft:2");
  std::byte memory[64] = {};
  far.settle_thread(0);
  far.settle_thread(1);
  far.settle_memory(1, memory, sizeof memory);
}

// With these settings, each device has its own threads, buffers and lane, on any machine.
TEST(near_devices, a_runtime_works_as_ever_with_a_group_for_each) {
  const nodes_of_devices here("0,999");
  options chosen;
  chosen.devices = "soft:2x1";
  chosen.copy_threads = 2;
  runtime it(chosen);
  EXPECT_EQ(it.devices().at(0).info().numa_node, 0);
  EXPECT_EQ(it.devices().at(1).info().numa_node, 999);
  constexpr std::size_t bytes = (std::size_t{9} << 20) + 12345;
  std::vector<unsigned char> sent(bytes);
  for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<unsigned char>(i * 7 + i / 251);
  for (unsigned d = 0; d < 2; ++d) {
    auto* const here = reinterpret_cast<unsigned char*>(it.memory().allocate(bytes, d));
    auto* const there = reinterpret_cast<unsigned char*>(it.memory().allocate(bytes, 1 - d));
    EXPECT_EQ(it.granules().find(here).region % 2, d) << "the lane of its home";
    EXPECT_EQ(it.granules().find(there).region % 2, 1 - d);
    it.copies().copy(here, sent.data(), bytes);
    it.copies().copy(there, here, bytes);
    std::vector<unsigned char> received(bytes);
    it.copies().copy(received.data(), there, bytes);
    EXPECT_EQ(std::memcmp(received.data(), sent.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(here, sent.data(), bytes), 0) << "by faults";
    it.memory().free(here);
    it.memory().free(there);
  }
}

TEST(near_devices, too_many_buffers_for_the_address_space_are_refused) {
  const nodes_of_devices here("0,1");
  options chosen;
  chosen.devices = "soft:2";
  chosen.segment_size = 64 << 20;
  chosen.staging_buffers = 12;  // 12 buffers of 4 MiB for each of two groups
  try {
    runtime it(chosen);
    FAIL() << "96 MiB of buffers in 64 MiB of addresses";
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_INITIALIZATION);
    EXPECT_NE(std::strstr(e.what(), "2 NUMA nodes"), nullptr) << e.what();
  }
}

}  // namespace
}  // namespace hpe::core
