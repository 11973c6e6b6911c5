#include "runtime/device/cuda/kernel_table.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/base/error.h"

namespace hpe::device::cuda {

namespace {

constexpr const char* image_name = "hpe_cuda_image";

/// CUDA code in memory. `data` points into the shared object that contains the code, or to `bytes` if the code was read
/// from any other file.
struct image {
  const void* data = nullptr;
  std::string bytes;
};

bool is_program_code(const std::string& file) {
  Elf64_Ehdr header{};
  std::ifstream stream(file, std::ios::binary);
  return stream.read(reinterpret_cast<char*>(&header), sizeof header) &&
         std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_DYN;
}

image read_image(const std::string& path) {
  std::error_code ignored;
  image result;
  if (std::filesystem::is_regular_file(path, ignored) && !is_program_code(path)) {
    std::ifstream stream(path, std::ios::binary);
    result.bytes.assign(std::istreambuf_iterator<char>(stream), {});
    HPE_REQUIRE(stream.good() || stream.eof(), HPE_ERROR_NOT_FOUND, "{} cannot be read", path);
    result.data = result.bytes.c_str();  // PTX text must end with a zero byte
    return result;
  }
  // The shared object is never closed, because its modules exist until the program ends.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  HPE_REQUIRE(handle != nullptr, HPE_ERROR_NOT_FOUND, "{}", ::dlerror());  // NOLINT(concurrency-mt-unsafe)
  result.data = ::dlsym(handle, image_name);
  HPE_REQUIRE(result.data != nullptr, HPE_ERROR_NOT_FOUND,
              "{} holds no CUDA code ({}); it can run on soft devices only", path, image_name);
  return result;
}

}  // namespace

kernel_table::~kernel_table() {
  for (std::uint32_t n = 0; n < modules_.size(); ++n) unload(n);
}

void kernel_table::unload(std::uint32_t number) {
  const lock_guard lock(mutex_);
  module& m = modules_[number];
  for (std::size_t d = 0; d < m.on.size(); ++d) {
    if (m.on[d] == nullptr) continue;
    const entered here(cu_, context_of_(d));
    cu_.cuModuleUnload(std::exchange(m.on[d], nullptr));
  }
}

std::uint32_t kernel_table::load(const std::string& path, const std::vector<bool>& wanted) {
  const image code = read_image(path);
  return load(
      path, [&](CUmodule* made) { return cu_.cuModuleLoadData(made, code.data); }, wanted);
}

std::uint32_t kernel_table::load_ptx(std::span<const std::string> texts, const std::vector<bool>& wanted) {
  return load(
      "a module of PTX", [&](CUmodule* made) { return cu_.load_texts(made, texts); }, wanted);
}

template <class Load>
std::uint32_t kernel_table::load(const std::string& name, const Load& load_one, const std::vector<bool>& wanted) {
  module made{name, std::vector<CUmodule>(devices_)};
  for (std::size_t d = 0; d < devices_; ++d) {
    if (!wanted[d]) continue;
    const entered here(cu_, context_of_(d));
    const CUresult result = load_one(&made.on[d]);
    HPE_REQUIRE(result == CUDA_SUCCESS, HPE_ERROR_NOT_FOUND, "the CUDA code of {} cannot be loaded on device {}: {}",
                name, d, cu_.words_for(result));
    load_functions(made.on[d]);
  }
  const lock_guard lock(mutex_);
  modules_.push_back(std::move(made));
  return static_cast<std::uint32_t>(modules_.size() - 1);
}

// Loads all functions of the module if the driver has functions for this. Otherwise the driver would load each function
// at its first launch, and would wait for all running work before it does this.
void kernel_table::load_functions(CUmodule from) const {
  if (cu_.cuModuleGetFunctionCount == nullptr || cu_.cuModuleEnumerateFunctions == nullptr || cu_.cuFuncLoad == nullptr)
    return;
  unsigned count = 0;
  cu_.cuModuleGetFunctionCount(&count, from);
  std::vector<CUfunction> functions(count);
  cu_.cuModuleEnumerateFunctions(functions.data(), count, from);
  for (const CUfunction f : functions) cu_.cuFuncLoad(f);
}

kernel_id kernel_table::find(std::uint32_t number, const std::string& name, const std::vector<bool>& wanted) {
  const lock_guard lock(mutex_);
  HPE_REQUIRE(number < modules_.size(), HPE_ERROR_NOT_FOUND, "kernel \"{}\": there is no module {}", name, number);
  const module& from = modules_[number];
  kernel made{name, std::vector<kernel_on_device>(devices_)};
  for (std::size_t d = 0; d < devices_; ++d) {
    if (from.on[d] == nullptr || !wanted[d]) continue;
    const entered here(cu_, context_of_(d));
    const CUresult result = cu_.cuModuleGetFunction(&made.on[d].function, from.on[d], name.c_str());
    HPE_REQUIRE(result == CUDA_SUCCESS, HPE_ERROR_NOT_FOUND, "{} has no CUDA kernel \"{}\": {}", from.path, name,
                cu_.words_for(result));
    made.on[d].shared_bytes = made.on[d].allowed_bytes = give_shared_memory(from.on[d], name, made.on[d].function);
  }
  kernels_.push_back(std::move(made));
  return {number, static_cast<std::uint32_t>(kernels_.size() - 1)};
}

std::vector<CUdeviceptr> kernel_table::find_variable(std::uint32_t number, const char* name) const {
  const shared_lock_guard lock(mutex_);
  const module& from = modules_.at(number);
  std::vector<CUdeviceptr> result(devices_);
  for (std::size_t d = 0; d < devices_; ++d) {
    if (from.on[d] == nullptr) continue;
    const entered here(cu_, context_of_(d));
    std::size_t size = 0;
    cu_.check(cu_.cuModuleGetGlobal(&result[d], &size, from.on[d], name), "finding a variable of a module");
  }
  return result;
}

// Allows the kernel the dynamic shared memory that it needs (variable NAME_shared_bytes of the module), and returns the
// size of this memory in bytes; 0 if the module has no such variable.
unsigned kernel_table::give_shared_memory(CUmodule from, const std::string& name, CUfunction to) const {
  CUdeviceptr variable = 0;
  std::size_t size = 0;
  unsigned bytes = 0;
  if (cu_.cuModuleGetGlobal(&variable, &size, from, (name + "_shared_bytes").c_str()) != CUDA_SUCCESS) return 0;
  HPE_REQUIRE(size == sizeof bytes && cu_.cuMemcpyDtoH(&bytes, variable, sizeof bytes) == CUDA_SUCCESS,
              HPE_ERROR_NOT_FOUND, "{}_shared_bytes is not a 32-bit number", name);
  const CUresult result =
      cu_.cuFuncSetAttribute(to, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes));
  HPE_REQUIRE(result == CUDA_SUCCESS, HPE_ERROR_NOT_SUPPORTED, "kernel \"{}\" gets no {} bytes of shared memory: {}",
              name, bytes, cu_.words_for(result));
  return bytes;
}

// hpe does not know how much the driver allows without a request, because this depends on the kernel's other shared
// memory. A request may lower the limit, so hpe never requests less than before.
void kernel_table::allow_shared_memory(kernel_id id, unsigned device, unsigned bytes) {
  if (at(id, device).allowed_bytes >= bytes) return;
  const lock_guard lock(mutex_);
  kernel_on_device& it = kernels_[id.function].on[device];
  if (it.allowed_bytes < bytes && cu_.cuFuncSetAttribute(it.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                         static_cast<int>(bytes)) == CUDA_SUCCESS)
    it.allowed_bytes = bytes;
}

kernel_table::kernel_on_device kernel_table::at(kernel_id id, unsigned device) const {
  const shared_lock_guard lock(mutex_);
  const kernel_on_device found = id.function < kernels_.size() ? kernels_[id.function].on[device] : kernel_on_device{};
  HPE_REQUIRE(found.function != nullptr, HPE_ERROR_NOT_FOUND, "kernel {} is not loaded on device {}", id.function,
              device);
  return found;
}

std::string kernel_table::name(std::uint32_t function) const {
  const shared_lock_guard lock(mutex_);
  return kernels_[function].name;
}

}  // namespace hpe::device::cuda
