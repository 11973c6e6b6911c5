#pragma once

/// Parameters of the kernels for the tests of devices.

#include <cstdint>

struct add_parameters {
  std::uint32_t* data;
  std::uint64_t per_tile;
  std::uint32_t value;
};

struct number_parameters {
  std::uint64_t* data;
};

struct large_parameters {
  unsigned char* out;
  unsigned char filler[3992];
};

struct rest_parameters {
  std::uint64_t microseconds;
  std::uint64_t* out;
  std::uint64_t value;
};

struct cores_parameters {
  std::uint64_t* cores;  // a bit for each of the first 64 cores: whether the kernel may run on it
};

struct load_parameters {
  const std::uint64_t* in;
  std::uint64_t* out;
};
