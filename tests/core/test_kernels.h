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
  std::uint32_t sleep_microseconds;  // at first, so that the following work happens late
};

struct meet_parameters {
  std::uint32_t* arrived;  // counts all tiles of all devices, which wait for each other
  std::uint32_t all;
  std::uint32_t* results;  // for each tile of this device: how many tiles had arrived when it continued
};

struct crash_parameters {
  std::uint32_t* at;
};

struct divide_parameters {
  std::int32_t* result;  // = 1 / by
  std::int32_t by;
};

/// Tiles of the grid get equal parts of the elements.
inline constexpr std::uint32_t test_tiles = 16;
