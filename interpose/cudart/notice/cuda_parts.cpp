// nvcc links every program with a section .nvFatBinSegment, even one without kernels; it holds the fat binaries to
// register. The function that registers them, __cudaRegisterFatBinary, is an undefined dynamic symbol if the runtime is
// a shared library. If the runtime is linked statically, it is no dynamic symbol at all.
//
// PTX is in .nv_fatbin, or in __nv_relfatbin for objects that were linked on the device side (-rdc=true): containers
// one after the other, at multiples of eight bytes.
//
// The file is mapped. It may be damaged or truncated, so every offset in it is checked before use.

#include "interpose/cudart/notice/cuda_parts.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/ptx/fat_binary.h"

namespace hpe::cudart {

namespace {

using bytes = std::span<const char>;

class mapped_file {
 public:
  explicit mapped_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat about {};
    if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
      void* const address = ::mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (address != MAP_FAILED)
        content_ = {static_cast<const char*>(address), static_cast<std::size_t>(about.st_size)};
    }
    ::close(file);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file() {
    if (!content_.empty()) ::munmap(const_cast<char*>(content_.data()), content_.size());
  }

  [[nodiscard]] bytes content() const { return content_; }

 private:
  bytes content_;
};

/// A part of the file; empty if the file does not contain all of it.
bytes part(bytes all, std::uint64_t offset, std::uint64_t size) {
  if (offset > all.size() || size > all.size() - offset) return {};
  return all.subspan(offset, size);
}

/// An object of type T, copied because the file need not align it; nothing if the file does not contain all of it.
template <class T>
std::optional<T> read(bytes all, std::uint64_t offset) {
  const bytes from = part(all, offset, sizeof(T));
  if (from.empty()) return std::nullopt;
  T value{};
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

std::string_view name_in(bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* const first = table.data() + offset;
  return {first, ::strnlen(first, table.size() - offset)};
}

class elf_file {
 public:
  /// content must outlive the object.
  explicit elf_file(bytes content) : content_(content) {
    const auto header = read<Elf64_Ehdr>(content, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_shentsize != sizeof(Elf64_Shdr))
      return;
    header_ = *header;
    names_ = bytes_of(section(header_.e_shstrndx));
  }

  [[nodiscard]] bytes named(std::string_view name) const {
    for (unsigned i = 0; i < header_.e_shnum; ++i)
      if (const Elf64_Shdr s = section(i); name_in(names_, s.sh_name) == name) return bytes_of(s);
    return {};
  }

  [[nodiscard]] bool imports(std::string_view name) const {
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      const Elf64_Shdr s = section(i);
      if (s.sh_type != SHT_DYNSYM) continue;
      const bytes symbols = bytes_of(s);
      const bytes strings = bytes_of(section(s.sh_link));
      for (std::uint64_t at = 0; const auto symbol = read<Elf64_Sym>(symbols, at); at += sizeof *symbol)
        if (symbol->st_shndx == SHN_UNDEF && name_in(strings, symbol->st_name) == name) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] Elf64_Shdr section(unsigned number) const {
    if (number >= header_.e_shnum || header_.e_shoff > content_.size()) return {};
    return read<Elf64_Shdr>(content_, header_.e_shoff + number * sizeof(Elf64_Shdr)).value_or(Elf64_Shdr{});
  }

  [[nodiscard]] bytes bytes_of(const Elf64_Shdr& s) const {
    if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL) return {};
    return part(content_, s.sh_offset, s.sh_size);
  }

  bytes content_;
  Elf64_Ehdr header_{};  // has no sections if the file is no ELF file
  bytes names_;
};

bool holds_ptx(bytes containers) {
  constexpr std::uint32_t magic = 0xba55ed50;
  constexpr std::uint64_t alignment = 8;
  for (std::uint64_t at = 0; at < containers.size();) {
    if (read<std::uint32_t>(containers, at) != magic) {  // a gap between two containers
      at += alignment;
      continue;
    }
    const bytes rest = containers.subspan(at);
    for (const ptx::fat_binary_entry& entry : ptx::read_fat_binary(rest.data(), rest.size()))
      if (entry.what == ptx::fat_binary_entry::kind::ptx) return true;
    const std::uint64_t size = *read<std::uint16_t>(rest, 6) + *read<std::uint64_t>(rest, 8);
    at += std::max(alignment, (size + alignment - 1) / alignment * alignment);
  }
  return false;
}

}  // namespace

std::optional<cuda_parts> read_cuda_parts(const std::string& path) {
  const mapped_file file(path);
  const elf_file elf(file.content());
  if (elf.named(".nvFatBinSegment").empty()) return std::nullopt;
  cuda_parts result;
  result.imports_runtime = elf.imports("__cudaRegisterFatBinary");
  try {
    result.has_ptx = holds_ptx(elf.named(".nv_fatbin")) || holds_ptx(elf.named("__nv_relfatbin"));
  } catch (const error&) {
    result.has_ptx = true;  // the runtime will report the error
  }
  return result;
}

}  // namespace hpe::cudart
