#include "runtime/os/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace hpe::os {
namespace {

// Tests sizes around the sizes at which the method of copying changes, every kind of alignment, and guard bytes on both
// sides.
TEST(CopyPastCaches, MovesTheBytesAndNoOthers) {
  std::mt19937_64 random(7);
  constexpr std::size_t guard = 64;
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 1023UL, 1024UL, 1025UL, 4096UL, 64UL << 10, 1000003UL}) {
    for (const std::size_t shift : {0UL, 1UL, 15UL, 16UL, 63UL}) {
      std::vector<std::byte> source(bytes + 2 * guard);
      std::generate(source.begin(), source.end(), [&] { return static_cast<std::byte>(random()); });
      std::vector<std::byte> destination(bytes + 3 * guard, std::byte{0x5a});
      copy_past_caches(destination.data() + guard + shift, source.data() + guard - shift, bytes);
      const auto first = destination.begin() + static_cast<std::ptrdiff_t>(guard + shift);
      const auto last = first + static_cast<std::ptrdiff_t>(bytes);
      EXPECT_TRUE(std::equal(first, last, source.begin() + static_cast<std::ptrdiff_t>(guard - shift))) << bytes;
      const auto untouched = [](std::byte b) { return b == std::byte{0x5a}; };
      EXPECT_TRUE(std::all_of(destination.begin(), first, untouched)) << bytes;
      EXPECT_TRUE(std::all_of(last, destination.end(), untouched)) << bytes;
    }
  }
}

}  // namespace
}  // namespace hpe::os
