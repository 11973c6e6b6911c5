#pragma once

/// Fingerprints of device memory: 128-bit numbers that differ if bytes differ, except with a probability of about 2^-64
/// for each comparison. For each pair of 64-bit words, the words plus two pseudo-random numbers are multiplied to 128
/// bits; the fingerprint consists of the sums of the products' lower and upper halves (the universal hash function NH
/// of UMAC, Black et al., CRYPTO 1999). The numbers depend on the pair's place and on a key, which each process chooses
/// at random. Sums do not depend on the order of the pairs, so many threads can add them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

namespace hpe::device {

struct fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const fingerprint&, const fingerprint&) = default;
};

struct fingerprint_key {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  /// The key of this process.
  [[nodiscard]] static const fingerprint_key& own() {
    static const fingerprint_key chosen = [] {
      std::random_device random;
      const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
      return fingerprint_key{word(), word()};
    }();
    return chosen;
  }
};

/// The bytes of a fingerprint's pairs. The number of bytes must be a multiple of it.
inline constexpr std::size_t fingerprint_unit = 16;

/// Adds bytes that follow each other to a fingerprint, on the host. fingerprint_kernel.h has the same function for
/// GPUs.
class fingerprint_sum {
 public:
  explicit fingerprint_sum(const fingerprint_key& key) : key_(key) {}

  /// `bytes`: a multiple of fingerprint_unit.
  void add(const void* data, std::size_t bytes) noexcept {
    const auto* at = static_cast<const std::byte*>(data);
    for (const std::byte* const end = at + bytes; at != end; at += fingerprint_unit) {
      std::uint64_t words[2];
      std::memcpy(words, at, sizeof words);
      const unsigned __int128 product = static_cast<unsigned __int128>(words[0] + mixed(key_.first + place_)) *
                                        (words[1] + mixed(key_.second + place_));
      sum_.low += static_cast<std::uint64_t>(product);
      sum_.high += static_cast<std::uint64_t>(product >> 64);
      place_ += 0x9e3779b97f4a7c15;
    }
  }
  [[nodiscard]] const fingerprint& value() const noexcept { return sum_; }

 private:
  /// The output function of the generator SplitMix64.
  static std::uint64_t mixed(std::uint64_t z) noexcept {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  const fingerprint_key key_;
  std::uint64_t place_ = 0;
  fingerprint sum_;
};

}  // namespace hpe::device
