// The small parts of the device interface: the count of a device's memory, checks of arguments, fingerprints, and the
// default values of members.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/device/capacity.h"
#include "runtime/device/checks.h"
#include "runtime/device/device_ptx_module.h"
#include "runtime/device/fingerprint.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::granule_size;
using hpe::device::capacity;
using hpe::device::fingerprint;
using hpe::device::fingerprint_key;
using hpe::device::fingerprint_sum;

TEST(capacity, is_that_of_the_device_or_the_limit) {
  EXPECT_EQ(capacity::limited(100, 0), 100U);
  EXPECT_EQ(capacity::limited(100, 1), 1U);
  EXPECT_EQ(capacity::limited(100, 99), 99U);
  EXPECT_EQ(capacity::limited(100, 100), 100U);
  EXPECT_EQ(capacity::limited(100, 101), 100U);
  EXPECT_EQ(capacity::limited(0, 5), 0U);
}

TEST(capacity, is_taken_up_to_the_last_byte_and_no_further) {
  capacity all(100, nullptr);
  EXPECT_EQ(all.total(), 100U);
  EXPECT_EQ(all.share(), nullptr);
  EXPECT_FALSE(all.try_take(101));
  EXPECT_EQ(all.free(), 100U);
  EXPECT_TRUE(all.try_take(60));
  EXPECT_EQ(all.free(), 40U);
  EXPECT_FALSE(all.try_take(41));
  EXPECT_TRUE(all.try_take(0));
  EXPECT_EQ(thrown_by([&] { all.take(3, 41); }), HPE_ERROR_OUT_OF_MEMORY);
  const std::string words = words_of([&] { all.take(3, 41); });
  EXPECT_NE(words.find("device 3 has 40 of 100 bytes of memory left; 41 bytes were requested; HPE_DEVICE_MEMORY"),
            std::string::npos)
      << words;
  all.take(3, 40);
  EXPECT_EQ(all.free(), 0U);
  EXPECT_FALSE(all.try_take(1));
  all.give(100);
  EXPECT_EQ(all.free(), 100U);
  EXPECT_TRUE(all.try_take(100));
}

TEST(checks, accept_whole_granules_of_the_address_space_only) {
  const hpe::uvas_layout layout{std::uintptr_t{1} << 45, 4 * granule_size, 2};
  const std::size_t all = layout.size();
  const auto status = [&](std::uintptr_t begin, std::size_t bytes) {
    return thrown_by([&] { hpe::device::require_granules(layout, reinterpret_cast<const void*>(begin), bytes); });
  };
  for (const std::size_t first : {std::size_t{0}, granule_size, all - granule_size})
    for (const std::size_t bytes : {granule_size, all - first})
      EXPECT_EQ(status(layout.base + first, bytes), HPE_SUCCESS) << first << ' ' << bytes;
  for (const auto& [begin, bytes] : {std::pair<std::uintptr_t, std::size_t>{layout.base, 0},
                                     {layout.base, granule_size - 1},
                                     {layout.base, granule_size + 4096},
                                     {layout.base + 4096, granule_size},
                                     {layout.base - granule_size, granule_size},
                                     {layout.base - granule_size, 2 * granule_size},
                                     {layout.base, all + granule_size},
                                     {layout.base + granule_size, all},
                                     {layout.base + all - granule_size, 2 * granule_size},
                                     {layout.base + all, granule_size},
                                     {layout.base, ~std::size_t{0} / granule_size * granule_size}})
    EXPECT_EQ(status(begin, bytes), HPE_ERROR_INVALID_ARGUMENT) << begin - layout.base << ' ' << bytes;
}

TEST(checks, accept_the_numbers_of_devices_only) {
  machine m("soft:3");
  const auto status = [&](int device) { return thrown_by([&] { hpe::device::require_device(m.set(), device); }); };
  for (const int device : {0, 1, 2}) EXPECT_EQ(status(device), HPE_SUCCESS);
  for (const int device : {-2, -1, 3, 4, 1 << 30}) EXPECT_EQ(status(device), HPE_ERROR_INVALID_DEVICE);
  EXPECT_NE(words_of([&] {
              hpe::device::require_device(m.set(), 3);
            }).find("there is no device 3; devices are numbered from 0 to 2"),
            std::string::npos);
}

TEST(checks, a_failure_that_is_logged_does_not_leave_the_call) {
  testing::internal::CaptureStderr();
  int calls = 0;
  hpe::device::log_failure_of("first", [&] { ++calls; });
  hpe::device::log_failure_of("second", [&] {
    ++calls;
    throw std::runtime_error("why");
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hpe: second: why\n");
  EXPECT_EQ(calls, 2);
}

// SplitMix64 and the sum, computed in parts of 32 bits.
struct plain_sum {
  std::uint64_t low = 0, high = 0;

  static std::uint64_t number(std::uint64_t seed) {
    std::uint64_t z = seed;
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9;
    z ^= z >> 27;
    z *= 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  void add(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffff);
    low += a * b;
    high += a1 * b1 + (middle >> 32) + (other >> 32);
  }
};

TEST(fingerprints, are_the_sums_that_gpus_compute) {
  std::mt19937_64 random(1);
  const fingerprint_key key{random(), random()};
  for (std::size_t pairs = 0; pairs < 40; ++pairs) {
    std::vector<std::uint64_t> words(2 * pairs);
    for (std::uint64_t& each : words) each = random();
    plain_sum expected;
    for (std::size_t n = 0; n < pairs; ++n) {
      const std::uint64_t place = n * 0x9e3779b97f4a7c15;
      expected.add(words[2 * n] + plain_sum::number(key.first + place),
                   words[2 * n + 1] + plain_sum::number(key.second + place));
    }
    for (std::size_t cut = 0; cut <= pairs; ++cut) {  // in two parts
      fingerprint_sum sum(key);
      sum.add(words.data(), cut * 16);
      sum.add(words.data() + 2 * cut, (pairs - cut) * 16);
      ASSERT_EQ(sum.value(), (fingerprint{expected.low, expected.high})) << pairs << ' ' << cut;
    }
  }
}

TEST(fingerprints, differ_if_a_bit_or_the_order_differs) {
  std::array<std::uint64_t, 8> words{1, 2, 3, 4, 5, 6, 7, 8};
  const auto of = [&](const fingerprint_key& key) {
    fingerprint_sum sum(key);
    sum.add(words.data(), sizeof words);
    return sum.value();
  };
  const fingerprint before = of({3, 4});
  EXPECT_NE(before, of({3, 5}));
  EXPECT_NE(before, of({4, 4}));
  for (std::uint64_t& word : words)
    for (const int bit : {0, 31, 32, 63}) {
      word ^= std::uint64_t{1} << bit;
      EXPECT_NE(of({3, 4}), before);
      word ^= std::uint64_t{1} << bit;
    }
  std::swap(words[0], words[2]);
  std::swap(words[1], words[3]);
  EXPECT_NE(of({3, 4}), before);
  const fingerprint_key& own = fingerprint_key::own();
  EXPECT_EQ(&own, &fingerprint_key::own());
  for (const std::uint64_t word : {own.first, own.second}) {
    EXPECT_NE(word >> 32, 0U) << "both halves are random";
    EXPECT_NE(word & 0xffffffff, 0U);
    EXPECT_NE(word >> 32, word & 0xffffffff);
  }
}

TEST(values, are_those_of_the_interface_unless_a_device_says_more) {
  const hpe::device::properties known;
  EXPECT_EQ(known.kind, HPE_DEVICE_SOFT);
  EXPECT_EQ(known.memory_bytes, 0U);
  EXPECT_EQ(known.spare_bytes, 0U);
  EXPECT_EQ(known.compute_units, 0U);
  EXPECT_TRUE(known.has_host_atomics);
  EXPECT_EQ(known.peer_rate, 0);
  EXPECT_EQ(known.host_rate, 0);
  EXPECT_EQ(known.numa_node, -1);
  EXPECT_EQ(known.most_ahead, std::size_t{32} << 20);
  const hpe::device::recorded_race race;
  EXPECT_FALSE(race.is_shared);
  EXPECT_EQ(race.begin, 0U);
  EXPECT_EQ(race.end, 0U);
  EXPECT_EQ(race.earlier.number, 0U);
  const hpe::device::shape shape;
  EXPECT_EQ((std::array{shape.cluster[0], shape.cluster[1], shape.cluster[2]}), (std::array{0U, 0U, 0U}));
}

TEST(values, a_machine_that_is_not_checked_records_no_accesses) {
  machine m("soft:1");
  bool is_visited = false;
  EXPECT_FALSE(m.set().ptx()->take_accesses(0, [&](const hpe::device::recorded_stretch&) { is_visited = true; }));
  EXPECT_FALSE(is_visited);
  EXPECT_TRUE(m.set().ptx()->take_races(0).empty());
  EXPECT_FALSE(m.device(0).has_standby(m.address(0)));
  EXPECT_EQ(m.device(0).share(), nullptr);
}

}  // namespace
}  // namespace device_test
