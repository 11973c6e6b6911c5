#pragma once

/// The bytes that the memory of a test must contain.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/base/granule.h"
#include "tests/node/orders.h"

namespace node_test {

struct range {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

/// The bytes that an allocation must contain. The functions write bytes as the orders of the same names do.
struct contents {
  std::uint64_t id;  // the number of the allocation in the sequence, from 1
  std::vector<std::byte> bytes;
  range latest = {};  // the bytes of the latest write

  [[nodiscard]] std::size_t size() const { return bytes.size(); }
  [[nodiscard]] range whole() const { return {0, size()}; }
  [[nodiscard]] std::size_t granules() const { return hpe::round_up(size(), hpe::granule_size) / hpe::granule_size; }

  void fill(const range& r, std::uint64_t seed) {
    latest = r;
    for (std::size_t i = 0; i < r.bytes; ++i) bytes[r.begin + i] = pattern(seed, i);
  }
  void copy(const range& r, const contents& from, std::size_t at) {
    latest = r;
    std::memcpy(bytes.data() + r.begin, from.bytes.data() + at, r.bytes);
  }
  void add(const range& r, std::uint64_t what) {
    latest = r;
    for (std::size_t i = 0; i < r.bytes; i += sizeof(std::uint32_t))
      set_word(r.begin + i, word(r.begin + i) + static_cast<std::uint32_t>(what));
  }
  void mix(const range& r, const contents& other, std::size_t from, std::uint64_t key) {
    latest = r;
    for (std::size_t i = 0; i < r.bytes; i += sizeof(std::uint32_t))
      set_word(r.begin + i, 3 * word(r.begin + i) + other.word(from + i) + static_cast<std::uint32_t>(key));
  }
  void sum(const range& r, const contents& other, std::size_t from, std::uint64_t count) {
    latest = r;
    std::array<std::uint32_t, sum_threads> sums{};
    for (std::uint64_t i = 0; i < count; ++i) sums[i % sum_threads] += other.word(from + i * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < r.bytes; i += sizeof(std::uint32_t))
      set_word(r.begin + i, sums[i / sizeof(std::uint32_t) % sum_threads]);
  }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    std::uint32_t result = 0;
    std::memcpy(&result, bytes.data() + at, sizeof result);
    return result;
  }
  void set_word(std::size_t at, std::uint32_t word) { std::memcpy(bytes.data() + at, &word, sizeof word); }
};
using model = std::shared_ptr<contents>;

}  // namespace node_test
