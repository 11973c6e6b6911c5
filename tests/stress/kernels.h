#pragma once

/// Parameters of the kernels in kernels.cpp. Sizes are in bytes. Each kernel first sleeps `delay` microseconds.

#include <cstdint>

struct pattern_parameters {
  std::uint8_t* data;
  std::uint64_t count;
  std::uint8_t seed;  // data[i] = pattern_at(seed, i)
  std::uint32_t delay;
};

struct add_bytes_parameters {
  std::uint8_t* data;
  std::uint64_t count;
  std::uint8_t by;
  std::uint32_t delay;
};

struct scatter_parameters {
  std::uint8_t* data;
  std::uint64_t count;
  std::uint64_t stride;  // data[k * stride] = value; other bytes do not change
  std::uint8_t value;
  std::uint32_t delay;
};

struct combine_parameters {
  std::uint8_t* result;
  const std::uint8_t* source;
  std::uint64_t count;
  std::uint8_t key;  // result[i] = combined(source[i], key)
  std::uint32_t delay;
};

struct digest_parameters {
  std::uint64_t* result;
  const std::uint8_t* source;
  std::uint64_t count;
  std::uint32_t delay;
};

constexpr std::uint8_t pattern_at(std::uint8_t seed, std::uint64_t i) {
  return static_cast<std::uint8_t>(seed + i * 7);
}

constexpr std::uint8_t combined(std::uint8_t source, std::uint8_t key) {
  return static_cast<std::uint8_t>(source * 3 + key);
}

constexpr std::uint64_t digest_of(const std::uint8_t* source, std::uint64_t count) {
  std::uint64_t hash = 1469598103934665603U;
  for (std::uint64_t i = 0; i < count; ++i) hash = (hash ^ source[i]) * 1099511628211U;
  return hash;
}

/// The number of tiles in the grids of these kernels; each tile processes an equal part of the bytes.
inline constexpr std::uint32_t stress_tiles = 4;
