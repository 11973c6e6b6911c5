// How many bytes of an allocation CPU code can use from an address on (hpe/announce.h).

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "hpe/announce.h"
#include "hpe/hpe.h"

namespace {

std::size_t bytes_from(const void* address) {
  std::size_t result = 12345;
  EXPECT_EQ(hpeGetAccessibleBytes(address, &result), HPE_SUCCESS) << hpeGetLastErrorMessage();
  return result;
}

TEST(AccessibleBytes, EndWithTheAllocation) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{256} << 10,
                                 (std::size_t{256} << 10) + 1, std::size_t{2} << 20, (std::size_t{5} << 20) + 7}) {
    SCOPED_TRACE(size);
    void* made = nullptr;
    ASSERT_EQ(hpeMalloc(&made, size), HPE_SUCCESS) << hpeGetLastErrorMessage();
    const auto* const p = static_cast<const std::byte*>(made);
    EXPECT_EQ(bytes_from(p), size);
    EXPECT_EQ(bytes_from(p + size / 2), size - size / 2);
    EXPECT_EQ(bytes_from(p + size - 1), 1U);
    EXPECT_EQ(bytes_from(p + size), 0U);
    ASSERT_EQ(hpeFree(made), HPE_SUCCESS) << hpeGetLastErrorMessage();
    EXPECT_EQ(bytes_from(p), 0U) << "the allocation is free";
  }
}

TEST(AccessibleBytes, OfOtherMemoryAreNone) {
  const int on_the_stack = 0;
  const std::vector<int> on_the_heap(1000);
  for (const void* const each : std::array<const void*, 4>{&on_the_stack, on_the_heap.data(), nullptr,
                                                           reinterpret_cast<const void*>(&bytes_from)})
    EXPECT_EQ(bytes_from(each), 0U);
  void* host = nullptr;
  ASSERT_EQ(hpeMallocHost(&host, 5000), HPE_SUCCESS) << hpeGetLastErrorMessage();
  EXPECT_EQ(bytes_from(host), 5000U) << "memory of hpe on the host";
  EXPECT_EQ(hpeFree(host), HPE_SUCCESS);
  EXPECT_EQ(hpeGetAccessibleBytes(&on_the_stack, nullptr), HPE_ERROR_INVALID_ARGUMENT);
}

}  // namespace
