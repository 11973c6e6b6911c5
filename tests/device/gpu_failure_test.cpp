// Kernels that break the context of their GPU, and GPUs without free memory. These tests need GPUs.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/base/granule.h"
#include "tests/device/kernels.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::timepoint;

// The GPU of a broken context is lost for the rest of the process, so ctest runs each of these tests in its own
// process.
class gpu_failures : public testing::Test {
 protected:
  void SetUp() override {
    if (gpus().empty()) GTEST_SKIP() << "there are no GPUs";
  }
};

TEST_F(gpu_failures, a_wild_address_loses_the_devices_and_nothing_else) {
  machine m("cuda");
  const std::size_t bytes = hpe::granule_size;
  host_buffer host(m.set(), bytes);
  const auto values = host.as<std::uint32_t>();
  std::iota(values.begin(), values.end(), 1U);
  for (unsigned d = 0; d < m.size(); ++d) m.device(d).map(m.address(d), bytes);
  m.finish(m.stream(0).copy(m.address(0), host.data(), bytes));
  const timepoint early = m.stream(0).last();

  const timepoint broken = m.launch(m.stream(0), "load", load_parameters{nullptr, m.at<std::uint64_t>(0)});
  const auto queue_behind = [&] { m.stream(0).fill(m.address(0), 1, bytes); };
  static_cast<void>(thrown_by(queue_behind));  // the device may have noticed the failure already
  const auto elsewhere = [&] {
    m.stream(1).wait(broken);
    m.stream(1).fill(m.address(1), 1, bytes);
  };
  if (m.size() > 1) static_cast<void>(thrown_by(elsewhere));
  EXPECT_EQ(m.outcome(broken), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(m.outcome(early), HPE_SUCCESS);
  EXPECT_TRUE(m.device(0).lost());
  const std::string words = m.set().status_of(broken)->what();
  EXPECT_NE(words.find("device 0"), std::string::npos) << words;
  EXPECT_NE(words.find("CUDA_ERROR"), std::string::npos) << words;
  EXPECT_NE(words.find("load"), std::string::npos) << words;

  // The other GPUs may be lost too. Each lost device is reported once, this one first.
  std::vector<unsigned> lost;
  for (unsigned d = 0; d < m.size(); ++d)
    if (m.device(d).lost()) lost.push_back(d);
  for (const unsigned d : lost) {
    const auto failure = m.set().take_failure(-1);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->status(), HPE_ERROR_DEVICE_LOST);
    EXPECT_NE(std::string(failure->what()).find(fmt::format("device {}", d)), std::string::npos) << failure->what();
  }
  EXPECT_FALSE(m.set().take_failure(-1));
  EXPECT_EQ(thrown_by([&] { m.launch(m.stream(0), "empty", load_parameters{}); }), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(thrown_by([&] { m.device(0).map(m.address(0, 8 * MiB), bytes); }), HPE_ERROR_DEVICE_LOST);
  EXPECT_EQ(thrown_by(queue_behind), HPE_ERROR_DEVICE_LOST);
  m.device(0).unmap(m.address(0), bytes);

  // Waiting work is released, and the host's data has not changed.
  EXPECT_TRUE(m.set().wait(m.stream(m.size() - 1).last(), in(2s)));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i + 1);
}

TEST_F(gpu_failures, out_of_memory_names_the_sizes) {
  machine m("cuda:1");
  const std::size_t free = m.device(0).memory().free / hpe::granule_size * hpe::granule_size;
  const std::size_t wanted = std::min(free + hpe::granule_size, m.layout().segment_size * 16);
  const std::string words = words_of([&] { m.device(0).map(m.address(0), wanted); });
  EXPECT_NE(words.find(std::to_string(wanted)), std::string::npos) << words;
  EXPECT_NE(words.find("memory left"), std::string::npos) << words;
  m.device(0).map(m.address(0), hpe::granule_size);
}

TEST_F(gpu_failures, a_launch_that_cannot_be_is_refused_and_harms_nothing) {
  machine m("cuda:1");
  const auto words = words_of([&] { m.launch(m.stream(0), "empty", load_parameters{}, {{1, 1, 1}, {4096, 1, 1}}); });
  EXPECT_NE(words.find("\"empty\""), std::string::npos) << words;
  EXPECT_NE(words.find("4096"), std::string::npos) << words;
  m.finish(m.launch(m.stream(0), "empty", load_parameters{}));
}

TEST_F(gpu_failures, memory_beyond_the_budget_is_copied_without_pinning) {
  const environment variables{{"HPE_PINNED_MEMORY", "4M"}};
  machine m("cuda:1");
  const std::size_t bytes = 64 * MiB;
  host_buffer out(m.set(), bytes);
  host_buffer back(m.set(), bytes);
  m.device(0).map(m.address(0), bytes);
  const auto values = out.as<std::uint64_t>();
  std::iota(values.begin(), values.end(), 7U);
  for (std::size_t at = 0; at < bytes; at += 8 * MiB) {
    m.stream(0).copy(m.address(0, at), out.data() + at, 8 * MiB);
    m.stream(0).copy(back.data() + at, m.address(0, at), 8 * MiB);
  }
  m.finish(m.stream(0).last());
  EXPECT_TRUE(std::ranges::equal(values, back.as<std::uint64_t>()));
}

}  // namespace
}  // namespace device_test
