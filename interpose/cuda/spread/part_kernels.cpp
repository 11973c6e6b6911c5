#include "interpose/cuda/spread/part_kernels.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;
using ptx::analysis::quantity;

namespace {

constexpr unsigned shared_of_any_kernel = 48U << 10;  // dynamic shared memory that needs no attribute

void find_uses(part_kernel& k) {
  const ptx::analysis::kernel_analysis& analysis = k.code->model->analysis();
  for (const ptx::analysis::array_use& array : analysis.arrays) {
    const quantity* const base = array.base ? &analysis.walk->table().of(*array.base) : nullptr;
    k.has_atomics |= array.updates > 0;
    const bool is_known =
        base != nullptr && (base->what == quantity::kind::variable || base->what == quantity::kind::parameter);
    k.finds_pointers |= !is_known;
  }
}

}  // namespace

void part_kernels::unload(const patched_module& module) const {
  for (unsigned n = 0; n < module.of_gpus.size(); ++n) {
    if (module.of_gpus[n] == nullptr) continue;
    const entered here(cu_, gpus_.context(n));
    cu_.cuModuleUnload(module.of_gpus[n]);
  }
}

// The program's code ends after its kernels have, so those of its patched module have ended too.
void part_kernels::forget_handles(const std::function<void(const spread::kernel_model&)>& forgotten) {
  kernels_.clear();
  std::erase_if(modules_, [&](const auto& each) {
    if (each.first.use_count() > 1) return false;
    for (const auto& [name, kernel] : each.first->model()->kernels()) forgotten(*kernel.model);
    unload(each.second);
    return true;
  });
}

void part_kernels::forget_modules() {
  kernels_.clear();
  for (auto& [image, module] : modules_) unload(std::exchange(module, {}));
}

program_code::origin part_kernels::origin_of(CUfunction handle) const {
  program_code::origin result = program_code::of_process().origin_of(handle);
  if (!result.name.empty()) return result;
  // A handle that the program got in another way. Launches take functions and kernels of libraries.
  const char* name = nullptr;
  auto* const kernel = reinterpret_cast<CUkernel>(handle);
  if (cu_.cuFuncGetName != nullptr && cu_.cuFuncGetName(&name, handle) == CUDA_SUCCESS) {
    CUmodule module = nullptr;
    if (cu_.cuFuncGetModule != nullptr && cu_.cuFuncGetModule(&module, handle) == CUDA_SUCCESS) result.from = module;
  } else if (cu_.cuKernelGetName != nullptr && cu_.cuKernelGetName(&name, kernel) == CUDA_SUCCESS) {
    CUlibrary library = nullptr;
    if (cu_.cuKernelGetLibrary != nullptr && cu_.cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS)
      result.from = library;
  }
  if (name != nullptr) result.name = name;
  return result;
}

std::unique_ptr<part_kernel> part_kernels::make(CUfunction handle) {
  auto made = std::make_unique<part_kernel>();
  const program_code::origin from = origin_of(handle);
  made->name = from.name;
  if (from.name.empty()) {
    made->name = "a kernel without a name";
    made->obstacle = "the CUDA driver does not tell its name";
    return made;
  }
  made->image = program_code::of_process().find(from, made->obstacle);
  if (made->image == nullptr) return made;
  const spread::module_model* const model = made->image->model();
  if (model == nullptr) {
    made->obstacle = made->image->failure();
    return made;
  }
  modules_.try_emplace(made->image);
  const auto found = model->kernels().find(from.name);
  if (found == model->kernels().end()) {
    made->obstacle = "its module has no PTX of it";
    return made;
  }
  made->code = &found->second;
  made->obstacle = made->code->obstacle;
  find_uses(*made);
  if (!made->obstacle.empty()) return made;
  if (made->code->patched.uses_variables) {
    made->obstacle = "it uses variables of its program, which other GPUs do not reach";
  } else if (made->finds_pointers) {
    made->obstacle = "it finds pointers in memory, or makes accesses that hpe cannot follow";
  } else if (made->has_atomics && !gpus_.have_atomics()) {
    made->obstacle = "the GPUs have no atomic operations on each other's memory";
  }
  return made;
}

part_kernel& part_kernels::of(CUfunction handle) {
  auto& entry = kernels_[handle];
  if (entry == nullptr) entry = make(handle);
  return *entry;
}

CUmodule part_kernels::module_of(CUfunction handle) const {
  CUmodule found = nullptr;
  HPE_REQUIRE(cu_.cuFuncGetModule != nullptr, HPE_ERROR_NOT_SUPPORTED, "this CUDA driver has no cuFuncGetModule");
  if (cu_.cuFuncGetModule(&found, handle) == CUDA_SUCCESS) return found;
  CUfunction function = nullptr;
  HPE_REQUIRE(cu_.cuKernelGetFunction != nullptr, HPE_ERROR_NOT_SUPPORTED,
              "this CUDA driver has no cuKernelGetFunction");
  cu_.check(cu_.cuKernelGetFunction(&function, reinterpret_cast<CUkernel>(handle)), "the function of a kernel");
  cu_.check(cu_.cuFuncGetModule(&found, function), "the module of a kernel");
  return found;
}

part_kernels::variable part_kernels::find_variable(CUmodule module, unsigned gpu, const std::string& name) const {
  const entered here(cu_, gpus_.context(gpu));
  variable v;
  if (const CUresult result = cu_.cuModuleGetGlobal(&v.address, &v.bytes, module, name.c_str()); result != CUDA_SUCCESS)
    HPE_THROW(HPE_ERROR_NOT_FOUND, "the CUDA driver does not find its variable {}: {}", name, cu_.words_for(result));
  return v;
}

void part_kernels::find_constants(patched_module& made, const std::vector<std::string>& names,
                                  CUmodule original) const {
  std::vector<constant> all;
  for (const std::string& name : names) {
    const variable from = find_variable(original, 0, name);
    constant& c = all.emplace_back(constant{from.address, from.bytes, {}});
    for (unsigned n = 0; n < gpus_.count(); ++n) c.to.push_back(find_variable(made.of_gpus[n], n, name).address);
  }
  made.constants = std::move(all);
}

part_kernels::patched_module part_kernels::load_module(program_image& image) const {
  const ptx::patch::patched_module& patched = image.model()->patched();
  patched_module made;
  made.of_gpus.resize(gpus_.count());
  made.copied.resize(gpus_.count());
  CUresult result = CUDA_SUCCESS;
  for (unsigned n = 0; n < gpus_.count() && result == CUDA_SUCCESS; ++n) {
    const entered here(cu_, gpus_.context(n));
    result = cu_.cuModuleLoadData(&made.of_gpus[n], patched.texts.front().c_str());
  }
  if (result != CUDA_SUCCESS) unload(made);
  cu_.check(result, "loading kernels that run a part of their grid");
  return made;
}

void part_kernels::bring_constants(const part_kernel& kernel, unsigned gpu, const std::shared_ptr<program_lane>& lane,
                                   std::uint64_t written) {
  if (!kernel.code->patched.uses_constants) return;
  patched_module& module = modules_.at(kernel.image);
  patched_module::copy& last = module.copied[gpu];
  if (last.on == lane && last.written == written) return;
  const entered here(cu_, gpus_.context(gpu));
  for (const constant& c : module.constants)
    cu_.check(cu_.cuMemcpyAsync(c.to[gpu], c.from, c.bytes, lane->stream(gpu)), "copying constants to a GPU");
  last = {lane, written};
}

bool part_kernels::load(part_kernel& kernel, CUfunction handle, unsigned shared) {
  if (!kernel.parts.empty() && shared <= std::max(kernel.most_shared, shared_of_any_kernel)) return true;
  try {
    patched_module& module = modules_[kernel.image];
    if (module.of_gpus.empty()) module = load_module(*kernel.image);
    if (kernel.code->patched.uses_constants && module.constants.empty())
      find_constants(module, kernel.image->model()->patched().constants, module_of(handle));
    std::vector<CUfunction> parts(gpus_.count());
    for (unsigned n = 0; n < gpus_.count(); ++n) {
      const entered here(cu_, gpus_.context(n));
      cu_.check(cu_.cuModuleGetFunction(&parts[n], module.of_gpus[n], kernel.name.c_str()),
                "finding a kernel that runs a part of its grid");
      if (shared > shared_of_any_kernel)
        cu_.check(
            cu_.cuFuncSetAttribute(parts[n], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)),
            "shared memory of a kernel that runs a part of its grid");
    }
    kernel.parts = std::move(parts);
    kernel.most_shared = shared;
    return true;
  } catch (const error& e) {
    log(log_level::warn, "kernel {} runs on one GPU: {}", kernel.name, e.what());
    kernel.obstacle = fmt::format("its patched code cannot be loaded: {}", e.what());
    return false;
  }
}

}  // namespace hpe::cuda_hooks
