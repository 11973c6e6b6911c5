#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace hpe::scan {

/// A type and an operator with kernels: hpe's own kernels, or kernels of a program's module, which defines them with
/// HPE_HOST_SCAN, HPE_CUDA_SCAN and HPE_CUDA_SCAN_SINGLE_PASS (kernels/host/scan_bodies.h, kernels/cuda/scan.cuh and
/// scan_hopper.cuh).
struct operation {
  std::string suffix;  ///< the end of the kernels' names
  std::size_t element_size;
  std::string module;  ///< the path of the shared object; empty: hpe's own
};

enum class built_in : std::uint8_t { sum, min, max };

/// Returns the name of a built-in operator in kernels and on command lines.
[[nodiscard]] std::string name_of(built_in op);

template <class T>
[[nodiscard]] operation operation_for(built_in op) {
  static_assert(
      std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, float> ||
          std::is_same_v<T, double>,
      "there are kernels for int32_t, int64_t, float and double; other types need a module of the program's own");
  std::string suffix = std::is_integral_v<T> ? "i" : "f";
  suffix += std::to_string(8 * sizeof(T));
  suffix += "_";
  suffix += name_of(op);
  return {suffix, sizeof(T), ""};
}

}  // namespace hpe::scan
