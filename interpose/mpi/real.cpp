#include "interpose/mpi/real.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace hpe::interpose::mpi {

namespace {

// A library that was loaded by dlopen is not among the next ones.
void* loaded_later(const char* name) {
  void* const library = ::dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? ::dlsym(library, name) : nullptr;
}

[[noreturn]] void not_found(const char* name) {
  std::fprintf(stderr, "hpe: %s was not found; libhpe-mpi.so must come before the MPI library, and knows Open MPI 4\n",
               name);
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
  // The program may have a copy, which then is the one.
  void* found = ::dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) found = loaded_later(name);
  if (found == nullptr) not_found(name);
  return found;
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
