#include "interpose/gpu/work/launch_parameters.h"

#include <cstring>
#include <span>
#include <utility>

#include "runtime/ptx/program/ptx_program.h"

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

// Returns the block of bytes in which a launch passes its parameters, if it does not pass a pointer to each parameter.
// The result has no address if `extra` contains no block.
std::span<const std::byte> block_in(void** extra) {
  const void* block = nullptr;
  const std::size_t* bytes = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) block = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = static_cast<const std::size_t*>(extra[1]);
  }
  if (block == nullptr || bytes == nullptr) return {};
  return {static_cast<const std::byte*>(block), *bytes};
}

}  // namespace

parameter_sizes& parameter_sizes::of_process() {
  // Never destroyed, because threads of the program may call the driver until the process ends.
  static parameter_sizes& sizes = *new parameter_sizes;
  return sizes;
}

parameter_sizes::list parameter_sizes::of(const device::cuda::driver& cu, CUfunction function) {
  {
    const shared_lock_guard lock(mutex_);
    if (const auto known = sizes_.find(function); known != sizes_.end()) return known->second;
  }
  if (cu.cuFuncGetParamInfo == nullptr || cu.cuKernelGetParamInfo == nullptr) return nullptr;
  std::vector<std::size_t> found;
  bool has_end = false;
  const auto is_parameter = [&](CUresult result) {
    has_end |= result == CUDA_ERROR_INVALID_VALUE;  // there are no more parameters
    return result == CUDA_SUCCESS;
  };
  std::size_t offset = 0;
  for (std::size_t bytes = 0;
       is_parameter(cu.cuFuncGetParamInfo(function, found.size(), &offset, &bytes)) ||
       is_parameter(cu.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), found.size(), &offset, &bytes));)
    found.push_back(bytes);
  // Returns null if the driver reports no parameter. The caller asks only if the launch passes an array of parameters.
  if (found.empty()) return nullptr;
  auto result = std::make_shared<const std::vector<std::size_t>>(std::move(found));
  if (!has_end) return result;  // another error, which the driver may not report the next time
  const lock_guard lock(mutex_);
  return sizes_.insert_or_assign(function, std::move(result)).first->second;
}

void parameter_sizes::forget() noexcept {
  const lock_guard lock(mutex_);
  sizes_.clear();
}

std::vector<std::byte> parameters_of(const ptx::function& kernel, const kernel_launch& launch) {
  std::vector<std::byte> all(kernel.formals_size);
  if (launch.extra != nullptr) {
    const std::span<const std::byte> block = block_in(launch.extra);
    if (block.data() == nullptr || block.size() < all.size()) return {};
    std::memcpy(all.data(), block.data(), all.size());
    return all;
  }
  if (launch.parameters == nullptr) return {};
  for (std::size_t n = 0; n < kernel.formals.size(); ++n) {
    if (launch.parameters[n] == nullptr) return {};
    std::memcpy(all.data() + kernel.formals[n].offset, launch.parameters[n], kernel.formals[n].size);
  }
  return all;
}

CUdeviceptr pointer_in(const std::vector<std::byte>& parameters, std::uint32_t offset) {
  CUdeviceptr pointer = 0;
  if (offset + sizeof pointer <= parameters.size()) std::memcpy(&pointer, parameters.data() + offset, sizeof pointer);
  return pointer;
}

std::optional<std::vector<CUdeviceptr>> words_of(const device::cuda::driver& cu, const kernel_launch& launch) {
  std::vector<CUdeviceptr> result;
  if (launch.extra != nullptr) {
    const std::span<const std::byte> block = block_in(launch.extra);
    if (block.data() == nullptr) return std::nullopt;
    add_words(result, block.data(), block.size());
    return result;
  }
  if (launch.parameters == nullptr) return result;
  const parameter_sizes::list sizes = parameter_sizes::of_process().of(cu, launch.function);
  if (sizes == nullptr) return std::nullopt;
  for (std::size_t index = 0; index < sizes->size(); ++index)
    add_words(result, launch.parameters[index], (*sizes)[index]);
  return result;
}

}  // namespace hpe::cuda_hooks
