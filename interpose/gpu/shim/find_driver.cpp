// dlopen("libcuda.so.1") would find the shim, which has this name. So this file searches the folders that the dynamic
// linker would search, and ignores the shim. It reads the format of the linker's cache in glibc 2.2 and later
// (sysdeps/generic/dl-cache.h): a header, entries (flags, name and path), and strings.
#include "interpose/gpu/shim/find_driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interpose/gpu/shim/next_symbol.h"

namespace hpe::cuda_shim {

namespace {

constexpr const char* driver_name = "libcuda.so.1";

// Whether a file is a library for this processor; the dynamic linker skips other files.
bool is_library(const char* file) {
  const int opened = ::open(file, O_RDONLY | O_CLOEXEC);
  if (opened < 0) return false;
  ElfW(Ehdr) head{};
  const bool read = ::pread(opened, &head, sizeof head, 0) == static_cast<ssize_t>(sizeof head);
  ::close(opened);
  return read && std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
         head.e_machine == EM_X86_64 && head.e_type == ET_DYN;
}

// Whether a file is hpe's driver library for soft devices (interpose/soft/libcuda). That library is in the folder
// cudart, next to the shim's folder.
bool is_for_soft_devices(const char* file) {
  path_buffer soft{};
  const char* const own = own_file();
  const char* const name = std::strrchr(own, '/');
  if (name == nullptr) return false;
  const int length =
      std::snprintf(soft.text, sizeof soft.text, "%.*s/../cudart/%s", static_cast<int>(name - own), own, driver_name);
  return length > 0 && static_cast<std::size_t>(length) < sizeof soft.text && same_file(file, soft.text);
}

bool is_another_library(const char* file) {
  return is_library(file) && !same_file(file, own_file()) && !is_for_soft_devices(file);
}

// Searches the folders that the linker would search for a dependency of the program, without the linker's cache.
bool find_in_folders(const char* name, path_buffer& result) {
  void* const program = next_open(nullptr, RTLD_LAZY | RTLD_NOLOAD);
  Dl_serinfo size{};
  if (program == nullptr || ::dlinfo(program, RTLD_DI_SERINFOSIZE, &size) != 0) return false;
  auto* const folders = static_cast<Dl_serinfo*>(std::malloc(size.dls_size));
  if (folders == nullptr) return false;
  bool found = false;
  if (::dlinfo(program, RTLD_DI_SERINFOSIZE, folders) == 0 && ::dlinfo(program, RTLD_DI_SERINFO, folders) == 0) {
    const Dl_serpath* const entries = folders->dls_serpath;
    for (unsigned i = 0; i < folders->dls_cnt && !found; ++i) {
      const int length = std::snprintf(result.text, sizeof result.text, "%s/%s", entries[i].dls_name, name);
      found = length > 0 && static_cast<std::size_t>(length) < sizeof result.text && is_another_library(result.text);
    }
  }
  std::free(folders);
  return found;
}

struct cache_head {
  char magic[20];
  std::uint32_t entries;
  std::uint32_t string_bytes;
  std::uint32_t unused[5];
};

struct cache_entry {
  std::int32_t flags;
  std::uint32_t name;
  std::uint32_t file;
  std::uint32_t os_version;
  std::uint64_t hwcap;
};

constexpr std::int32_t x86_64_library = 0x0303;  // the flags of a 64-bit ELF library for the C library libc.so.6
constexpr char cache_magic[] = "glibc-ld.so.cache1.1";

bool find_in_text(const char* text, std::size_t bytes, const char* name, path_buffer& result) {
  if (bytes < sizeof(cache_head)) return false;
  const auto* const head = reinterpret_cast<const cache_head*>(text);
  if (std::memcmp(head->magic, cache_magic, sizeof head->magic) != 0) return false;
  const auto* const entries = reinterpret_cast<const cache_entry*>(text + sizeof(cache_head));
  if (head->entries > (bytes - sizeof(cache_head)) / sizeof(cache_entry)) return false;
  const auto string = [&](std::uint32_t offset) {
    return offset < bytes && std::memchr(text + offset, '\0', bytes - offset) != nullptr ? text + offset : "";
  };
  for (std::uint32_t i = 0; i < head->entries; ++i) {
    const char* const file = string(entries[i].file);
    if (entries[i].flags != x86_64_library || std::strcmp(string(entries[i].name), name) != 0) continue;
    if (std::strlen(file) >= sizeof result.text || !is_another_library(file)) continue;
    std::strcpy(result.text, file);  // NOLINT: measured above
    return true;
  }
  return false;
}

bool find_in_cache(const char* name, path_buffer& result) {
  const int file = ::open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat about {};
  bool found = false;
  if (::fstat(file, &about) == 0 && about.st_size > 0) {
    const auto bytes = static_cast<std::size_t>(about.st_size);
    void* const text = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (text != MAP_FAILED) {
      found = find_in_text(static_cast<const char*>(text), bytes, name, result);
      ::munmap(text, bytes);
    }
  }
  ::close(file);
  return found;
}

}  // namespace

bool same_file(const char* one, const char* other) {
  struct stat a {};
  struct stat b {};
  return ::stat(one, &a) == 0 && ::stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

const char* own_file() {
  Dl_info about{};
  return ::dladdr(reinterpret_cast<const void*>(&own_file), &about) != 0 ? about.dli_fname : "";
}

bool find_library(const char* name, path_buffer& result) {
  return find_in_folders(name, result) || find_in_cache(name, result);
}

bool find_driver(const char* wanted, path_buffer& result) {
  if (*wanted == '\0') return find_library(driver_name, result);
  if (std::strlen(wanted) >= sizeof result.text || !is_another_library(wanted)) return false;
  std::strcpy(result.text, wanted);  // NOLINT: measured above
  return true;
}

}  // namespace hpe::cuda_shim
