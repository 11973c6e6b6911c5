#pragma once

/// The MPI library behind the wrappers. All sources of this folder but those of libhpe-mpi.so (choice/) are compiled
/// once for each ABI of MPI, with that ABI's mpi.h; libraries/ has what differs.

#define OMPI_SKIP_MPICXX
#define MPICH_SKIP_MPICXX
// MPICH's mpi.h does not say that its functions, which the wrappers define, are visible outside of a library.
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include <atomic>

namespace hpe::interpose::mpi {

/// The definition of a function or variable of MPI in the libraries behind libhpe-mpi.so. Prints an error and aborts if
/// there is none.
[[nodiscard]] void* find_in_library(const char* name);
/// Whether the MPI library has it: a library may be older than the mpi.h of these wrappers.
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

/// Predefined handles. The macros of mpi.h are not used, because those of Open MPI name variables of its library.
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

/// Whether a handle is the null handle of its type, or was never set.
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
