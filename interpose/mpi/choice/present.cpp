// Newer functions of MPI (large counts, persistent collectives), which some MPI libraries lack. A program such as
// mpi4py takes the name of a function as a sign that its MPI library has it: by dlsym, or by a weak symbol of a module
// that it loads. So when the program has started, the symbols of these functions in libhpe-mpi.so become indirect
// functions: the dynamic linker then calls code of this library for each look-up, and a function that the MPI library
// lacks gets the address 0, as a symbol that nothing defines.
//
// They are ordinary functions until then. MPI libraries that are linked with -z now refer to these functions
// themselves, and the dynamic linker relocates them before libhpe-mpi.so; it cannot call an indirect function of a
// library that is not relocated yet. Such references need no question: a library is linked to a function that its MPI
// library has.

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "interpose/loaded_symbols.h"

extern "C" {
struct newer_function {
  std::uint64_t index;
  const void* present;  // the code that calls hpe_mpi_present with this index
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

// Calls visit(library) for the libraries of this process until one call returns true; returns whether one did. It holds
// the dynamic linker's lock against dlclose. A thread that resolves a symbol at the first call of a function does not
// hold that lock.
template <class Visit>
bool any_library(Visit visit) {
  const auto each = [](dl_phdr_info* info, std::size_t, void* context) {
    link_map library{};
    library.l_addr = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
        library.l_ld = reinterpret_cast<ElfW(Dyn)*>(info->dlpi_addr +
                                                    info->dlpi_phdr[i].p_vaddr);  // NOLINT(performance-no-int-to-ptr)
    return static_cast<int>(library.l_ld != nullptr && (*static_cast<Visit*>(context))(library));
  };
  return ::dl_iterate_phdr(each, &visit) != 0;
}

void make_indirect(const link_map& library) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const newer_function* f = hpe_mpi_newer; f != hpe_mpi_newer_end; ++f) {
    auto* const symbol = const_cast<ElfW(Sym)*>(symbol_of(library, profiling_names[f->index] + 1));
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

__attribute__((constructor)) void let_the_linker_ask() {
  any_library([](const link_map& library) {
    if (library.l_ld != _DYNAMIC) return false;
    make_indirect(library);
    return true;
  });
}

}  // namespace

}  // namespace hpe::interpose::mpi

// `entry` if a library other than this one defines the PMPI name of newer function `index`, else nullptr.
void* hpe_mpi_present(std::uint64_t index, void* entry) {
  using namespace hpe::interpose;
  const auto defines = [index](const link_map& library) {
    return library.l_ld != _DYNAMIC && symbol_of(library, mpi::profiling_names[index]) != nullptr;
  };
  return mpi::any_library(defines) ? entry : nullptr;
}
