#pragma once

/// Parameters of the kernels in test_kernels.cpp. Sizes count elements.

#include <cstdint>

struct fill_parameters {
  std::uint32_t* data;
  std::uint64_t count;
  std::uint32_t first;  // data[i] = first + i
};

struct add_parameters {
  std::uint32_t* result;
  const std::uint32_t* left;
  const std::uint32_t* right;
  std::uint64_t count;
};

struct increment_parameters {
  std::uint32_t* data;
  std::uint64_t count;
  std::uint32_t by;
  std::uint32_t sleep_microseconds;  // the kernel first sleeps, so that its additions happen late
};

struct meet_parameters {
  std::uint32_t* arrived;  // the number of tiles of all devices that have arrived; the tiles wait for each other
  std::uint32_t all;
  std::uint32_t* results;  // for each tile of this device: the number of tiles that had arrived when the tile continued
};

struct crash_parameters {
  std::uint32_t* at;
};

struct divide_parameters {
  std::int32_t* result;  // result: 1 / by
  std::int32_t by;
};

/// The number of tiles in the grids of these kernels; each tile processes an equal part of the elements.
inline constexpr std::uint32_t test_tiles = 16;
