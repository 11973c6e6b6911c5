// nvcc adds a section .nvFatBinSegment to every program, even to a program without kernels. The section contains
// wrappers that point to the program's fat binaries. The program passes the wrappers to __cudaRegisterFatBinary. If the
// CUDA runtime is a shared library, this function is an undefined dynamic symbol. If the runtime is linked statically,
// the constants of the program contain the names of the runtime's errors. A program that uses only the driver has
// neither if nvcc linked it with the shared runtime. With the static runtime, nvcc's linker adds a fat binary without
// functions and code that would register this fat binary, and so links the runtime.

#include "runtime/ptx/files/cuda_parts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/ptx/files/device_code.h"

namespace hpe::ptx {

namespace {

bool has_functions(const fat_binary_entry& e) {
  switch (e.what) {
    case fat_binary_entry::kind::ptx:
      return e.text.find(".entry") != std::string::npos || e.text.find(".func") != std::string::npos;
    case fat_binary_entry::kind::cubin: return !e.is_empty;
    default: return false;
  }
}

bool is_enough(const cuda_parts& parts, code_to_read what) {
  return what == code_to_read::up_to_ptx && !parts.ptx_architectures.empty() && parts.has_functions;
}

void read_code(file_bytes section, code_to_read what, cuda_parts& into) {
  visit_fat_binaries(section, [&](const std::vector<fat_binary_entry>& entries) {
    for (const fat_binary_entry& e : entries) {
      if (e.what == fat_binary_entry::kind::ptx) into.ptx_architectures.insert(e.architecture);
      if (e.what == fat_binary_entry::kind::cubin) into.machine_code_architectures.insert(e.architecture);
      into.has_functions |= has_functions(e);
    }
    return !is_enough(into, what);
  });
}

bool holds_names_of_errors(file_bytes constants) {
  constexpr std::string_view name = "cudaErrorCudartUnloading";
  return std::string_view(constants.data(), constants.size()).find(name) != std::string_view::npos;
}

template <std::size_t count>
bool has_name_of(const std::string& path, const std::array<std::string_view, count>& names) {
  const std::string file = std::filesystem::path(path).filename();
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return file.starts_with(name); });
}

}  // namespace

std::optional<cuda_parts> read_cuda_parts(const std::string& path, code_to_read what) {
  const mapped_file file(path);
  const elf_file elf(file.content());
  if (elf.named(".nvFatBinSegment").empty()) return std::nullopt;
  if (elf.needs("libhpe.so.")) return std::nullopt;  // libhpe.so runs the program's kernels on hpe's devices
  cuda_parts result;
  result.has_own_runtime = !elf.imports("__cudaRegisterFatBinary") && !elf.needs("libcudart.so") &&
                           holds_names_of_errors(elf.named(".rodata"));
  try {
    for (const char* const section : {fat_binaries_section, linked_fat_binaries_section})
      if (!is_enough(result, what)) read_code(elf.named(section), what, result);
    result.has_ptx = !result.ptx_architectures.empty();
  } catch (const error&) {
    result.has_ptx = result.has_functions = true;  // hpe reports the error when the program registers the code
  }
  return result;
}

std::vector<std::string> linked_runtimes(const std::string& path) {
  constexpr std::string_view beginning = "libcudart";
  const mapped_file file(path);
  const elf_file elf(file.content());
  if (!elf.needs(beginning)) return {};
  std::vector<std::string> names = elf.needed();
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(beginning); });
  return names;
}

bool is_compiler(const std::string& path) {
  constexpr std::array<std::string_view, 4> names{"libnvrtc", "libnvJitLink", "libnvvm", "libnvfatbin"};
  return has_name_of(path, names);
}

bool needs_gpu(const std::string& path) {
  constexpr std::array<std::string_view, 9> names{"libcublas",   "libcudnn", "libcufft", "libcurand", "libcusolver",
                                                  "libcusparse", "libnccl",  "libnpp",   "libnvjpeg"};
  return has_name_of(path, names);
}

}  // namespace hpe::ptx
