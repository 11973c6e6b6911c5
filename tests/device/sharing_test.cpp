// One set of soft devices uses the memory of another set, as in two processes that share memory.

#include <gtest/gtest.h>

#include <cstring>

#include "tests/device/support.h"

namespace device_test {
namespace {

constexpr unsigned elsewhere = 3;  // a segment that belongs to no device

// Returns the byte at an address in device memory.
std::byte first_of(const machine& m, unsigned device, const void* address) {
  host_buffer back(m.set(), 4096);
  m.finish(m.stream(device).copy(back.data(), address, 1));
  return back.data()[0];
}

void fill(const machine& m, unsigned device, std::size_t offset, std::size_t bytes, int value) {
  m.finish(m.stream(device).fill(m.address(device, offset), static_cast<std::uint8_t>(value), bytes));
}

TEST(Sharing, BytesOfAnotherSetAreCopiedBothWays) {
  const machine a("soft:2");
  const machine b("soft:2");
  a.device(0).map(a.address(0), 4 * MiB);
  a.device(1).map(a.address(0, 4 * MiB), 2 * MiB);  // the next range belongs to another device
  b.device(1).map(b.address(1), 6 * MiB);
  fill(a, 0, 0, 4 * MiB, 7);
  a.finish(a.stream(1).fill(a.address(0, 4 * MiB), 8, 2 * MiB));
  const auto parts = a.set().share(a.address(0), 6 * MiB);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].bytes, 4 * MiB);
  EXPECT_NE(parts[0].file, parts[1].file);

  std::byte* const place = b.address(elsewhere, 2 * MiB);
  EXPECT_EQ(b.set().import_memory(place, parts), 3U);
  b.finish(b.stream(1).copy(b.address(1), place, 6 * MiB));
  EXPECT_EQ(first_of(b, 1, b.address(1)), std::byte{7});
  EXPECT_EQ(first_of(b, 1, b.address(1, 4 * MiB)), std::byte{8});
  EXPECT_EQ(first_of(b, 0, place + 6 * MiB - 1), std::byte{8})
      << "a stream copies imported memory directly to the host";
  fill(b, 1, 0, 1 * MiB, 9);
  b.finish(b.stream(0).copy(place + 1, b.address(1), 100));
  EXPECT_EQ(first_of(a, 0, a.address(0)), std::byte{7});
  EXPECT_EQ(first_of(a, 0, a.address(0, 1)), std::byte{9});
  EXPECT_EQ(first_of(a, 0, a.address(0, 101)), std::byte{7});
  b.set().drop_import(place, 6 * MiB);
  EXPECT_EQ(thrown_by([&] { b.stream(1).copy(b.address(1), place, 1); }), HPE_ERROR_INVALID_ARGUMENT);
}

TEST(Sharing, WhatIsMappedStaysWhenTheOtherSetIsGone) {
  const machine b("soft:1");
  std::byte* const place = b.address(elsewhere);
  {
    const machine a("soft:1");
    a.device(0).map(a.address(0), 2 * MiB);
    fill(a, 0, 0, 2 * MiB, 5);
    b.set().import_memory(place, a.set().share(a.address(0), 2 * MiB));
  }
  EXPECT_EQ(first_of(b, 0, place + 12345), std::byte{5});
  b.set().drop_import(place, 2 * MiB);
}

TEST(Sharing, RangesThatCannotBeAreRefused) {
  const machine a("soft:1");
  const machine b("soft:1");
  a.device(0).map(a.address(0), 2 * MiB);
  EXPECT_EQ(thrown_by([&] { (void)a.set().share(a.address(0), 4 * MiB); }), HPE_ERROR_INVALID_ARGUMENT);
  const auto parts = a.set().share(a.address(0), 2 * MiB);
  std::byte* const place = b.address(elsewhere);
  b.set().import_memory(place, parts);
  EXPECT_EQ(thrown_by([&] { b.set().import_memory(place, parts); }), HPE_ERROR_INVALID_ARGUMENT) << "taken";
  EXPECT_EQ(thrown_by([&] { (void)b.set().share(place, 2 * MiB); }), HPE_ERROR_INVALID_ARGUMENT) << "not its own";
  EXPECT_EQ(first_of(b, 0, place), std::byte{0}) << "the first import is unchanged";
  b.set().drop_import(place, 2 * MiB);
}

TEST(Sharing, CopiesAreChargedToThePort) {
  const environment slow({{"HPE_SOFT_PEER_LINK", "64M:1"}});
  const machine a("soft:1");
  const machine b("soft:1");
  a.device(0).map(a.address(0), 16 * MiB);
  b.device(0).map(b.address(0), 16 * MiB);
  std::byte* const place = b.address(elsewhere);
  b.set().import_memory(place, a.set().share(a.address(0), 16 * MiB));
  const auto begin = std::chrono::steady_clock::now();
  b.finish(b.stream(0).copy(b.address(0), place, 16 * MiB));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 230ms);
}

}  // namespace
}  // namespace device_test
