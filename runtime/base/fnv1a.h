#pragma once

#include <cstdint>

namespace hpe {

/// The hash function FNV-1a with 64 bits, over units of any size up to 64 bits.
class fnv1a {
 public:
  constexpr fnv1a& add(std::uint64_t unit) noexcept {
    value_ = (value_ ^ unit) * 0x100000001b3ULL;
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace hpe
