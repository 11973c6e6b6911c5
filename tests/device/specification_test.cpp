#include <gtest/gtest.h>

#include "runtime/device/cuda/open.h"
#include "runtime/device/soft/shared/device_specification.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::device::cuda::parse_count;
using hpe::device::soft::parse_link;
using hpe::device::soft::parse_nodes;
using hpe::device::soft::parse_topology;

std::string refusal(const std::string& text) {
  return words_of([&] { static_cast<void>(parse_topology(text)); });
}

TEST(topology, one_switch) {
  const auto shape = parse_topology("soft:4");
  EXPECT_EQ(shape.devices(), 4U);
  EXPECT_EQ(shape.switches, 1U);
  EXPECT_TRUE(shape.peers(0, 3));
}

TEST(topology, several_switches) {
  const auto shape = parse_topology("soft:2x4");
  EXPECT_EQ(shape.devices(), 8U);
  EXPECT_EQ(shape.switch_of(3), 0U);
  EXPECT_EQ(shape.switch_of(4), 1U);
  EXPECT_TRUE(shape.peers(4, 7));
  EXPECT_FALSE(shape.peers(3, 4));
}

TEST(topology, default_is_two_devices) { EXPECT_EQ(parse_topology("").devices(), 2U); }

TEST(topology, sixteen_is_the_most) {
  EXPECT_EQ(parse_topology("soft:16").devices(), 16U);
  EXPECT_EQ(parse_topology("soft:4x4").devices(), 16U);
  for (const char* text : {"soft:17", "soft:4x5", "soft:99999999999999", "soft:4294967296x4294967296",
                           "soft:9223372036854775808x2", "soft:2x9223372036854775808"})
    EXPECT_NE(refusal(text).find("at most 16"), std::string::npos) << text;
}

TEST(shape, is_one_tile_of_one_thread_unless_it_says_more) {
  const hpe::device::shape one;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(one.grid[i], 1U);
    EXPECT_EQ(one.block[i], 1U);
  }
  EXPECT_EQ(one.team, 0U);
  EXPECT_EQ(one.shared_bytes, 0U);
  EXPECT_FALSE(one.cooperative);
  EXPECT_FALSE(one.asks_for_cluster());
}

TEST(topology, an_invalid_value_is_refused_with_the_valid_ones) {
  for (const char* text : {"soft", "soft:", "soft:0", "soft:x", "soft:2x", "soft:x2", "soft:0x2", "soft:2x0", "soft:-1",
                           "soft: 2", "soft:2 ", "soft:2x2x2", "hard:2", "2", "SOFT:2"}) {
    EXPECT_EQ(thrown_by([&] { static_cast<void>(parse_topology(text)); }), HPE_ERROR_INITIALIZATION) << text;
    EXPECT_NE(refusal(text).find("soft:SxN"), std::string::npos) << text;
    EXPECT_NE(refusal(text).find(text), std::string::npos) << text;
  }
}

TEST(gpus, all_or_the_first_ones) {
  EXPECT_FALSE(parse_count("cuda"));
  EXPECT_EQ(parse_count("cuda:3"), 3U);
}

TEST(gpus, an_invalid_value_is_refused_with_the_valid_ones) {
  for (const char* text : {"cuda:", "cuda:0", "cuda:x", "cuda:2x2", "cuda:-1", "cuda 1", "cudas", "cuda:99999999999"}) {
    const auto parse = [&] { static_cast<void>(parse_count(text)); };
    EXPECT_EQ(thrown_by(parse), HPE_ERROR_INITIALIZATION) << text;
    EXPECT_NE(words_of(parse).find("cuda:N"), std::string::npos) << text;
    EXPECT_NE(words_of(parse).find(text), std::string::npos) << text;
  }
}

TEST(gpus, more_than_there_are_cannot_be_had) {
  const auto open = [] { hpe::device::open_devices("cuda:9999", layout_for(4)); };
  EXPECT_EQ(thrown_by(open), HPE_ERROR_INITIALIZATION);
  const std::string words = words_of(open);
  EXPECT_TRUE(words.find("CUDA") != std::string::npos || words.find("GPUs") != std::string::npos) << words;
}

TEST(gpus, where_there_are_none_the_default_is_soft) {
  if (!gpus().empty()) GTEST_SKIP() << "there are GPUs";
  EXPECT_EQ(machine("").device(0).info().kind, HPE_DEVICE_SOFT);
}

TEST(link_option, bandwidth_and_latency) {
  const auto link = parse_link("HPE_X", "12G:5");
  EXPECT_EQ(link.bytes_per_second, 12ULL << 30);
  EXPECT_EQ(link.latency_ns, 5000U);
  EXPECT_EQ(parse_link("HPE_X", "64M").latency_ns, 0U);
  EXPECT_EQ(parse_link("HPE_X", "").bytes_per_second, 0U);
}

TEST(link_option, takes_ten_seconds_at_most) {
  EXPECT_EQ(parse_link("HPE_X", "1:10000000").latency_ns, 10'000'000'000U);
  EXPECT_EQ(parse_link("HPE_X", "1:0").bytes_per_second, 1U);
  EXPECT_EQ(thrown_by([] { static_cast<void>(parse_link("HPE_X", "1:10000001")); }), HPE_ERROR_INITIALIZATION);
}

TEST(link_option, nonsense_names_the_option) {
  for (const char* text : {"fast", "0", "0:5", "12G:", "12G:x", "12G:-5", "12G:5:5", ":5", "12G:99999999999"}) {
    const auto parse = [&] { static_cast<void>(parse_link("HPE_SOFT_PEER_LINK", text)); };
    EXPECT_EQ(thrown_by(parse), HPE_ERROR_INITIALIZATION) << text;
    EXPECT_NE(words_of(parse).find("HPE_SOFT_PEER_LINK"), std::string::npos) << text;
  }
}

TEST(node_option, names_the_nodes_of_devices_in_turn) {
  EXPECT_EQ(parse_nodes("", 2), (std::vector<int>{-1, -1}));
  EXPECT_EQ(parse_nodes("0", 3), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(parse_nodes("4,1", 5), (std::vector<int>{4, 1, 4, 1, 4}));
  EXPECT_EQ(parse_nodes("1,2,3", 2), (std::vector<int>{1, 2}));
  EXPECT_EQ(parse_nodes("1023", 1), (std::vector<int>{1023}));
}

TEST(node_option, an_invalid_value_is_refused_with_the_valid_ones) {
  for (const char* text : {",", "0,", ",1", "-1", "one", "0 1", "0,,1", "1024", "99999999999999999999"}) {
    const auto parse = [&] { static_cast<void>(parse_nodes(text, 2)); };
    EXPECT_EQ(thrown_by(parse), HPE_ERROR_INITIALIZATION) << text;
    EXPECT_NE(words_of(parse).find("HPE_SOFT_NODES"), std::string::npos) << text;
  }
}

TEST(node_option, devices_have_them) {
  const environment nodes{{"HPE_SOFT_NODES", "6,2"}};
  machine soft("soft:3");
  EXPECT_EQ(soft.device(0).info().numa_node, 6);
  EXPECT_EQ(soft.device(1).info().numa_node, 2);
  EXPECT_EQ(soft.device(2).info().numa_node, 6);
}

}  // namespace
}  // namespace device_test
