#pragma once

/// The input of the sort benchmarks.

#include <cstdint>
#include <random>
#include <vector>

#include "hpe/hpe.hpp"

namespace hpe::bench {

inline std::vector<std::uint32_t> random_keys(std::size_t count) {
  std::minstd_rand random(1);
  std::vector<std::uint32_t> keys(count);
  for (auto& k : keys) k = static_cast<std::uint32_t>(random()) << 1 ^ static_cast<std::uint32_t>(random() >> 7);
  return keys;
}

/// `original` holds the keys with which every run begins; `sorted` is the array that is sorted. Both are in device
/// memory.
struct keys_on_devices {
  keys_on_devices(const std::vector<std::uint32_t>& keys, const placement& where)
      : original(keys.size(), where), sorted(keys.size(), where) {
    copy(original.data(), keys.data(), bytes());
  }
  [[nodiscard]] std::size_t bytes() const { return original.size() * sizeof(std::uint32_t); }
  void reset() const {
    copy(sorted.data(), original.data(), bytes());
    synchronize();
  }
  array<std::uint32_t> original, sorted;
};

}  // namespace hpe::bench
