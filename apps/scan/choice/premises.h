#pragma once

/// The parameters (s, p, l, K) of a scan in three stages, by the premises of Dieguez et al., sections 3.2 and 4.2.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/scan/choice/topology.h"

namespace hpe::scan {

/// The largest numbers of blocks and warps that run on a multiprocessor at a time.
struct multiprocessor {
  unsigned blocks, warps;
};
/// The multiprocessor of NVIDIA's compute capabilities 8.0 and 9.0.
inline constexpr multiprocessor data_centre_gpu{32, 64};

struct stage_parameters {
  unsigned s = 0;  ///< log2 of the elements in shared memory of a block
  unsigned p = 0;  ///< log2 of the elements in registers of a thread
  unsigned l = 0;  ///< log2 of the threads of a block
  [[nodiscard]] std::uint64_t per_iteration() const { return std::uint64_t{1} << (p + l); }  ///< elements: P * L
};

/// Returns the parameters by premises 1 and 2. Premise 1: with this block size, a multiprocessor reaches its limits of
/// warps and of blocks at the same time. Premise 2: a thread holds two vectors of 16 bytes in registers; with this
/// block size, it has enough registers for them.
[[nodiscard]] stage_parameters by_premises(const multiprocessor& sm, std::size_t element_size);

/// Returns the parameters for a soft device, which has no warps: a thread is a block, and only the size of chunks can
/// be chosen.
[[nodiscard]] stage_parameters for_threads();

/// Returns the values of K to try by premises 3 and 4 (equations 1 to 3): powers of two, at least one. stage_two: the
/// smallest number of elements that stage 1 should leave to stage 2, that is, the number of blocks on a multiprocessor
/// times P L of stage 2. devices: the number of devices that share each problem.
[[nodiscard]] std::vector<std::uint64_t> iterations_to_try(std::uint64_t length, std::uint64_t problems,
                                                           const stage_parameters& parameters, std::uint64_t stage_two,
                                                           std::size_t devices);

/// Describes the premises in sentences.
[[nodiscard]] std::string explain(const stage_parameters& parameters, const device_traits& device);

}  // namespace hpe::scan
