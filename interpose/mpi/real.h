#pragma once

/// The MPI library's own functions, which the wrappers call. All sources of this folder, except those of libhpe-mpi.so
/// itself (choice/), are compiled once for each ABI of MPI, with the mpi.h of that ABI. The folder libraries/ contains
/// the code that differs between ABIs.

#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
// MPICH's mpi.h does not declare its functions with default visibility. The wrappers define these functions and
// therefore need default visibility.
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include <atomic>

namespace hpe::interpose::mpi {

/// The definition of a function or variable of MPI in the libraries that follow libhpe-mpi.so in the search order. If
/// no library defines it, prints an error and aborts.
[[nodiscard]] void* find_in_library(const char* name);
/// Whether the MPI library defines a function or variable with this name; the library may be older than the mpi.h with
/// which these wrappers were compiled.
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

/// The predefined handles of MPI. hpe does not use mpi.h's macros for these handles, because Open MPI's macros name
/// variables of the Open MPI library.
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

/// The MPI library's own function MPI_<name>, for calls by hpe.
#define HPE_REAL(name)                                                                                     \
  ([]() -> auto& {                                                                                         \
    static constinit ::hpe::interpose::mpi::real_function<decltype(::MPI_##name)> function("PMPI_" #name); \
    return function;                                                                                       \
  }())
