#pragma once

/// The parameters (s, p, l, K) of a scan in three stages, by the premises of Dieguez et al., sections 3.2 and 4.2.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/scan/topology.h"

namespace hpe::scan {

/// How much a multiprocessor holds at a time.
struct multiprocessor {
  unsigned blocks, warps;
};
/// That of NVIDIA's compute capabilities 8.0 and 9.0.
inline constexpr multiprocessor data_centre_gpu{32, 64};

struct stage_parameters {
  unsigned s = 0;  ///< log2 of the elements in shared memory of a block
  unsigned p = 0;  ///< log2 of the elements in registers of a thread
  unsigned l = 0;  ///< log2 of the threads of a block
  [[nodiscard]] std::uint64_t per_iteration() const { return std::uint64_t{1} << (p + l); }  ///< elements: P * L
};

/// Premise 1: the block with which a multiprocessor is full of warps and of blocks at once. Premise 2: two vectors of
/// 16 bytes in the registers of a thread, which is what it has registers for then.
[[nodiscard]] stage_parameters by_premises(const multiprocessor& sm, std::size_t element_size);

/// A soft device has no warps: a thread is a block, and all there is to choose is the chunk.
[[nodiscard]] stage_parameters for_threads();

/// Premises 3 and 4 (equations 1 to 3): the powers of two K to try, never none. stage_two: elements that one stage
/// should leave to the next at least, which is how many blocks a multiprocessor holds, times P L of stage 2. devices:
/// those that share each problem.
[[nodiscard]] std::vector<std::uint64_t> iterations_to_try(std::uint64_t length, std::uint64_t problems,
                                                           const stage_parameters& parameters, std::uint64_t stage_two,
                                                           std::size_t devices);

/// The premises in sentences.
[[nodiscard]] std::string explain(const stage_parameters& parameters, const device_traits& device);

}  // namespace hpe::scan
