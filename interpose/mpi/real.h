#pragma once

/// The MPI library's own functions, which the wrappers call. All sources of interpose/mpi except those of libhpe-mpi.so
/// (choice/) are compiled once for each ABI of MPI, with the mpi.h of this ABI. The folder libraries/ contains the code
/// that differs between ABIs.

#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
// The wrappers must have default visibility. MPICH's mpi.h declares its functions without visibility attributes, so
// they are declared here with default visibility.
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include <atomic>

namespace hpe::interpose::mpi {

/// Returns the address of a function or variable of MPI in the libraries after libhpe-mpi.so in the search order. If no
/// library defines it, prints an error and aborts the process.
[[nodiscard]] void* find_in_library(const char* name);
/// Whether the MPI library defines a function or variable with this name. The MPI library may be older than the mpi.h
/// with which the wrappers were compiled.
[[nodiscard]] bool library_has(const char* name);

template <class Function>
class real_function {
 public:
  constexpr explicit real_function(const char* name) noexcept : name_(name) {}

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(find_in_library(name_));
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

/// The predefined handles of MPI. hpe does not use the macros of mpi.h for these handles, because Open MPI's macros
/// refer to variables of the Open MPI library, with which hpe is not linked.
struct handles {
  MPI_Comm comm_world;
  MPI_Comm comm_self;
  MPI_Comm comm_null;
  MPI_Datatype byte;
  MPI_Datatype integer;  ///< int
  MPI_Datatype packed;
  MPI_Datatype datatype_null;
  MPI_Errhandler errors_return;
  MPI_File file_null;
  MPI_Info info_null;
  MPI_Message message_null;
  MPI_Op bit_or;
  MPI_Op max;
  MPI_Op min;
  MPI_Op product;
  MPI_Op sum;
  MPI_Request request_null;
  MPI_Win win_null;

  [[nodiscard]] static const handles& get();
};

/// Whether a handle is the null handle of its type or was never set.
template <class Handle>
[[nodiscard]] bool is_null(Handle handle, Handle null) noexcept {
  return handle == Handle{} || handle == null;
}

}  // namespace hpe::interpose::mpi

/// The MPI library's own function PMPI_<name>, for hpe's own calls.
#define HPE_REAL(name)                                                                                     \
  ([]() -> auto& {                                                                                         \
    static constinit ::hpe::interpose::mpi::real_function<decltype(::MPI_##name)> function("PMPI_" #name); \
    return function;                                                                                       \
  }())
