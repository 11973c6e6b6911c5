// Computes Schaa and Kaeli's figures from their own profile, and compares them with the text of the paper: with values
// that it prints, and with statements about the shape of each figure. docs/papers.md lists the statements that the
// paper's figures contradict.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "apps/predict/machine_profile.h"
#include "apps/predict/paper_model.h"
#include "apps/predict/specification.h"

namespace hpe::predict {
namespace {

machine_profile nodes() { return read_profile(HPE_PREDICT "/machines/schaa-kaeli-distributed.json"); }
machine_profile one_bus() { return read_profile(HPE_PREDICT "/machines/schaa-kaeli-shared.json"); }

specification application(const std::string& name, const std::string& sizes = "") {
  specification s = specification::read(HPE_PREDICT "/applications/" + name + ".toml");
  s.set(sizes);
  return s;
}

double distributed(const specification& s, int devices, const machine_profile& m = nodes()) {
  return paper::predict(s.on(devices, topology::distributed).value(), m).seconds;
}
double shared(const specification& s, int devices) {
  return paper::predict(s.on(devices, topology::shared).value(), one_bus()).seconds;
}

machine_profile with_ten_gigabits() { return with_changes(nodes(), "network=10x"); }

TEST(Table1, IsInTheProfiles) {
  const machine_profile gtx = nodes(), ultra = one_bus();
  EXPECT_EQ(1350e6, gtx.pageable_to_device.of_each(1));
  EXPECT_EQ(1390e6, gtx.pinned_to_device.of_each(1));
  EXPECT_EQ(1638e6, ultra.pageable_to_device.of_each(1));
  EXPECT_EQ(695e6, ultra.pageable_to_device.of_each(2));
  EXPECT_EQ(347e6, ultra.pageable_to_device.of_each(4));
  EXPECT_EQ(3182e6, ultra.pinned_to_device.of_each(1));
  EXPECT_EQ(1389e6, ultra.pinned_to_device.of_each(2));
  EXPECT_EQ(695e6, ultra.pinned_to_device.of_each(4));
  for (const machine_profile& m : {gtx, ultra})
    for (int devices = 1; devices <= 4; ++devices) {
      EXPECT_EQ(m.pinned_to_device.of_each(devices), m.pinned_to_host.of_each(devices))
          << "the paper has one rate for both directions";
      EXPECT_EQ(m.pageable_to_device.of_each(devices), m.pageable_to_host.of_each(devices));
    }
}

TEST(Text, IsInTheProfilesAndSpecifications) {
  for (const machine_profile& m : {nodes(), one_bus()}) {
    EXPECT_EQ(0.1, m.pinned_allocation) << "section 4.2.1";
    EXPECT_EQ(26.2e6, m.disk) << "section 4.3.2";
    EXPECT_EQ(3.8e9, m.host_memory) << "section 4.3.2";
    EXPECT_EQ(768e6, m.device_memory) << "section 5.2";
  }
  EXPECT_EQ(2, one_bus().devices);
  EXPECT_EQ(125e6, nodes().between_nodes.value().rate) << "section 6.2.2: 1 Gb";
  const demand rays = application("ray-tracing").on(1, topology::shared).value();
  EXPECT_EQ(0.314, rays.reference_seconds);
  EXPECT_EQ(1024 * 768, rays.units);
  EXPECT_EQ(13548, rays.transfers.at(1).bytes);
  // Section 5.1: 7 x 7 weights, with a product and a sum for each. Section 1: 40 GFLOPS of a matrix product.
  const demand convolution = application("convolution").on(1, topology::shared).value();
  EXPECT_DOUBLE_EQ(2 * 7 * 7 / 40e9, convolution.reference_seconds / convolution.reference_units);
}

TEST(Figure2, TransferTimeRisesFromTheLimitOfMemoryUntilAllDataIsOnDisk) {
  const machine_profile m = nodes();
  const auto seconds = [&](double allocated) {
    constexpr double transferred = 720e6;
    return transferred / m.pageable_to_device.of_each(1) +
           2 * paper::paging_seconds(allocated, m.host_memory, transferred, m.disk);
  };
  EXPECT_NEAR(720.0 / 1350, seconds(3.7e9), 1e-9);
  EXPECT_GT(seconds(3.9e9), seconds(3.8e9));
  EXPECT_NEAR(720.0 / 1350 + 2 * 720 / 26.2, seconds(4.52e9), 1e-6);
  EXPECT_DOUBLE_EQ(seconds(4.52e9), seconds(6e9));
}

/// The code in the paper's figure 3, line by line, with the rates of the paper's test system.
double frame_seconds(double i, double j) {
  const double pixel = 4, state = 13548, net = 125e6, pcie = 1350e6;
  const double rows = i * 1024 / j, columns = i * 768, data = rows * columns * pixel;
  const double gpu = i * i * 0.314 / j;
  const double network = j > 1 ? data * (j - 1) / net + state * (j - 1) / net : 0;
  return gpu + network + data / pcie + state / pcie;
}

TEST(Figure3, IsWhatTheSpecificationSays) {
  for (int scale = 1; scale <= 4; ++scale)
    for (int devices = 1; devices <= 16; ++devices)
      EXPECT_NEAR(frame_seconds(scale, devices),
                  distributed(application("ray-tracing", "scale=" + std::to_string(scale)), devices),
                  1e-4 * frame_seconds(scale, devices))
          << scale << " " << devices;
}

TEST(Figure4, DistributedDevicesPreventPagingAndSharedOnesDoNot) {
  for (const int megapixels : {400, 600, 1000}) {
    const specification s = application("convolution", "megapixels=" + std::to_string(megapixels));
    const bool pages = 8e6 * megapixels > 3.8e9;
    const auto has_disk = [&](const estimate& e) { return e.busy.contains(resource::disk); };
    EXPECT_EQ(pages, has_disk(paper::predict(s.on(1, topology::distributed).value(), nodes())));
    EXPECT_FALSE(has_disk(paper::predict(s.on(4, topology::distributed).value(), nodes())));
    EXPECT_EQ(pages, has_disk(paper::predict(s.on(4, topology::shared).value(), one_bus())));
    if (pages) {
      EXPECT_GT(shared(s, 4), 10 * distributed(s, 4))
          << "the difference is so large that the figure's axis is logarithmic";
    }
  }
}

TEST(Figure5, TheNetworkLimitsRayTracingSoonerThanTheSharedBus) {
  for (int scale = 1; scale <= 4; ++scale) {
    const specification s = application("ray-tracing", "scale=" + std::to_string(scale));
    EXPECT_GT(shared(s, 1) / shared(s, 8), 6);
    EXPECT_LT(distributed(s, 1) / distributed(s, 8), 6);
    for (int devices = 2; devices <= 16; ++devices) EXPECT_LT(shared(s, devices), distributed(s, devices));
    EXPECT_LT(distributed(s, 16, with_ten_gigabits()), shared(s, 16));
  }
}

TEST(Figure6, BroadcastMakesStepsAboveEachPowerOfTwo) {
  const specification s = application("image-reconstruction");
  for (const int power : {2, 4, 8}) {
    EXPECT_GT(paper::predict(s.on(power + 1, topology::distributed).value(), nodes()).busy[resource::network],
              paper::predict(s.on(power, topology::distributed).value(), nodes()).busy[resource::network]);
    for (int devices = power + 2; devices <= 2 * power; ++devices)
      EXPECT_LE(distributed(s, devices), distributed(s, devices - 1)) << devices;
  }
  for (int devices = 2; devices <= 16; ++devices) EXPECT_LT(shared(s, devices), distributed(s, devices));
  for (int devices = 2; devices <= 4; ++devices)
    EXPECT_NEAR(1, distributed(s, devices, with_ten_gigabits()) / shared(s, devices), 0.1) << devices;
}

TEST(Figure7, FoxRunsOnSquaresAndTheNetworkBoundsSmallMatrices) {
  const specification s = application("matrix-product");
  EXPECT_FALSE(s.on(2, topology::distributed).has_value());
  // A product of 4096^3 at 40 GFLOP/s, and transfers over links: two blocks to the device, one block back.
  EXPECT_NEAR(2 * std::pow(4096, 3) / 40e9 + 3 * 4 * 4096.0 * 4096 / 1350e6, distributed(s, 1), 1e-6);
  const double block = 4 * 2048.0 * 2048;
  EXPECT_NEAR(2 * std::pow(4096, 3) / 40e9 / 4 + (2 * 2 + 1) * block / 1350e6 + 2 * 2 * block / 125e6,
              distributed(s, 4), 1e-6);
  EXPECT_EQ(resource::network, paper::predict(s.on(16, topology::distributed).value(), nodes()).bound());
  EXPECT_EQ(
      resource::kernels,
      paper::predict(application("matrix-product", "n=32768").on(16, topology::distributed).value(), nodes()).bound());
}

}  // namespace
}  // namespace hpe::predict
