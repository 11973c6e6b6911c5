#include "interpose/mpi/real.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/base/log.h"

namespace hpe::interpose::mpi {

namespace {

// RTLD_NEXT and RTLD_DEFAULT may miss a library that was loaded by dlopen. These are the names of Open MPI, of the
// libraries with the ABI of MPICH, and of MPICH in Debian.
void* loaded_later(const char* name) {
  for (const char* const file : {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"})
    if (void* const library = ::dlopen(file, RTLD_LAZY | RTLD_NOLOAD))
      if (void* const found = ::dlsym(library, name)) return found;
  return nullptr;
}

void* look_up(const char* name) {
  void* const found = ::dlsym(RTLD_DEFAULT, name);
  return found != nullptr ? found : loaded_later(name);
}

[[noreturn]] void not_found(const char* name) {
  std::fprintf(stderr, "hpe: %s was not found; libhpe-mpi.so must come before the MPI library\n", name);
  std::abort();
}

template <class Handle>
Handle handle(const char* name) {
  return static_cast<Handle>(find_variable(name));
}

}  // namespace

void* find_function(const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) found = loaded_later(name);
  if (found == nullptr) not_found(name);
  return found;
}

void* find_variable(const char* name) {
  // The program may have a copy of the variable (a copy relocation), which the MPI library then uses too.
  void* const found = look_up(name);
  if (found == nullptr) not_found(name);
  return found;
}

bool library_is_known() noexcept {
  static const bool known = [] {
    if (look_up("ompi_mpi_comm_world") != nullptr) return true;
    Dl_info about{};
    const bool found = ::dladdr(find_function("PMPI_Init"), &about) != 0 && about.dli_fname != nullptr;
    log(log_level::warn,
        "{} is none of the MPI libraries that hpe knows (Open MPI 4 and 5): its calls pass through as they are, and "
        "device memory in them is touched by MPI itself",
        found ? about.dli_fname : "the MPI library of this program");
    return false;
  }();
  return known;
}

const handles& handles::get() {
  static const handles all{
      handle<MPI_Comm>("ompi_mpi_comm_world"),  handle<MPI_Comm>("ompi_mpi_comm_null"),
      handle<MPI_Datatype>("ompi_mpi_byte"),    handle<MPI_Datatype>("ompi_mpi_datatype_null"),
      handle<MPI_File>("ompi_mpi_file_null"),   handle<MPI_Request>("ompi_request_empty"),
      handle<MPI_Request>("ompi_request_null"), handle<MPI_Win>("ompi_mpi_win_null"),
  };
  return all;
}

}  // namespace hpe::interpose::mpi
