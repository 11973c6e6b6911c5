#include "apps/scan/choice/premises.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace hpe::scan {

namespace {

constexpr unsigned log2_of_warp = 5;
constexpr unsigned vectors_per_thread = 2;  // rows_per_thread of kernels/cuda/scan_three_stage.cuh

unsigned log2_floor(std::uint64_t value) { return static_cast<unsigned>(std::bit_width(value)) - 1; }

}  // namespace

stage_parameters by_premises(const multiprocessor& sm, std::size_t element_size) {
  const unsigned warps_per_block = std::max(sm.warps / sm.blocks, 1U);
  // s: one element for each warp, because the lanes of a warp combine their elements by shuffles.
  return {log2_of_warp, log2_floor(vectors_per_thread * 16 / element_size), log2_of_warp + log2_floor(warps_per_block)};
}

stage_parameters for_threads() {
  constexpr unsigned log2_of_iteration = 12;
  return {0, log2_of_iteration, 0};
}

std::vector<std::uint64_t> iterations_to_try(std::uint64_t length, std::uint64_t problems,
                                             const stage_parameters& parameters, std::uint64_t stage_two,
                                             std::size_t devices) {
  const std::uint64_t step = parameters.per_iteration();
  std::uint64_t most = length * problems / stage_two / step;  // equation 1
  most = std::min(most, length / step / devices);  // equations 2 and 3: each device has a chunk of each problem
  std::vector<std::uint64_t> result{1};
  while (result.back() * 2 <= most) result.push_back(result.back() * 2);
  return result;
}

std::string explain(const stage_parameters& parameters, const device_traits& device) {
  if (device.kind == HPE_DEVICE_SOFT)
    return fmt::format(
        "premises: {} consists of {} thread{}; each thread acts as a block and processes {} elements in an iteration\n",
        device.name, device.units, device.units == 1 ? "" : "s", parameters.per_iteration());
  return fmt::format(
      "premise 1: {} threads in a block (l = {}) fill a multiprocessor with both warps and blocks\n"
      "premise 2: {} elements in the registers of a thread (p = {}), two vectors of 16 bytes\n"
      "           after shuffles, only one element of each warp needs shared memory (s = {})\n",
      1U << parameters.l, parameters.l, 1U << parameters.p, parameters.p, parameters.s);
}

}  // namespace hpe::scan
