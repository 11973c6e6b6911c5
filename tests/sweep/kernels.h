#pragma once

/// Parameters of the kernels in kernels.cpp, and the kernels' names.

#include <cstdint>

namespace sweep {

/// "copy_bytes": destination[i] = source[i].
struct copy_parameters {
  std::uint8_t* destination;
  const std::uint8_t* source;
  std::uint64_t bytes;
};

/// "add_to_bytes": data[i] += by.
struct add_parameters {
  std::uint8_t* data;
  std::uint64_t bytes;
  std::uint32_t by;
  std::uint32_t reserved;
};

}  // namespace sweep
