#include "interpose/gpu/work/launch_scope.h"

#include <cstring>

namespace hpe::cuda_hooks {

namespace {

constexpr std::size_t word = sizeof(CUdeviceptr);

void add_words(std::vector<CUdeviceptr>& to, const void* begin, std::size_t bytes) {
  // Members of ordinary structures are aligned to 8 bytes; steps of 4 bytes also find addresses in most packed
  // structures.
  for (std::size_t at = 0; at + word <= bytes; at += sizeof(std::uint32_t)) {
    CUdeviceptr value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(begin) + at, word);
    to.push_back(value);
  }
}

// Adds the words of parameters that the launch passes as one block of bytes (`extra`) and not by a pointer to each
// parameter.
bool add_block(std::vector<CUdeviceptr>& to, void** extra) {
  const void* block = nullptr;
  const std::size_t* bytes = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) block = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = static_cast<const std::size_t*>(extra[1]);
  }
  if (block == nullptr || bytes == nullptr) return false;
  add_words(to, block, *bytes);
  return true;
}

}  // namespace

std::optional<std::vector<CUdeviceptr>> words_of(const device::cuda::driver& cu, const kernel_launch& launch) {
  std::vector<CUdeviceptr> result;
  if (launch.extra != nullptr) return add_block(result, launch.extra) ? std::optional(result) : std::nullopt;
  if (launch.parameters == nullptr) return result;
  if (cu.cuFuncGetParamInfo == nullptr || cu.cuKernelGetParamInfo == nullptr) return std::nullopt;
  const auto size_of = [&](std::size_t index, std::size_t& bytes) {
    std::size_t offset = 0;
    return cu.cuFuncGetParamInfo(launch.function, index, &offset, &bytes) == CUDA_SUCCESS ||
           cu.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(launch.function), index, &offset, &bytes) == CUDA_SUCCESS;
  };
  std::size_t index = 0;
  for (std::size_t bytes = 0; size_of(index, bytes); ++index) add_words(result, launch.parameters[index], bytes);
  // Returns nullopt if the driver does not report the size of any parameter, although the launch has parameters.
  return index != 0 ? std::optional(result) : std::nullopt;
}

}  // namespace hpe::cuda_hooks
