// Newer functions of MPI (for large counts, and persistent collectives) do not exist in all MPI libraries. Programs
// such as mpi4py check by dlsym, or by a weak symbol in a module that they load, whether the MPI library defines such a
// function. They must not find the function in libhpe-mpi.so if the MPI library lacks it. So when the program starts,
// this code changes the symbols of these functions in libhpe-mpi.so to indirect functions (STT_GNU_IFUNC). The dynamic
// linker then calls code of libhpe-mpi.so at each look-up of such a symbol. If the MPI library lacks the function, this
// code returns the address 0, which is also the address of an undefined weak symbol.
//
// In the file libhpe-mpi.so, the symbols are ordinary functions, because MPI libraries refer to these functions, too,
// and may be linked with -z now. The dynamic linker relocates the MPI library before libhpe-mpi.so, and cannot call an
// indirect function of a library that it has not relocated. Weak references in the program, and in libraries that are
// loaded with the program, have been resolved before this code runs, so this code corrects them.

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "interpose/loaded_symbols.h"

extern "C" {
struct newer_function {
  std::uint64_t index;
  const void* present;  // the code of the indirect function, which calls hpe_mpi_present with `index`
};
extern const newer_function hpe_mpi_newer[] __attribute__((visibility("hidden")));
extern const newer_function hpe_mpi_newer_end[] __attribute__((visibility("hidden")));
void* hpe_mpi_present(std::uint64_t index, void* entry) __attribute__((visibility("hidden")));
}

namespace hpe::interpose::mpi {

namespace {

constexpr const char* profiling_names[] = {
#define HPE_MPI_FUNCTION(name)
#define HPE_MPI_NEWER_FUNCTION(name) "PMPI_" #name,
#include <mpi_functions.def>
#undef HPE_MPI_NEWER_FUNCTION
#undef HPE_MPI_FUNCTION
};

const char* name_of(std::uint64_t index) { return profiling_names[index] + 1; }

// Calls visit(library, info) for each library of this process until one call returns true. Returns true if a call has
// returned true. dl_iterate_phdr holds a lock of the dynamic linker, so no dlclose can unload a library meanwhile.
template <class Visit>
bool any_library(Visit visit) {
  const auto each = [](dl_phdr_info* info, std::size_t, void* context) {
    link_map library{};
    library.l_addr = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
        library.l_ld = reinterpret_cast<ElfW(Dyn)*>(info->dlpi_addr +
                                                    info->dlpi_phdr[i].p_vaddr);  // NOLINT(performance-no-int-to-ptr)
    return static_cast<int>(library.l_ld != nullptr && (*static_cast<Visit*>(context))(library, *info));
  };
  return ::dl_iterate_phdr(each, &visit) != 0;
}

void make_indirect(const link_map& library) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const newer_function* f = hpe_mpi_newer; f != hpe_mpi_newer_end; ++f) {
    auto* const symbol = const_cast<ElfW(Sym)*>(symbol_of(library, name_of(f->index)));
    if (symbol == nullptr) continue;
    const auto first = reinterpret_cast<std::uintptr_t>(symbol) / page * page;
    void* const pages = reinterpret_cast<void*>(first);  // NOLINT(performance-no-int-to-ptr)
    const std::size_t bytes = reinterpret_cast<std::uintptr_t>(symbol + 1) - first;
    if (::mprotect(pages, bytes, PROT_READ | PROT_WRITE) != 0) return;
    symbol->st_value = reinterpret_cast<std::uintptr_t>(f->present) - library.l_addr;
    symbol->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
    ::mprotect(pages, bytes, PROT_READ);
  }
}

bool has(std::uint64_t index) {
  return any_library([index](const link_map& library, const dl_phdr_info&) {
    return library.l_ld != _DYNAMIC && symbol_of(library, profiling_names[index]) != nullptr;
  });
}

bool is_lacking(const char* name) {
  for (const newer_function* f = hpe_mpi_newer; f != hpe_mpi_newer_end; ++f)
    if (std::strcmp(name, name_of(f->index)) == 0) return !has(f->index);
  return false;
}

// Returns the number in the dynamic section's entry with this tag; 0 if the section has no such entry.
std::size_t number_in(const link_map& library, ElfW(Sxword) tag) {
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == tag) return entry->d_un.d_val;
  return 0;
}

// Sets the word at `place` to 0. If the dynamic linker has made the word's page read-only after relocation
// (PT_GNU_RELRO), makes the page writable for the write. Does nothing if this fails.
void set_to_zero(std::uintptr_t place, const dl_phdr_info& info) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  bool read_only = false;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr;
    read_only = read_only || (part.p_type == PT_GNU_RELRO && place >= begin && place - begin < part.p_memsz);
  }
  void* const start = reinterpret_cast<void*>(place / page * page);  // NOLINT(performance-no-int-to-ptr)
  if (read_only && ::mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
  *reinterpret_cast<std::uintptr_t*>(place) = 0;  // NOLINT(performance-no-int-to-ptr)
  if (read_only) ::mprotect(start, page, PROT_READ);
}

// Sets weak references in `library` to newer functions to 0 if the MPI library lacks the function. Without hpe, these
// references would be 0, too.
void correct_weak_references(const link_map& library, const dl_phdr_info& info) {
  const auto* symbols = dynamic_table<ElfW(Sym)>(library, DT_SYMTAB);
  const auto* names = dynamic_table<char>(library, DT_STRTAB);
  if (symbols == nullptr || names == nullptr) return;
  // Relocations for calls (DT_JMPREL) need no correction, because a program checks the address of a weak function
  // before it calls the function.
  const auto* const first = dynamic_table<ElfW(Rela)>(library, DT_RELA);
  const std::size_t count = first != nullptr ? number_in(library, DT_RELASZ) / sizeof(ElfW(Rela)) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(first[i].r_info)];
    if (symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_WEAK && is_lacking(names + symbol.st_name))
      set_to_zero(info.dlpi_addr + first[i].r_offset, info);
  }
}

__attribute__((constructor)) void let_the_linker_ask() {
  any_library([](const link_map& library, const dl_phdr_info& info) {
    if (library.l_ld == _DYNAMIC)
      make_indirect(library);
    else
      correct_weak_references(library, info);
    return false;
  });
}

}  // namespace

}  // namespace hpe::interpose::mpi

// Returns `entry`, the address of newer function `index` in this library, if another library defines the function's
// PMPI name; otherwise nullptr.
void* hpe_mpi_present(std::uint64_t index, void* entry) { return hpe::interpose::mpi::has(index) ? entry : nullptr; }
