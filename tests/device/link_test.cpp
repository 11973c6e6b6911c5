// Links with a bandwidth and a latency. The machine may be busy, so only what it cannot hasten is exact: nothing
// arrives early. Upper bounds are generous.

#include <gtest/gtest.h>

#include "tests/device/kernels.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::timepoint;
using hpe::device::priority;
using clock = std::chrono::steady_clock;

constexpr std::size_t bytes = 4 * MiB;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

class links : public testing::Test {
 protected:
  const environment limits{{"HPE_SOFT_HOST_LINK", "100M:3000"}, {"HPE_SOFT_PEER_LINK", "200M:1000"}};
  machine m{"soft:2x2"};
  host_buffer host{m.set(), 2 * bytes};

  void SetUp() override {
    for (unsigned d = 0; d < m.size(); ++d) {
      m.device(d).map(m.address(d), 2 * bytes);
      m.finish(m.stream(d).fill(m.address(d), 1, 2 * bytes));
    }
  }
  double time(const std::vector<timepoint>& points, clock::time_point begin) {
    for (const timepoint point : points) m.finish(point);
    return milliseconds_since(begin);
  }
};

TEST_F(links, upload_and_download_take_their_time) {
  for (const bool up : {true, false}) {
    const auto begin = clock::now();
    const double took = time(
        {up ? m.stream(0).copy(m.address(0), host.data(), bytes) : m.stream(0).copy(host.data(), m.address(0), bytes)},
        begin);
    EXPECT_GE(took, 42.9);  // 40 ms and 3 ms
    EXPECT_LE(took, 120);
  }
}

TEST_F(links, latency_is_paid_once) {
  const auto begin = clock::now();
  const double took = time({m.stream(0).copy(m.address(0), host.data(), 4)}, begin);
  EXPECT_GE(took, 2.9);
  EXPECT_LE(took, 20);
}

TEST_F(links, peers_use_their_own) {
  const auto begin = clock::now();
  const double took = time({m.stream(0).copy(m.address(1), m.address(0), bytes)}, begin);
  EXPECT_GE(took, 20.9);
  EXPECT_LE(took, 42.9);
}

TEST_F(links, inside_a_device_there_is_none) {
  const auto begin = clock::now();
  EXPECT_LE(time({m.stream(0).copy(m.address(0, bytes), m.address(0), bytes)}, begin), 40);
}

TEST_F(links, devices_of_a_switch_share_the_way_to_the_host) {
  auto begin = clock::now();
  EXPECT_GE(
      time({m.stream(0).copy(m.address(0), host.data(), bytes), m.stream(1).copy(m.address(1), host.data(), bytes)},
           begin),
      82.9);
  begin = clock::now();
  EXPECT_LE(
      time({m.stream(0).copy(m.address(0), host.data(), bytes), m.stream(2).copy(m.address(2), host.data(), bytes)},
           begin),
      82.9);
}

TEST_F(links, both_directions_at_once) {
  auto& other = m.device(0).create_stream(priority::launch);
  const auto begin = clock::now();
  EXPECT_LE(time({m.stream(0).copy(m.address(0), host.data(), bytes),
                  other.copy(host.data() + bytes, m.address(0, bytes), bytes)},
                 begin),
            82.9);
}

TEST_F(links, the_urgent_overtake) {
  auto& rolling = m.device(0).create_stream(priority::rolling);
  auto& urgent = m.device(1).create_stream(priority::waiting_host);           // of another process, on the same link
  const timepoint slow = rolling.copy(m.address(0), host.data(), 2 * bytes);  // 80 ms
  m.finish(m.launch(m.stream(1), "rest", rest_parameters{10'000, nullptr, 0}));
  const auto begin = clock::now();
  m.finish(urgent.copy(m.address(1), host.data(), bytes));  // 40 ms
  const double took = milliseconds_since(begin);
  EXPECT_FALSE(m.set().reached(slow));
  // Shared evenly it would take 80.
  EXPECT_LE(took, 75);
  EXPECT_GE(time({slow}, begin), 100);
}

TEST(unlimited_links, keep_no_time) {
  machine m("soft:1");
  host_buffer host(m.set(), MiB);
  m.device(0).map(m.address(0), 2 * MiB);
  m.finish(m.stream(0).copy(m.address(0), host.data(), MiB));
  const auto begin = clock::now();
  for (int i = 0; i < 100; ++i) m.stream(0).copy(m.address(0), host.data(), 4096);
  m.finish(m.stream(0).last());
  EXPECT_LE(milliseconds_since(begin), 500);
}

}  // namespace
}  // namespace device_test
