// The contract of every family of devices, tested through runtime/device/device.h alone, for each specification.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "runtime/base/granule.h"
#include "runtime/os/virtual_memory.h"
#include "tests/device/kernels.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::timepoint;
using hpe::device::priority;

class contract : public testing::TestWithParam<const char*> {
 protected:
  machine m{GetParam()};
  unsigned last_device() const { return m.size() - 1; }
};

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(soft, contract, testing::Values("soft:1", "soft:3", "soft:2x2"), name_of);
INSTANTIATE_TEST_SUITE_P(cuda, contract, testing::ValuesIn(gpus()), name_of);

TEST_P(contract, devices_describe_themselves) {
  for (unsigned d = 0; d < m.size(); ++d) {
    EXPECT_FALSE(m.device(d).info().name.empty());
    EXPECT_GT(m.device(d).info().compute_units, 0U);
    EXPECT_EQ(m.device(d).memory().total, m.device(d).info().memory_bytes);
    EXPECT_FALSE(m.device(d).lost());
    EXPECT_TRUE(m.device(d).can_access(d));
    EXPECT_FALSE(m.device(d).can_access(m.size()));
  }
  EXPECT_EQ(thrown_by([&] { static_cast<void>(m.set().at(m.size())); }), HPE_ERROR_INVALID_DEVICE);
}

TEST_P(contract, a_new_stream_has_nothing_to_wait_for) {
  EXPECT_TRUE(m.stream(0).last().none());
  EXPECT_TRUE(m.set().reached({}));
  EXPECT_TRUE(m.set().wait({}, in(0ms)));
  EXPECT_FALSE(m.set().status_of({}));
}

TEST_P(contract, uploaded_bytes_come_back) {
  const std::size_t bytes = 3 * hpe::granule_size;
  host_buffer out(m.set(), bytes);
  host_buffer back(m.set(), bytes);
  for (unsigned d = 0; d < m.size(); ++d) {
    m.device(d).map(m.address(d, 4 * MiB), bytes);
    auto values = out.as<std::uint32_t>();
    std::iota(values.begin(), values.end(), d * 77U);
    m.stream(d).copy(m.address(d, 4 * MiB), out.data(), bytes);
    // Copies at odd offsets and of odd sizes.
    m.finish(m.stream(d).copy(back.data() + 5, m.address(d, 4 * MiB) + 3, bytes - 100));
    EXPECT_EQ(m.stream(d).last().value, 2U);
    EXPECT_TRUE(std::equal(back.data() + 5, back.data() + 5 + bytes - 100, out.data() + 3));
    m.device(d).unmap(m.address(d, 4 * MiB), bytes);
  }
}

// Rows over the border of two mapped ranges, narrow and wide ones, and single ones.
TEST_P(contract, copied_rows_leave_the_bytes_between_them) {
  const std::size_t bytes = 2 * hpe::granule_size;
  host_buffer out(m.set(), bytes), back(m.set(), bytes);
  std::byte* const device = m.address(0, 4 * MiB);
  for (const std::size_t half : {std::size_t{0}, hpe::granule_size}) m.device(0).map(device + half, hpe::granule_size);
  auto values = out.as<std::uint32_t>();
  std::iota(values.begin(), values.end(), 7U);
  for (const auto& [first, rows] : {std::pair<std::size_t, hpe::box>{3, {{8, 2000}, {1024}}},
                                    {0, {{300000, 6}, {300001}}},
                                    {hpe::granule_size - 5, {{10, 1}, {}}},
                                    {100, {{1000, 1500}, {1100}}}}) {
    ASSERT_LE(first + rows.span(), bytes);
    m.stream(0).fill(device, 1, bytes);
    m.stream(0).copy_rows(device + first, out.data() + first, rows);
    m.finish(m.stream(0).copy(back.data(), device, bytes));
    std::vector<std::byte> expected(bytes, std::byte{1});
    rows.for_each_row([&, first = first, width = rows.extent.width](std::size_t at) {
      std::copy_n(out.data() + first + at, width, expected.begin() + static_cast<std::ptrdiff_t>(first + at));
    });
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), back.data())) << first;
  }
  for (const std::size_t half : {std::size_t{0}, hpe::granule_size})
    m.device(0).unmap(device + half, hpe::granule_size);
}

TEST_P(contract, new_memory_is_zero_also_after_it_was_used) {
  host_buffer back(m.set(), hpe::granule_size);
  for (int round = 0; round < 2; ++round) {
    m.device(0).map(m.address(0), hpe::granule_size);
    back.as<char>()[0] = 1;
    m.finish(m.stream(0).copy(back.data(), m.address(0), back.size()));
    const auto bytes = back.as<char>();
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), static_cast<std::ptrdiff_t>(bytes.size()));
    m.finish(m.stream(0).fill(m.address(0), 0x5a, hpe::granule_size));
    m.device(0).unmap(m.address(0), hpe::granule_size);
  }
}

TEST_P(contract, fill_sets_exactly_the_bytes) {
  host_buffer back(m.set(), hpe::granule_size);
  m.device(0).map(m.address(0), hpe::granule_size);
  m.stream(0).fill(m.address(0, 7), 0xab, 1000);
  m.finish(m.stream(0).copy(back.data(), m.address(0), 2000));
  const auto bytes = back.as<unsigned char>();
  for (std::size_t i = 0; i < 2000; ++i) ASSERT_EQ(bytes[i], i >= 7 && i < 1007 ? 0xab : 0) << i;
}

TEST_P(contract, fingerprints_are_those_that_the_host_computes) {
  const std::size_t bytes = 2 * hpe::granule_size;
  host_buffer data(m.set(), bytes), results(m.set(), hpe::granule_size);
  const auto values = data.as<std::uint32_t>();
  std::iota(values.begin(), values.end(), 7U);
  const auto places = results.as<hpe::device::fingerprint>();
  m.device(0).map(m.address(0), hpe::granule_size);  // one fingerprint crosses the border between two mappings
  m.device(0).map(m.address(0, hpe::granule_size), hpe::granule_size);
  m.finish(m.stream(0).copy(m.address(0), data.data(), bytes));
  const std::size_t parts[] = {16, 4096, 4096 + 16, bytes};
  for (std::size_t n = 0; n < std::size(parts); ++n) {
    m.finish(m.stream(0).take_fingerprint(&places[n], m.address(0), parts[n]));
    hpe::device::fingerprint_sum sum(hpe::device::fingerprint_key::own());
    sum.add(data.data(), parts[n]);
    EXPECT_EQ(places[n], sum.value()) << parts[n];
  }
  m.finish(m.stream(0).fill(m.address(0, bytes - 1), 1, 1));
  m.finish(m.stream(0).take_fingerprint(&places[0], m.address(0), bytes));
  EXPECT_NE(places[0], places[std::size(parts) - 1]);
}

TEST_P(contract, memory_is_counted) {
  auto& device = m.device(0);
  const auto before = device.memory();
  device.map(m.address(0), 8 * MiB);
  EXPECT_EQ(device.memory().free, before.free - 8 * MiB);
  const std::size_t too_much = hpe::round_up(before.free, hpe::granule_size);
  EXPECT_EQ(thrown_by([&] { device.map(m.address(0, 16 * MiB), too_much); }), HPE_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(device.memory().free, before.free - 8 * MiB);
  device.unmap(m.address(0), 8 * MiB);
  EXPECT_EQ(device.memory().free, before.free);
}

// The bytes stay at their addresses. A move that is not finished changes nothing.
TEST_P(contract, bytes_move_to_zero_copy_memory_and_back) {
  using hpe::device::backing_kind;
  auto& device = m.device(0);
  const auto before = device.memory().free;
  const std::size_t bytes = 2 * hpe::granule_size;
  for (const std::size_t at : {std::size_t{0}, hpe::granule_size}) device.map(m.address(0, at), hpe::granule_size);
  host_buffer out(m.set(), bytes), back(m.set(), bytes);
  std::iota(out.as<unsigned>().begin(), out.as<unsigned>().end(), 9U);
  m.finish(m.stream(0).copy(m.address(0), out.data(), bytes));
  const auto has_bytes = [&] {
    std::memset(back.data(), 0, bytes);
    m.finish(m.stream(0).copy(back.data(), m.address(0), bytes));
    return std::memcmp(out.data(), back.data(), bytes) == 0;
  };
  // Moves all bytes, in two ranges; returns how many ranges have moved.
  const auto move = [&](backing_kind to, bool finish) {
    const auto moves = device.begin_moves();
    for (const std::size_t at : {std::size_t{0}, hpe::granule_size})
      moves->add(m.address(0, at), hpe::granule_size, to, false);
    if (!finish) return std::ptrdiff_t{0};
    const auto failures = moves->finish();
    return std::ranges::count_if(failures, [](const auto& failure) { return !failure; });
  };
  try {
    move(backing_kind::zero_copy, false);
  } catch (const hpe::error& e) {
    ASSERT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED) << e.what();
    device.unmap(m.address(0), bytes);
    GTEST_SKIP() << e.what();
  }
  EXPECT_EQ(device.memory().free, before - bytes);
  EXPECT_TRUE(has_bytes());
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(move(backing_kind::zero_copy, true), 2);
    EXPECT_EQ(device.memory().free, before);
    EXPECT_TRUE(has_bytes());
    out.as<unsigned>()[n] += 5;
    m.finish(m.stream(0).copy(m.address(0), out.data(), 4096));
    move(backing_kind::device, false);
    EXPECT_EQ(device.memory().free, before);
    EXPECT_TRUE(has_bytes());
    EXPECT_EQ(move(backing_kind::device, true), 2);
    EXPECT_EQ(device.memory().free, before - bytes);
    EXPECT_TRUE(has_bytes());
  }
  device.unmap(m.address(0), bytes);
  EXPECT_EQ(device.memory().free, before);
}

// A granule of common memory can be mapped at several addresses, and takes nothing of the device's memory.
TEST_P(contract, common_memory_takes_no_device_memory) {
  using hpe::device::backing_kind;
  using hpe::device::contents;
  auto& device = m.device(0);
  const auto before = device.memory().free;
  for (const std::size_t n : {0, 2, 4}) {
    device.map(m.address(0, n * hpe::granule_size), hpe::granule_size);
    device.map(m.address(0, (n + 1) * hpe::granule_size), hpe::granule_size, contents::any, backing_kind::common);
  }
  EXPECT_EQ(device.memory().free, before - 3 * hpe::granule_size);
  host_buffer back(m.set(), hpe::granule_size);
  for (const std::size_t n : {1, 3, 5})
    m.finish(m.stream(0).copy(back.data(), m.address(0, n * hpe::granule_size), hpe::granule_size));
  for (const std::size_t n : {0, 1, 2, 3, 4, 5}) device.unmap(m.address(0, n * hpe::granule_size), hpe::granule_size);
  EXPECT_EQ(device.memory().free, before);
}

// Kernels, fills and copies use zero-copy memory as they use device memory, of which it takes nothing.
TEST_P(contract, zero_copy_memory_is_used_like_device_memory) {
  using hpe::device::backing_kind;
  using hpe::device::contents;
  auto& device = m.device(0);
  const auto before = device.memory().free;
  const std::size_t bytes = 2 * hpe::granule_size;
  device.map(m.address(0), hpe::granule_size);
  try {
    device.map(m.address(0, hpe::granule_size), bytes, contents::zeros, backing_kind::zero_copy);
  } catch (const hpe::error& e) {
    ASSERT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED) << e.what();
    device.unmap(m.address(0), hpe::granule_size);
    GTEST_SKIP() << e.what();
  }
  device.map(m.address(0, 3 * hpe::granule_size), hpe::granule_size);
  EXPECT_EQ(device.memory().free, before - 2 * hpe::granule_size);

  host_buffer out(m.set(), 4 * hpe::granule_size), back(m.set(), 4 * hpe::granule_size);
  m.finish(m.stream(0).copy(back.data(), m.address(0, hpe::granule_size), bytes));
  EXPECT_TRUE(std::ranges::all_of(back.as<unsigned char>().first(bytes), [](unsigned char c) { return c == 0; }));
  std::iota(out.as<unsigned>().begin(), out.as<unsigned>().end(), 5U);
  // A command must not cross the border of two mappings.
  for (const auto& [at, size] : {std::pair(std::size_t{0}, std::size_t{1}), {1, 2}, {3, 1}})
    m.stream(0).copy(m.address(0, at * hpe::granule_size), static_cast<std::byte*>(out.data()) + at * hpe::granule_size,
                     size * hpe::granule_size);
  m.finish(m.stream(0).fill(m.address(0, hpe::granule_size + 4), 0xff, 8));
  for (const auto& [at, size] : {std::pair(std::size_t{0}, std::size_t{1}), {1, 2}, {3, 1}})
    m.finish(m.stream(0).copy(static_cast<std::byte*>(back.data()) + at * hpe::granule_size,
                              m.address(0, at * hpe::granule_size), size * hpe::granule_size));
  const std::size_t first = hpe::granule_size / sizeof(unsigned) + 1;
  for (std::size_t i = 0; i < 4 * hpe::granule_size / sizeof(unsigned); ++i)
    ASSERT_EQ(back.as<unsigned>()[i], i == first || i == first + 1 ? ~0U : 5U + i) << i;

  // The ranges may be unmapped together, although only some of them are device memory.
  device.unmap(m.address(0), 4 * hpe::granule_size);
  EXPECT_EQ(device.memory().free, before);
  device.map(m.address(0), 4 * hpe::granule_size);
  EXPECT_EQ(device.memory().free, before - 4 * hpe::granule_size);
  device.unmap(m.address(0), 4 * hpe::granule_size);
}

TEST_P(contract, neighbouring_ranges_may_be_unmapped_together) {
  auto& device = m.device(0);
  const auto before = device.memory().free;
  for (std::size_t i = 0; i < 4; ++i) device.map(m.address(0, i * 2 * MiB), 2 * MiB);
  device.unmap(m.address(0, 2 * MiB), 4 * MiB);
  host_buffer host(m.set(), 2 * MiB);
  EXPECT_EQ(thrown_by([&] { m.stream(0).copy(m.address(0, 2 * MiB), host.data(), 1); }), HPE_ERROR_INVALID_ARGUMENT);
  m.finish(m.stream(0).copy(m.address(0, 6 * MiB), host.data(), 2 * MiB));
  // Not the whole range is mapped, so nothing is unmapped.
  device.unmap(m.address(0), 8 * MiB);
  EXPECT_EQ(device.memory().free, before - 4 * MiB);
  device.unmap(m.address(0), 2 * MiB);
  device.unmap(m.address(0, 6 * MiB), 2 * MiB);
  EXPECT_EQ(device.memory().free, before);
}

TEST_P(contract, memory_cannot_be_mapped_twice_or_outside) {
  auto& device = m.device(0);
  device.map(m.address(0), 4 * MiB);
  const auto map = [&](void* at, std::size_t bytes) { return thrown_by([&] { device.map(at, bytes); }); };
  EXPECT_EQ(map(m.address(0, 2 * MiB), 4 * MiB), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(map(m.address(0, 8 * MiB), 0), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(map(m.address(0, 8 * MiB), 4096), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(map(m.address(0, 8 * MiB + 4096), 2 * MiB), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(map(m.address(m.layout().segments), 2 * MiB), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(map(m.address(m.layout().segments) - 2 * MiB, 4 * MiB), HPE_ERROR_INVALID_ARGUMENT);
}

TEST_P(contract, releasing_ranges_that_are_not_there_succeeds) {
  m.device(0).map(m.address(0), 2 * MiB);
  host_buffer host(m.set(), 2 * MiB);
  m.device(0).unmap(m.address(0, 8 * MiB), 2 * MiB);
  m.device(0).unmap(m.address(0, MiB), 17);
  m.set().unregister_host(m.address(0), 2 * MiB);
  m.set().unregister_host(host.data() + host.size(), 2 * MiB);
  m.set().drop_import(m.address(0), 2 * MiB);
  m.set().release_host(host.data() + host.size(), 2 * MiB);
  m.finish(m.stream(0).copy(m.address(0), host.data(), 2 * MiB));
}

TEST_P(contract, copies_of_unknown_memory_are_refused_at_once) {
  m.device(0).map(m.address(0), 2 * MiB);
  host_buffer host(m.set(), 2 * MiB);
  int ordinary = 0;
  auto& stream = m.stream(0);
  EXPECT_EQ(thrown_by([&] { stream.copy(m.address(0), &ordinary, 4); }), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { stream.copy(&ordinary, m.address(0), 4); }), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { stream.copy(m.address(0), host.data(), 2 * MiB + 1); }), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { stream.fill(m.address(0, MiB), 0, 2 * MiB); }), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(thrown_by([&] { stream.copy(host.data(), host.data() + 100, 10); }), HPE_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(thrown_by([&] { stream.fill(host.data(), 0, 10); }), HPE_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(stream.last().none());
}

TEST_P(contract, peers_share_memory_and_others_do_not) {
  const std::size_t bytes = hpe::granule_size;
  host_buffer host(m.set(), bytes);
  host_buffer back(m.set(), bytes);
  for (unsigned d = 0; d < m.size(); ++d) m.device(d).map(m.address(d), bytes);
  for (unsigned from = 0; from < m.size(); ++from) {
    for (unsigned to = 0; to < m.size(); ++to) {
      EXPECT_EQ(m.device(from).can_access(to), m.device(to).can_access(from));
      if (from == to) continue;
      if (!m.device(from).can_access(to)) {
        EXPECT_EQ(thrown_by([&] { m.stream(from).copy(m.address(to), m.address(from), bytes); }),
                  HPE_ERROR_INVALID_ARGUMENT);
        continue;
      }
      const auto values = host.as<std::uint32_t>();
      std::iota(values.begin(), values.end(), from * 100 + to);
      m.stream(from).copy(m.address(from), host.data(), bytes);
      const timepoint sent = m.stream(from).copy(m.address(to), m.address(from), bytes);
      // The other device adds to these numbers with a kernel that accesses this device's memory.
      m.stream(to).wait(sent);
      const timepoint added =
          m.launch(m.stream(to), "add", add_parameters{m.at<std::uint32_t>(from), 1024, 5}, {{4, 1, 1}, {}});
      m.stream(from).wait(added);
      m.stream(from).copy(back.data(), m.address(from), bytes);
      m.finish(m.stream(from).last());
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(back.as<std::uint32_t>()[i], values[i] + (i < 4096 ? 5 : 0)) << i;
    }
  }
}

TEST_P(contract, a_copy_crosses_the_border_between_devices) {
  if (m.size() < 2) GTEST_SKIP() << "needs two devices";
  if (!m.device(0).can_access(1)) GTEST_SKIP() << "needs peers";
  std::byte* middle = m.address(1);
  m.device(0).map(middle - 2 * MiB, 2 * MiB);
  m.device(1).map(middle, 2 * MiB);
  host_buffer host(m.set(), 4 * MiB);
  host_buffer back(m.set(), 4 * MiB);
  const auto values = host.as<std::uint64_t>();
  std::iota(values.begin(), values.end(), 1U);
  m.stream(1).copy(middle - 2 * MiB, host.data(), 4 * MiB);
  m.finish(m.stream(1).copy(back.data(), middle - 2 * MiB, 4 * MiB));
  EXPECT_TRUE(std::ranges::equal(values, back.as<std::uint64_t>()));
}

TEST_P(contract, host_memory_inside_the_space_is_reached_by_kernels) {
  const std::size_t bytes = hpe::granule_size;
  const auto file = hpe::os::create_memory_file("host-segment", 4 * bytes);
  std::byte* place = m.address(m.layout().segments - 1);
  m.set().register_host(place, bytes, file.get(), static_cast<std::int64_t>(bytes));
  for (unsigned d = 0; d < m.size(); ++d) {
    m.device(d).map(m.address(d), bytes);
    const timepoint added = m.launch(m.stream(d), "add", add_parameters{reinterpret_cast<std::uint32_t*>(place), 1, 1});
    m.finish(added);
    m.finish(m.stream(d).copy(m.address(d), place, 4));
  }
  std::uint32_t seen = 0;
  ASSERT_EQ(::pread(file.get(), &seen, sizeof seen, static_cast<off_t>(bytes)), 4);
  EXPECT_EQ(seen, m.size());
  m.set().unregister_host(place, bytes);
  EXPECT_EQ(thrown_by([&] { m.stream(0).copy(m.address(0), place, 4); }), HPE_ERROR_INVALID_ARGUMENT);
}

TEST_P(contract, expected_copies_change_nothing_but_time) {
  constexpr std::size_t bytes = 40 * MiB;
  m.device(0).map(m.address(0), bytes);
  for (int round = 0; round < 3; ++round) {
    host_buffer host(m.set(), bytes);
    const auto values = host.as<std::uint32_t>();
    std::iota(values.begin(), values.begin() + 5000, 3U + static_cast<unsigned>(round));
    // Tells the devices to expect copies of all bytes after the first 4096, of a part of these, of more bytes than the
    // buffer has, of no bytes, and of memory that is not registered.
    m.set().expect_copies(host.data() + 4096, bytes - 4096);
    m.set().expect_copies(host.data() + 5 * MiB + 77, 9 * MiB);
    m.set().expect_copies(host.data() + bytes - MiB, 64 * MiB);
    m.set().expect_copies(host.data(), 0);
    m.set().expect_copies(&bytes, MiB);
    // Copies immediately, in the middle and at both ends.
    for (const std::size_t at : {std::size_t{0}, 17 * MiB + 4096, bytes - 2 * MiB})
      m.stream(0).copy(m.address(0, at), host.data() + at, 2 * MiB);
    m.finish(m.stream(0).last());
    std::fill(values.begin(), values.end(), 1U);
    m.finish(m.stream(0).copy(host.data(), m.address(0), 2 * MiB));
    for (unsigned i = 0; i < 5000; ++i) ASSERT_EQ(values[i], 3U + static_cast<unsigned>(round) + i);
    EXPECT_EQ(values[5001], 0U);
    EXPECT_EQ(values[bytes / 4 - 1], 1U);
    // Releases the pages, perhaps while threads still allocate them.
    m.set().release_host(host.data(), bytes);
    m.set().expect_copies(host.data(), bytes);
  }
}

TEST_P(contract, every_tile_runs_once) {
  m.device(0).map(m.address(0), 2 * MiB);
  host_buffer back(m.set(), 2 * MiB);
  m.launch(m.stream(0), "number_tiles", number_parameters{m.at<std::uint64_t>(0)}, {{30, 20, 10}, {}});
  m.finish(m.stream(0).copy(back.data(), m.address(0), 2 * MiB));
  for (std::uint64_t z = 0; z < 10; ++z)
    for (std::uint64_t y = 0; y < 20; ++y)
      for (std::uint64_t x = 0; x < 30; ++x)
        ASSERT_EQ(back.as<std::uint64_t>()[x + 30 * (y + 20 * z)], 1 + x + 1000 * y + 1000000 * z);
  EXPECT_EQ(back.as<std::uint64_t>()[6000], 0U);
}

TEST_P(contract, parameters_are_copied_whole) {
  m.device(0).map(m.address(0), 2 * MiB);
  host_buffer back(m.set(), 4096);
  large_parameters parameters{};
  static_assert(sizeof parameters == HPE_MAX_PARAMETERS);
  parameters.out = m.at<unsigned char>(0);
  parameters.filler[sizeof parameters.filler - 1] = 0xc3;
  m.launch(m.stream(0), "rest", rest_parameters{20000, nullptr, 0});
  m.launch(m.stream(0), "store_last_byte", parameters);
  parameters = {};  // overwritten while the launch is still queued
  m.finish(m.stream(0).copy(back.data(), m.address(0), 1));
  EXPECT_EQ(back.as<unsigned char>()[0], 0xc3);
  const std::vector<std::byte> too_many(hpe::device::most_parameters + 1);
  EXPECT_EQ(thrown_by([&] { m.stream(0).launch(m.kernel("rest"), {}, too_many); }), HPE_ERROR_INVALID_ARGUMENT);
}

TEST_P(contract, unknown_modules_and_kernels_are_named) {
  EXPECT_EQ(thrown_by([&] { m.set().load_module("/nowhere/kernels.so"); }), HPE_ERROR_NOT_FOUND);
  EXPECT_NE(words_of([&] { m.set().load_module("/nowhere/kernels.so"); }).find("/nowhere/kernels.so"),
            std::string::npos);
  EXPECT_EQ(thrown_by([&] { m.kernel("no_such_kernel"); }), HPE_ERROR_NOT_FOUND);
  EXPECT_NE(words_of([&] { m.set().find_kernel(0, "no_such_kernel"); }).find("no_such_kernel"), std::string::npos);
  EXPECT_EQ(thrown_by([&] { m.set().find_kernel(1234, "add"); }), HPE_ERROR_NOT_FOUND);
}

TEST_P(contract, queuing_returns_before_the_work_is_done) {
  const auto begin = std::chrono::steady_clock::now();
  const timepoint point = m.launch(m.stream(0), "rest", rest_parameters{200000, nullptr, 0});
  EXPECT_FALSE(m.set().reached(point));
  EXPECT_FALSE(m.set().status_of(point));
  EXPECT_FALSE(m.set().wait(point, in(10ms)));
  m.finish(point);
  EXPECT_TRUE(m.set().reached(point));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 190ms);
}

TEST_P(contract, wait_orders_streams_of_all_devices) {
  // A value passes through all devices twice. Each step is slow, so that a missing dependency would be noticed.
  const std::size_t bytes = hpe::granule_size;
  host_buffer host(m.set(), bytes);
  for (unsigned d = 0; d < m.size(); ++d) m.device(d).map(m.address(d), bytes);
  timepoint previous;
  std::uint64_t steps = 0;
  for (int round = 0; round < 2; ++round) {
    for (unsigned d = 0; d < m.size(); ++d, ++steps) {
      auto& stream = m.stream(d);
      stream.wait(previous);
      m.launch(stream, "rest", rest_parameters{5000, nullptr, 0});
      stream.copy(m.address(d), host.data(), 8);
      m.launch(stream, "add", add_parameters{m.at<std::uint32_t>(d), 1, 1});
      previous = stream.copy(host.data(), m.address(d), 8);
    }
  }
  m.finish(previous);
  EXPECT_EQ(host.as<std::uint64_t>()[0], steps);
}

// work_before() must work at any time: here, when both streams are idle and the last command of each stream was a wait
// for the other stream.
TEST_P(contract, the_work_before_a_reached_point_has_ended) {
  hpe::device::stream& one = m.stream(0);
  hpe::device::stream& other = m.device(0).create_stream(priority::launch);
  const rest_parameters long_enough{20000, nullptr, 0};
  other.wait(m.launch(one, "rest", long_enough));
  one.wait(m.launch(other, "rest", long_enough));
  other.wait(one.last());
  m.finish(one.last());
  m.finish(other.last());
  for (const timepoint p : {one.last(), other.last()}) {
    const std::string words = m.set().work_before(p);
    EXPECT_TRUE(words.starts_with("work ")) << words;
  }
}

TEST_P(contract, streams_of_one_device_do_not_wait_for_each_other) {
  auto& other = m.device(0).create_stream(priority::prefetch);
  const timepoint slow = m.launch(m.stream(0), "rest", rest_parameters{300000, nullptr, 0});
  const timepoint quick = m.launch(other, "empty", load_parameters{});
  m.finish(quick);
  EXPECT_FALSE(m.set().reached(slow));
  m.finish(slow);
}

TEST_P(contract, a_gate_opens_when_rung_or_when_work_is_done) {
  const auto gate = m.set().create_gate();
  const auto asleep = [&](std::span<const timepoint> points, std::chrono::milliseconds limit) {
    const auto begin = std::chrono::steady_clock::now();
    gate->sleep(points, in(limit));
    return std::chrono::steady_clock::now() - begin;
  };
  EXPECT_GE(asleep({}, 30ms), 29ms);
  gate->ring();
  EXPECT_LT(asleep({}, 10s), 5s);

  std::thread ringer([&] {
    std::this_thread::sleep_for(30ms);
    gate->ring();
  });
  EXPECT_LT(asleep({}, 10s), 5s);
  ringer.join();

  const std::vector<timepoint> points{m.launch(m.stream(0), "rest", rest_parameters{500'000, nullptr, 0}),
                                      m.launch(m.stream(last_device()), "rest", rest_parameters{30000, nullptr, 0})};
  if (m.size() > 1) {
    while (!m.set().reached(points[1])) EXPECT_LT(asleep(points, 10s), 1s);
    EXPECT_FALSE(m.set().reached(points[0]));
    EXPECT_LT(asleep(points, 10s), 1s);
  }
  while (!m.set().reached(points[0])) EXPECT_LT(asleep(std::span(points).first(1), 10s), 5s);
}

TEST_P(contract, gates_can_be_made_again_and_again) {
  for (int i = 0; i < 200; ++i) m.set().create_gate()->ring();
}

TEST_P(contract, a_full_queue_takes_no_more_until_there_is_room) {
  m.device(0).map(m.address(0), 2 * MiB);
  host_buffer back(m.set(), 4096);
  m.launch(m.stream(0), "rest", rest_parameters{50000, nullptr, 0});
  constexpr int many = 2000;
  for (int i = 0; i < many; ++i) m.launch(m.stream(0), "add", add_parameters{m.at<std::uint32_t>(0), 1, 1});
  m.finish(m.stream(0).copy(back.data(), m.address(0), 4));
  EXPECT_EQ(back.as<std::uint32_t>()[0], static_cast<std::uint32_t>(many));
}

TEST_P(contract, many_threads_share_a_stream) {
  m.device(0).map(m.address(0), 2 * MiB);
  host_buffer back(m.set(), 4096);
  constexpr int threads = 8;
  constexpr int each = 300;
  const auto add = m.kernel("add");
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < threads; ++t)
      crowd.emplace_back([&] {
        const add_parameters parameters{m.at<std::uint32_t>(0), 1, 1};
        for (int i = 0; i < each; ++i) {
          const timepoint point = m.stream(0).launch(add, {}, std::as_bytes(std::span(&parameters, 1)));
          if (i % 16 == 0) m.set().wait(point, in(20s));
        }
      });
  }
  m.finish(m.stream(0).copy(back.data(), m.address(0), 4));
  EXPECT_EQ(back.as<std::uint32_t>()[0], static_cast<std::uint32_t>(threads * each));
}

TEST_P(contract, nobody_has_failed) { EXPECT_FALSE(m.set().take_failure(-1)); }

}  // namespace
}  // namespace device_test
