// Tests the equations with values that can be computed by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "apps/predict/modern_model.h"
#include "apps/predict/paper_model.h"

namespace hpe::predict {
namespace {

constexpr double giga = 1e9, mega = 1e6;

rate_table same(double rate) { return rate_table({{1, rate}}); }

/// A machine with round numbers: 1 GB/s to a device, 2 GB/s back, 2 GB/s in both directions together, and one link for
/// all devices.
machine_profile machine() {
  machine_profile m;
  m.name = "machine";
  m.origin = "measured";
  m.sources = {"this test"};
  m.devices = 4;
  m.device_memory = 4 * giga;
  m.pinned_to_device = m.pageable_to_device = same(giga);
  m.pinned_to_host = m.pageable_to_host = same(2 * giga);
  m.both_ways = same(2 * giga);
  m.host_memory = 10 * giga;
  m.host_copy = 4 * giga;
  m.pinned_allocation = 0.1;
  m.disk = 0.1 * giga;
  m.between_nodes = network{0.1 * giga, 0};
  return m;
}

demand work(int devices, topology where = topology::shared) {
  demand d{};
  d.devices = devices;
  d.where = where;
  d.iterations = 2;
  d.units = 100;
  d.granule = 1;
  d.launches = 1;
  d.reference_seconds = 5;
  d.reference_units = 50;
  return d;
}

transfer to_device(double bytes) { return {"in", direction::to_device, bytes, 1, false, true, false, 2}; }

TEST(PaperModel, EquationsThreeToFiveRoundUp) {
  EXPECT_DOUBLE_EQ(0.1, paper::element_seconds(5, 50));
  EXPECT_DOUBLE_EQ(0.1 * 34, paper::gpu_seconds(0.1, 100, 3));
  EXPECT_DOUBLE_EQ(7, paper::gpu_seconds(7, 4, 16));
}

TEST(PaperModel, EquationSixHasThreePieces) {
  EXPECT_EQ(0, paper::paging_seconds(3, 4, 2, 0.5));
  EXPECT_DOUBLE_EQ(2, paper::paging_seconds(5, 4, 2, 0.5));
  EXPECT_DOUBLE_EQ(4, paper::paging_seconds(9, 4, 2, 0.5));
}

TEST(PaperModel, EquationSevenTakesAllocationOrDisk) {
  EXPECT_DOUBLE_EQ(0.1 + 3, paper::gpu_communication_seconds(true, 0.1, 5, 3));
  EXPECT_DOUBLE_EQ(5 + 3, paper::gpu_communication_seconds(false, 0.1, 5, 3));
}

TEST(PaperModel, BroadcastTakesAStepForEachPowerOfTwo) {
  EXPECT_EQ(0, paper::broadcast_steps(1));
  EXPECT_EQ(2, paper::broadcast_steps(4));
  EXPECT_EQ(3, paper::broadcast_steps(5));
}

TEST(PaperModel, EquationOneIsASumOfAllParts) {
  demand d = work(4);
  d.cpu_seconds = 1;
  d.transfers = {to_device(giga)};
  d.host_bytes = 20 * giga;
  d.exchanges = {{"x", pattern::gather, mega, 4, 1, 4 * giga, true, false}};
  // Each of 2 iterations consists of 25 units, CPU work, a transfer at a quarter of the link's rate, two passes over
  // the disk that four devices share, and a copy in memory.
  const estimate shared = paper::predict(d, machine());
  EXPECT_DOUBLE_EQ(2 * (2.5 + 1 + 4 + 2 * 40 + 1), shared.seconds);
  EXPECT_EQ(resource::disk, shared.bound());
  d.where = topology::distributed;
  d.host_bytes = 0;
  EXPECT_DOUBLE_EQ(2 * (2.5 + 1 + 1 + 0.03), paper::predict(d, machine()).seconds);
}

TEST(PaperModel, PinnedMemoryIsAllocatedOnce) {
  demand d = work(1);
  d.transfers = {to_device(giga)};
  d.transfers[0].pinned = true;
  EXPECT_DOUBLE_EQ(2 * (10 + 1) + 0.1, paper::predict(d, machine()).seconds);
}

TEST(PaperModel, OneDeviceExchangesNothing) {
  demand d = work(1, topology::distributed);
  d.exchanges = {{"x", pattern::broadcast, giga, 1, 1, giga, true, false}};
  machine_profile m = machine();
  m.between_nodes.reset();
  EXPECT_DOUBLE_EQ(20, paper::predict(d, m).seconds);
  EXPECT_DOUBLE_EQ(20, modern::predict(d, m).seconds);
  d.devices = 2;
  EXPECT_THROW(static_cast<void>(paper::predict(d, m)), bad_input);
  EXPECT_THROW(static_cast<void>(modern::predict(d, m)), bad_input);
}

TEST(ModernModel, OverlappedWorkCostsItsLongestPart) {
  demand d = work(1);
  d.transfers = {to_device(giga), to_device(12 * giga)};
  EXPECT_DOUBLE_EQ(2 * (10 + 13), modern::predict(d, machine()).seconds);
  d.transfers[0].overlap = true;
  EXPECT_DOUBLE_EQ(2 * (10 + 12), modern::predict(d, machine()).seconds);
  d.transfers[1].overlap = true;
  EXPECT_DOUBLE_EQ(2 * 13, modern::predict(d, machine()).seconds);
}

TEST(ModernModel, DirectionsOfALinkOverlapUpToTheirCommonRate) {
  demand d = work(1);
  d.reference_seconds = 0;
  d.transfers = {to_device(giga), to_device(2 * giga)};
  d.transfers[0].overlap = d.transfers[1].overlap = true;
  d.transfers[1].where = direction::to_host;
  machine_profile m = machine();
  EXPECT_DOUBLE_EQ(2 * 1.5, modern::predict(d, m).seconds);
  m.both_ways = same(3 * giga);
  EXPECT_DOUBLE_EQ(2 * 1, modern::predict(d, m).seconds);
}

TEST(ModernModel, KernelsRunInWavesOfBlocks) {
  demand d = work(1);
  machine_profile m = machine();
  m.launch = 1;
  EXPECT_DOUBLE_EQ(10 + 1, modern::kernel_seconds(d, m));
  d.block = 1;
  m.wave = 40;  // the reference takes 2 waves, and 100 blocks take 3
  EXPECT_DOUBLE_EQ(7.5 + 1, modern::kernel_seconds(d, m));
  m.kernel_floor = 9;
  EXPECT_DOUBLE_EQ(9 + 1, modern::kernel_seconds(d, m));
  m.relative_speed = 0.5;
  EXPECT_DOUBLE_EQ(15 + 1, modern::kernel_seconds(d, m));
}

TEST(ModernModel, DevicesThatShareCoresRunKernelsMoreSlowlyTogether) {
  machine_profile m = machine();
  m.speeds_together = rate_table({{1, 1}, {2, 0.8}});
  EXPECT_DOUBLE_EQ(10, modern::kernel_seconds(work(1), m));
  EXPECT_DOUBLE_EQ(5 / 0.8, modern::kernel_seconds(work(2), m));
  EXPECT_DOUBLE_EQ(2.5 / 0.4, modern::kernel_seconds(work(4), m));
  EXPECT_DOUBLE_EQ(2.5, modern::kernel_seconds(work(4, topology::distributed), m));
  EXPECT_DOUBLE_EQ(0.4, profile_of_json(as_json(m), "again").on_one_machine(4).arithmetic);
}

TEST(ModernModel, DevicesThatShareLinksAndCoresGetOutOfStep) {
  machine_profile m = machine();
  m.speeds_together = rate_table({{1, 1}, {4, 0.5}});
  demand d = work(4);
  d.iterations = 1;
  d.transfers = {to_device(giga)};
  // If devices stay in step, kernels take 5 s, of which devices wait 2.5 s for cores, and the link takes 4 s, of which
  // they wait 3 s for other devices.
  EXPECT_DOUBLE_EQ(5 + 4 - 2.5 / 2, modern::predict(d, m).seconds);
  d.exchanges = {{"x", pattern::shift, 1, 4, 1, 0, true, false}};
  EXPECT_NEAR(5 + 4, modern::predict(d, m).seconds, 1e-6) << "an exchange keeps the devices in step";
  d.exchanges.clear();
  m.speeds_together = {};
  EXPECT_DOUBLE_EQ(2.5 + 4, modern::predict(d, m).seconds) << "the devices share only the link";
}

TEST(ModernModel, MachinesThatShareProcessorsRunKernelsMoreSlowlyTogether) {
  machine_profile m = machine();
  const demand d = work(4, topology::distributed);
  const double alone = modern::predict(d, m).seconds;
  m.speeds_together = rate_table({{1, 1}, {4, 0.1}});
  EXPECT_EQ(alone, modern::predict(d, m).seconds) << "there is one device in each machine";
  m.speeds_on_machines = rate_table({{1, 1}, {4, 0.5}});
  EXPECT_DOUBLE_EQ(2 * alone, modern::predict(d, profile_of_json(as_json(m), "again")).seconds);
}

TEST(ModernModel, KernelsThatMemoryBoundsSlowDownAsMemoryDoes) {
  machine_profile m = machine();
  m.speeds_together = rate_table({{1, 1}, {2, 1}});
  m.memory_speeds_together = rate_table({{1, 1}, {2, 0.5}});
  demand d = work(2);
  d.reference_bytes = 10 * giga;
  EXPECT_DOUBLE_EQ(5, modern::kernel_seconds(d, m));  // the rate of memory is not known
  m.kernel_memory = 1 * giga;                         // the reference run waits for memory all the time
  EXPECT_DOUBLE_EQ(10, modern::kernel_seconds(d, m));
  d.reference_bytes = 100 * giga;  // because of caches, never longer than the reference
  EXPECT_DOUBLE_EQ(10, modern::kernel_seconds(d, m));
  d.reference_bytes = 2 * giga;  // two fifths of the time: arithmetic hides it
  EXPECT_DOUBLE_EQ(5, modern::kernel_seconds(d, m));
  d.reference_bytes = 4 * giga;
  EXPECT_DOUBLE_EQ(8, modern::kernel_seconds(d, profile_of_json(as_json(m), "again")));
}

TEST(ModernModel, CollectivesChooseTheirAlgorithmBySize) {
  const modern::path way{giga, 1e-3};
  EXPECT_DOUBLE_EQ(3 * (1e-3 + 1e-6), modern::exchange_seconds(pattern::broadcast, 1e3, 8, way));
  EXPECT_DOUBLE_EQ(10e-3 + 2 * 7.0 / 8, modern::exchange_seconds(pattern::broadcast, giga, 8, way));
  EXPECT_DOUBLE_EQ(6e-3 + 2 * 7.0 / 8, modern::exchange_seconds(pattern::all_reduce, giga, 8, way));
  EXPECT_DOUBLE_EQ(7 * (1e-3 + 1e-6), modern::exchange_seconds(pattern::all_to_all, 1e3, 8, way));
  EXPECT_DOUBLE_EQ(1e-3 + 2, modern::exchange_seconds(pattern::halo, giga, 8, way));
  EXPECT_DOUBLE_EQ(1e-3 + 1, modern::exchange_seconds(pattern::halo, giga, 2, way));
  EXPECT_EQ(0, modern::exchange_seconds(pattern::all_gather, giga, 1, way));
}

TEST(ModernModel, DevicesExchangeByTheirOwnLinksIfThereAreSome) {
  demand d = work(4);
  d.reference_seconds = 0;
  d.iterations = 1;
  d.exchanges = {{"x", pattern::shift, giga, 4, 1, 0, true, false}};
  machine_profile m = machine();
  const estimate through_host = modern::predict(d, m);
  EXPECT_DOUBLE_EQ(4, through_host.seconds);  // a quarter of 1 GB/s in each direction
  EXPECT_EQ(resource::to_host, through_host.bound());
  m.peers = peer_links{0.5, {{0, 1, 4 * giga}, {2, 3, 2 * giga}}};
  EXPECT_DOUBLE_EQ(0.5 + 0.5, modern::predict(d, m).seconds);
  d.devices = 2;
  EXPECT_DOUBLE_EQ(0.5 + 0.25, modern::predict(d, m).seconds);
  m.peers->together = rate_table({{1, 4 * giga}, {2, giga}});
  EXPECT_DOUBLE_EQ(0.5 + 1, modern::predict(d, profile_of_json(as_json(m), "again")).seconds);
  d.where = topology::distributed;
  EXPECT_DOUBLE_EQ(10, modern::predict(d, m).seconds);
}

TEST(ModernModel, MessagesThatPassEachOtherShareTheNetwork) {
  demand d = work(4, topology::distributed);
  d.reference_seconds = 0;
  d.iterations = 1;
  machine_profile m = machine();  // its network has 0.1 GB/s
  const auto seconds = [&](pattern how) {
    d.exchanges = {{"x", how, 0.1 * giga, 4, 1, 0, true, false}};
    return modern::predict(d, profile_of_json(as_json(m), "again")).seconds;
  };
  EXPECT_DOUBLE_EQ(3, seconds(pattern::all_gather));
  m.between_nodes->together = rate_table({{1, 0.1 * giga}, {2, 0.09 * giga}, {4, 0.06 * giga}});
  EXPECT_DOUBLE_EQ(3 / 0.6, seconds(pattern::all_gather));
  EXPECT_DOUBLE_EQ(1 / 0.6, seconds(pattern::shift));
  EXPECT_DOUBLE_EQ(3, seconds(pattern::gather)) << "all send to one";
  EXPECT_DOUBLE_EQ(3, seconds(pattern::scatter));
}

TEST(ModernModel, MachinesThatShareProcessorsSlowDownCopies) {
  demand d = work(4, topology::distributed);
  d.reference_seconds = 0;
  d.iterations = 1;
  d.transfers = {to_device(giga)};
  machine_profile m = machine();
  EXPECT_DOUBLE_EQ(1, modern::predict(d, m).seconds);
  m.copy_speeds_on_machines = rate_table({{1, 1}, {4, 0.5}});
  EXPECT_DOUBLE_EQ(2, modern::predict(d, profile_of_json(as_json(m), "again")).seconds);
  d.where = topology::shared;
  EXPECT_DOUBLE_EQ(4, modern::predict(d, m).seconds) << "devices of one machine share its links";
}

TEST(ModernModel, ExchangesByKernelsHideTheSlowerOfLinksAndMemory) {
  demand d = work(2);
  d.reference_seconds = 0;
  d.iterations = 1;
  d.exchanges = {{"x", pattern::shift, giga, 2, 3, 0, true, false}};
  machine_profile m = machine();
  m.kernel_memory = 8 * giga;
  m.peers = peer_links{0, {{0, 1, 2 * giga}}};
  m.peers->by_kernels = rate_table({{1, giga}, {2, 0.5 * giga}});
  EXPECT_DOUBLE_EQ(3 * 0.5, modern::predict(d, m).seconds);
  d.exchanges[0].kernel_bytes = 4 * giga;
  EXPECT_DOUBLE_EQ(3 * (2 - 0.5), modern::predict(d, profile_of_json(as_json(m), "again")).seconds);
  d.exchanges[0].kernel_bytes = 40 * giga;
  EXPECT_EQ(0, modern::predict(d, m).seconds);
  m.kernel_memory = 0;
  EXPECT_DOUBLE_EQ(3 * 0.5, modern::predict(d, m).seconds) << "the rate of memory is not known";
}

TEST(ModernModel, PageableCopiesHaveTheirOwnLatency) {
  demand d = work(1);
  d.transfers = {to_device(giga)};
  d.transfers[0].pieces = 3;
  machine_profile m = machine();
  m.pageable_latency = 0.5;
  m.link_latency = 0.25;
  EXPECT_DOUBLE_EQ(2 * (10 + 3 * 0.5 + 1), modern::predict(d, profile_of_json(as_json(m), "again")).seconds);
  d.transfers[0].pinned = true;
  EXPECT_DOUBLE_EQ(2 * (10 + 3 * 0.25 + 1) + 0.1, modern::predict(d, m).seconds);
}

TEST(ModernModel, BytesBeyondDeviceMemoryCrossTheLinkInEachIteration) {
  demand d = work(1);
  d.device_bytes = 4 * giga;
  EXPECT_DOUBLE_EQ(20, modern::predict(d, machine()).seconds);
  d.device_bytes = 24 * giga;
  EXPECT_DOUBLE_EQ(2 * 20, modern::predict(d, machine()).seconds);
}

TEST(RateTable, SumsAreInterpolatedAndNotExceeded) {
  const rate_table t({{1, 3}, {2, 2}, {4, 2}});
  EXPECT_EQ(3, t.of_each(1));
  EXPECT_EQ(2, t.of_each(3));
  EXPECT_EQ(1, t.of_each(8));
  EXPECT_THROW(rate_table({{2, 1}}), bad_input);
  EXPECT_THROW(rate_table({{1, 1}, {1, 2}}), bad_input);
}

}  // namespace
}  // namespace hpe::predict
