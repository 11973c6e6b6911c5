// nvcc links every program with a section .nvFatBinSegment, even one without kernels; it holds the fat binaries to
// register. The function that registers them, __cudaRegisterFatBinary, is an undefined dynamic symbol if the runtime is
// a shared library. If the runtime is linked statically, it is no dynamic symbol at all.

#include "interpose/cudart/notice/cuda_parts.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ptx/files/device_code.h"

namespace hpe::cudart {

namespace {

bool holds_ptx(ptx::file_bytes section) {
  bool found = false;
  ptx::visit_fat_binaries(section, [&found](const std::vector<ptx::fat_binary_entry>& entries) {
    found = std::any_of(entries.begin(), entries.end(), [](const ptx::fat_binary_entry& entry) {
      return entry.what == ptx::fat_binary_entry::kind::ptx;
    });
    return !found;
  });
  return found;
}

}  // namespace

std::optional<cuda_parts> read_cuda_parts(const std::string& path) {
  const ptx::mapped_file file(path);
  const ptx::elf_file elf(file.content());
  if (elf.named(".nvFatBinSegment").empty()) return std::nullopt;
  if (elf.needs("libhpe.so.")) return std::nullopt;  // its kernels run where hpe has its devices
  cuda_parts result;
  result.imports_runtime = elf.imports("__cudaRegisterFatBinary");
  try {
    result.has_ptx =
        holds_ptx(elf.named(ptx::fat_binaries_section)) || holds_ptx(elf.named(ptx::linked_fat_binaries_section));
  } catch (const error&) {
    result.has_ptx = true;  // the runtime will report the error
  }
  return result;
}

}  // namespace hpe::cudart
