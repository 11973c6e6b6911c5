// The stand-in's modules. A module is the code that nvcc puts into programs; the stand-in interprets the PTX in this
// code.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "runtime/device/cuda/fingerprint_kernel.h"
#include "runtime/device/fingerprint.h"
#include "runtime/ptx/execution/block_range.h"
#include "runtime/ptx/execution/interpreter.h"
#include "runtime/ptx/files/fat_binary.h"
#include "runtime/ptx/text/parser.h"
#include "tests/interpose/gpu/stand_in/machine.h"

namespace ptx = hpe::ptx;

namespace stand_in {

namespace {

struct module_code {
  explicit module_code(const void* given)
      : program(ptx::parse({text_of(given)})), image(program, [](std::size_t bytes, std::size_t) {
          constexpr std::size_t behind = 1024;  // a kernel may write behind a variable without harm, as on GPUs
          return ::operator new (bytes + behind, std::align_val_t{64});
        }) {}

  static std::string text_of(const void* given) {
    const auto* const text = static_cast<const char*>(given);
    const bool is_text = text[0] == '/' || text[0] == '.' || text[0] == '\n';
    return is_text ? text : ptx::choose_ptx(ptx::read_fat_binary_in_memory(given)).text;
  }
  std::shared_ptr<const ptx::program> program;
  ptx::image image;
};

// Like the driver's compiler, this object has an exit handler from the first compilation on, which destroys what a
// running compilation uses. STAND_IN_COMPILE_MS: how long a compilation takes.
class compiler {
 public:
  static compiler& of_process() {
    static compiler it;
    return it;
  }
  void compile() {
    ++busy_;
    std::this_thread::sleep_for(time_);
    --busy_;
  }
  ~compiler() {
    if (busy_ == 0 || ::getpid() != owner_) return;
    std::fputs("stand-in: the process ends during a compilation\n", stderr);
    std::abort();
  }

 private:
  static std::chrono::milliseconds wanted() {
    const char* const given = std::getenv("STAND_IN_COMPILE_MS");
    return std::chrono::milliseconds(given != nullptr ? std::atoi(given) : 0);
  }

  const std::chrono::milliseconds time_ = wanted();
  const pid_t owner_ = ::getpid();
  std::atomic<int> busy_{0};
};

std::mutex state;
std::atomic<unsigned> most_parameters{0};

// A CUfunction of a module is the address of its kernel.
std::map<const void*, std::shared_ptr<module_code>>& kernels() {
  static auto* const all = new std::map<const void*, std::shared_ptr<module_code>>;
  return *all;
}

// Replaces device addresses in the parameters by the addresses at which the stand-in has the bytes. Parameters may be
// structures, so each word that can be a device address counts as an address. Only the first byte is looked up, because
// the rest of an array need not be mapped unless the kernel uses it. An address may also be a few bytes before an
// array.
void translate(std::vector<std::uint64_t>& parameters) {
  constexpr std::uint64_t few = 64;
  for (std::uint64_t& word : parameters) {
    const std::uint64_t found = number_of(memory_at(word));
    word = found != word ? found : number_of(memory_at(word + few)) - few;
  }
}

// To interpret hpe's kernel of fingerprints takes a second for each array. tests/work/fingerprints_test.cpp runs its
// PTX.
bool take_fingerprint(const module_code& code, const ptx::function& kernel, const std::vector<std::uint64_t>& words) {
  namespace device = hpe::device;
  if (kernel.name != device::cuda::fingerprint_kernel_name) return false;
  const auto& all = code.program->symbols;
  const auto sums = std::ranges::find(all, device::cuda::fingerprint_sums_name, &ptx::symbol::name);
  device::fingerprint_sum sum({words[2], words[3]});
  sum.add(reinterpret_cast<const void*>(words[0]),
          words[1] * device::fingerprint_unit);  // NOLINT(performance-no-int-to-ptr)
  const std::uint64_t place = code.image.address_of(static_cast<std::uint32_t>(sums - all.begin()));
  std::memcpy(reinterpret_cast<void*>(place), &sum.value(), sizeof sum.value());  // NOLINT(performance-no-int-to-ptr)
  return true;
}

void run(const module_code& code, const ptx::function& kernel, std::vector<std::uint64_t> parameters,
         const launch_shape& shape, int device) {
  for (const std::uint64_t word : parameters) {
    if (can_access(device, word)) continue;
    std::fprintf(stderr, "stand-in: device %d cannot access %#llx\n", device, static_cast<unsigned long long>(word));
    std::abort();
  }
  translate(parameters);
  if (take_fingerprint(code, kernel, parameters)) return;
  const ptx::surroundings outside{};
  ptx::launch_configuration c;
  c.image = &code.image;
  c.kernel = &kernel;
  c.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
  c.block = {shape.block[0], shape.block[1], shape.block[2]};
  c.parameters = parameters.data();
  c.surroundings = &outside;
  ptx::interpreter engine(*code.program);
  if (const auto trap = ptx::run_blocks(engine, c, {0, std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2]})) {
    std::fprintf(stderr, "stand-in: %s\n", trap->message().c_str());
    std::abort();
  }
}

}  // namespace

std::optional<formal> formal_of_module(CUfunction function, std::size_t index) {
  const std::lock_guard lock(state);
  if (!kernels().contains(function)) return std::nullopt;
  const auto& all = reinterpret_cast<const ptx::function*>(function)->formals;
  return index < all.size() ? formal{all[index].offset, all[index].size} : formal{};
}

bool is_over_limit(CUfunction function) {
  const std::lock_guard lock(state);
  const unsigned most = most_parameters;
  return most != 0 && kernels().contains(function) &&
         reinterpret_cast<const ptx::function*>(function)->formals_size > most;
}

bool launch_of_module(CUfunction function, const launch_shape& shape, stream& in, void** parameters, void** extra) {
  std::shared_ptr<module_code> code;
  {
    const std::lock_guard lock(state);
    const auto found = kernels().find(function);
    if (found == kernels().end()) return false;
    code = found->second;
  }
  const auto& kernel = *reinterpret_cast<const ptx::function*>(function);
  std::vector<std::uint64_t> values((kernel.formals_size + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  for (void** each = extra; each != nullptr && *each != CU_LAUNCH_PARAM_END; each += 2)
    if (*each == CU_LAUNCH_PARAM_BUFFER_POINTER) std::memcpy(bytes, each[1], kernel.formals_size);
  for (std::size_t n = 0; extra == nullptr && n < kernel.formals.size(); ++n)
    std::memcpy(bytes + kernel.formals[n].offset, parameters[n], kernel.formals[n].size);
  add(in, [code, &kernel, values, shape, device = in.of->device] { run(*code, kernel, values, shape, device); });
  return true;
}

}  // namespace stand_in

using namespace stand_in;  // NOLINT(google-build-using-namespace): this file is part of that namespace

STAND_IN void stand_in_limit_parameters(unsigned bytes) { most_parameters = bytes; }

STAND_IN CUresult cuModuleLoadData(CUmodule* result, const void* image) {
  COUNT();
  compiler::of_process().compile();
  const auto code = std::make_shared<module_code>(image);
  *result = reinterpret_cast<CUmodule>(code.get());
  const std::lock_guard lock(state);
  for (const auto& f : code->program->functions)
    if (f->is_kernel) kernels()[f.get()] = code;
  return CUDA_SUCCESS;
}

// In the stand-in, module variables are in host memory, which counts as mapped memory of device 0.
STAND_IN CUresult cuModuleGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
  COUNT();
  const auto* const code = reinterpret_cast<module_code*>(module);
  const auto& symbols = code->program->symbols;
  for (std::uint32_t n = 0; n < symbols.size(); ++n) {
    if (symbols[n].name != name || symbols[n].where == ptx::symbol::space::shared) continue;
    *address = code->image.address_of(n);
    *bytes = symbols[n].size;
    if (!is_device(*address, *bytes)) add_mapping(*address, *bytes, 0);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

STAND_IN CUresult cuFuncGetModule(CUmodule* result, CUfunction function) {
  COUNT();
  const std::lock_guard lock(state);
  const auto found = kernels().find(function);
  if (found == kernels().end()) return CUDA_ERROR_INVALID_HANDLE;
  return *result = reinterpret_cast<CUmodule>(found->second.get()), CUDA_SUCCESS;
}

STAND_IN CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return COUNT(), CUDA_SUCCESS; }

STAND_IN CUresult cuModuleGetFunction(CUfunction* result, CUmodule module, const char* name) {
  COUNT();
  const auto* const kernel = reinterpret_cast<module_code*>(module)->program->find_kernel(name);
  *result = reinterpret_cast<CUfunction>(const_cast<ptx::function*>(kernel));
  return kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

STAND_IN CUresult cuModuleUnload(CUmodule module) {
  COUNT();
  const std::lock_guard lock(state);
  std::erase_if(kernels(), [&](const auto& k) { return reinterpret_cast<CUmodule>(k.second.get()) == module; });
  return CUDA_SUCCESS;
}
