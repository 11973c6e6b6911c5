#include "interpose/gpu/spread/part_kernels.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

// Lets a thread analyse a kernel that the caller has claimed. If the analysis fails for lack of host memory, the claim
// ends, so a later launch lets a thread repeat the analysis.
bool lets_analyse(os::worker& by, const part_kernel& kernel) {
  const auto analyse = [image = kernel.image, analysis = kernel.analysis] {
    try {
      (void)analysis->model(*image);
    } catch (const std::exception& e) {
      analysis->end_claim();
      log(log_level::debug, "a kernel of the program is not analysed yet: {}", e.what());
    }
  };
  try {
    const bool is_posted = by.post(analyse);
    if (!is_posted) kernel.analysis->end_claim();
    return is_posted;
  } catch (...) {
    kernel.analysis->end_claim();
    throw;
  }
}

bool has_atomics(const spread::kernel_model& model) {
  return std::ranges::any_of(model.analysis().arrays, [](const auto& array) { return array.updates > 0; });
}

}  // namespace

bool part_kernel::finds_memory(const std::vector<std::byte>& parameters) const {
  return code != nullptr && !code->model->finds_pointers() && !code->model->writes_anywhere() &&
         (!parameters.empty() || code->model->analysis().kernel->formals_size == 0);
}

std::size_t part_kernel::bytes_of_patched() const {
  std::size_t sum = 0;
  for (const std::string& text : analysis->model(*image)->patched().texts) sum += text.size();
  return sum;
}

void part_kernels::unload(const gpu_modules& module) const {
  for (unsigned n = 0; n < module.of_gpus.size(); ++n) {
    if (module.of_gpus[n] == nullptr) continue;
    const entered here(cu_, gpus_.context(n));
    cu_.cuModuleUnload(module.of_gpus[n]);
  }
}

// The program unloads code only after its kernels have finished, so the kernels of the patched module have finished,
// too.
void part_kernels::forget_handles(const std::function<void(const spread::kernel_model&)>& forgotten) {
  const lock_guard lock(mutex_);
  kernels_.clear();
  std::erase_if(images_, [&](const auto& each) {
    const auto& [image, kernels] = each;
    if (image.use_count() > 1) return false;
    for (const auto& [name, known] : kernels) {
      if (const spread::module_model* const model =
              known.analysis->is_analysed() ? known.analysis->model(*image) : nullptr)
        for (const auto& analysed : model->kernels()) forgotten(*analysed.second.model);
      unload(known.patched);
    }
    return true;
  });
}

part_kernel part_kernels::look_up(CUfunction handle) {
  part_kernel found;
  const program_code::origin from = program_code::of_process().origin_of(cu_, handle);
  found.name = from.name;
  if (!from.name.empty()) {
    found.image = program_code::of_process().find(from, found.obstacle);
  } else {
    found.name = "a kernel without a name";
    found.obstacle = "the CUDA driver does not return its name";
  }
  if (found.image == nullptr) return found;
  auto& known = images_[found.image];
  auto its = known.find(found.name);
  if (its == known.end())
    its = known.emplace(found.name, image_kernel{std::make_shared<kernel_code>(found.name), {}}).first;
  found.analysis = its->second.analysis;
  return found;
}

part_kernel part_kernels::describe(part_kernel made) {
  if (made.image == nullptr) return made;
  const spread::module_model* const model = made.analysis->model(*made.image);
  if (model == nullptr) {
    made.obstacle = made.analysis->failure();
    return made;
  }
  const auto found = model->kernels().find(made.name);
  if (found == model->kernels().end()) {
    made.obstacle = "its module contains no PTX for it";
    return made;
  }
  made.code = &found->second;
  made.obstacle = made.code->obstacle_in_programs;
  made.has_atomics = has_atomics(*made.code->model);
  if (made.obstacle.empty() && made.has_atomics && !gpus_.have_atomics())
    made.obstacle = "the GPUs have no atomic operations on each other's memory";
  return made;
}

std::shared_ptr<const part_kernel> part_kernels::of(CUfunction handle) {
  const lock_guard lock(mutex_);
  auto& entry = kernels_[handle].kernel;
  if (entry == nullptr) entry = std::make_shared<const part_kernel>(describe(look_up(handle)));
  return entry;
}

std::shared_ptr<const part_kernel> part_kernels::of_if_analysed(CUfunction handle, os::worker& by) {
  const lock_guard lock(mutex_);
  auto& entry = kernels_[handle].kernel;
  if (entry != nullptr) return entry;
  part_kernel found = look_up(handle);
  if (found.image != nullptr && !found.analysis->is_analysed()) {
    if (!found.analysis->claim_analysis() || lets_analyse(by, found)) {
      found.image = nullptr;
      found.analysis = nullptr;
      found.obstacle = "hpe has not analysed it yet";
      found.is_awaited = true;
      return std::make_shared<const part_kernel>(std::move(found));
    }
  }
  return entry = std::make_shared<const part_kernel>(describe(std::move(found)));
}

part_kernels::gpu_modules& part_kernels::patched_of(const part_kernel& kernel) {
  return images_.at(kernel.image).at(kernel.name).patched;
}

CUmodule part_kernels::module_of(CUfunction handle) const {
  CUmodule found = nullptr;
  HPE_REQUIRE(cu_.cuFuncGetModule != nullptr, HPE_ERROR_NOT_SUPPORTED, "this CUDA driver has no cuFuncGetModule");
  if (cu_.cuFuncGetModule(&found, handle) == CUDA_SUCCESS) return found;
  CUfunction function = nullptr;
  HPE_REQUIRE(cu_.cuKernelGetFunction != nullptr, HPE_ERROR_NOT_SUPPORTED,
              "this CUDA driver has no cuKernelGetFunction");
  cu_.check(cu_.cuKernelGetFunction(&function, reinterpret_cast<CUkernel>(handle)), "finding the function of a kernel");
  cu_.check(cu_.cuFuncGetModule(&found, function), "finding the module of a kernel");
  return found;
}

part_kernels::variable part_kernels::find_variable(CUmodule module, unsigned gpu, const std::string& name) const {
  const entered here(cu_, gpus_.context(gpu));
  variable v;
  if (const CUresult result = cu_.cuModuleGetGlobal(&v.address, &v.bytes, module, name.c_str()); result != CUDA_SUCCESS)
    HPE_THROW(HPE_ERROR_NOT_FOUND, "the CUDA driver does not find its variable {}: {}", name, cu_.words_for(result));
  return v;
}

void part_kernels::find_constants(gpu_modules& made, const std::vector<std::string>& names, CUmodule original) const {
  std::vector<constant> all;
  for (const std::string& name : names) {
    const variable from = find_variable(original, 0, name);
    constant& c = all.emplace_back(constant{from.address, from.bytes, {}});
    for (unsigned n = 0; n < gpus_.count(); ++n) c.to.push_back(find_variable(made.of_gpus[n], n, name).address);
  }
  made.constants = std::move(all);
}

// While the driver compiles a text for a context, most other calls in this context wait, also launches (seen with
// driver 580). Therefore the program's own GPU comes last: the driver has then compiled the text for another GPU, and
// finds the code in its cache.
part_kernels::gpu_modules part_kernels::load_module(const part_kernel& kernel) const {
  const ptx::patch::patched_module& patched = kernel.analysis->model(*kernel.image)->patched();
  gpu_modules made;
  made.of_gpus.resize(gpus_.count());
  made.copied.resize(gpus_.count());
  CUresult result = CUDA_SUCCESS;
  for (unsigned n = gpus_.count(); n-- > 0 && result == CUDA_SUCCESS;) {
    const entered here(cu_, gpus_.context(n));
    result = cu_.load_texts(&made.of_gpus[n], patched.texts);
  }
  if (result != CUDA_SUCCESS) unload(made);
  cu_.check(result, "loading kernels that run a part of their grid");
  return made;
}

void part_kernels::bring_constants(const part_kernel& kernel, unsigned gpu, CUstream stream, std::uint64_t written) {
  if (!kernel.code->patched.uses_constants) return;
  std::vector<constant> constants;
  {
    const lock_guard lock(mutex_);
    gpu_modules& module = patched_of(kernel);
    gpu_modules::copy& last = module.copied[gpu];
    if (last.on == stream && last.written == written) return;
    constants = module.constants;
    last = {};  // stays empty until all copies are queued, because a copy may fail
  }
  const entered here(cu_, gpus_.context(gpu));
  for (const constant& c : constants)
    cu_.check(cu_.cuMemcpyAsync(c.to[gpu], c.from, c.bytes, stream), "copying constants to a GPU");
  const lock_guard lock(mutex_);
  patched_of(kernel).copied[gpu] = {stream, written};
}

std::vector<CUfunction> part_kernels::find_parts(const part_kernel& kernel, CUfunction handle, unsigned shared) {
  gpu_modules& module = patched_of(kernel);
  if (module.of_gpus.empty()) module = load_module(kernel);
  if (kernel.code->patched.uses_constants && module.constants.empty())
    find_constants(module, kernel.analysis->model(*kernel.image)->patched().constants, module_of(handle));
  std::vector<CUfunction> parts(gpus_.count());
  for (unsigned n = 0; n < gpus_.count(); ++n) {
    const entered here(cu_, gpus_.context(n));
    cu_.check(cu_.cuModuleGetFunction(&parts[n], module.of_gpus[n], kernel.name.c_str()),
              "finding a kernel that runs a part of its grid");
    // Without this request, the limit of dynamic shared memory depends on the kernel's other shared memory.
    if (shared > 0)
      cu_.check(
          cu_.cuFuncSetAttribute(parts[n], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)),
          "setting the shared memory of a kernel that runs a part of its grid");
  }
  return parts;
}

bool part_kernels::is_loaded(const part_kernel& kernel) {
  const lock_guard lock(mutex_);
  const gpu_modules& patched = patched_of(kernel);
  return !patched.of_gpus.empty() || patched.is_refused;
}

// Holds no lock while the driver compiles the code, because this takes a long time.
void part_kernels::load_ahead(const part_kernel& kernel) {
  gpu_modules made;
  try {
    made = load_module(kernel);
    for (unsigned n = 0; n < gpus_.count(); ++n) {
      const entered here(cu_, gpus_.context(n));
      CUfunction part = nullptr;  // the driver may load the code of a kernel only in cuModuleGetFunction
      (void)cu_.cuModuleGetFunction(&part, made.of_gpus[n], kernel.name.c_str());
    }
  } catch (const std::exception&) {
    made.is_refused = true;
  }
  {
    const lock_guard lock(mutex_);
    gpu_modules& module = patched_of(kernel);
    if (module.of_gpus.empty()) std::swap(module, made);
  }
  unload(made);
}

std::vector<CUfunction> part_kernels::load(const std::shared_ptr<const part_kernel>& kernel, CUfunction handle,
                                           unsigned shared) {
  const lock_guard lock(mutex_);
  ready_kernel& entry = kernels_[handle];
  if (entry.kernel != kernel) entry = {kernel, {}, 0};  // the program has unloaded a module in the meantime
  if (!entry.parts.empty() && shared <= entry.most_shared) return entry.parts;
  try {
    entry.parts = find_parts(*kernel, handle, shared);
    entry.most_shared = shared;
    return entry.parts;
  } catch (const error& e) {
    log(log_level::warn, "kernel {} runs on one GPU: {}", kernel->name, e.what());
    part_kernel refused = *kernel;
    refused.obstacle = fmt::format("its patched code cannot be loaded: {}", e.what());
    entry.kernel = std::make_shared<const part_kernel>(std::move(refused));
    throw;
  }
}

}  // namespace hpe::cuda_hooks
