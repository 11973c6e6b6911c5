#pragma once

/// The MPI library behind the wrappers. The library is looked up at its first use, so that libhpe-mpi.so can be
/// preloaded into any program, even one without MPI, or one that loads MPI later (as interpreters do).

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <atomic>

namespace hpe::interpose::mpi {

/// The definition of a function in the libraries behind this one. Prints an error and aborts if there is none.
[[nodiscard]] void* find_function(const char* name);
/// The address of one of the MPI library's variables.
[[nodiscard]] void* find_variable(const char* name);

/// Whether the MPI library of this process has the handles and constants for which these wrappers were compiled. If
/// not, the wrappers pass all calls on unchanged: the registers of a call also keep the bits of handles of another
/// size. The first call logs the name of an unknown library. Must not be called before the program has an MPI library.
[[nodiscard]] bool library_is_known() noexcept;

template <class Function>
class real_function {
 public:
  constexpr explicit real_function(const char* name) noexcept : name_(name) {}

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(find_function(name_));
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

/// Handles that mpi.h defines as addresses of variables.
struct handles {
  MPI_Comm comm_world;
  MPI_Comm comm_null;
  MPI_Datatype byte;
  MPI_Datatype datatype_null;
  MPI_File file_null;
  MPI_Request request_empty;
  MPI_Request request_null;
  MPI_Win win_null;

  [[nodiscard]] static const handles& get();
};

}  // namespace hpe::interpose::mpi

/// The MPI library's own function MPI_<name>, for calls by hpe.
#define HPE_REAL(name)                                                                                     \
  ([]() -> auto& {                                                                                         \
    static constinit ::hpe::interpose::mpi::real_function<decltype(::MPI_##name)> function("PMPI_" #name); \
    return function;                                                                                       \
  }())

/// Fortran bindings and tools call the PMPI_ names: with this alias, their calls reach the wrapper too.
#define HPE_ALSO_AS_PMPI(name, parameters) int PMPI_##name parameters __attribute__((alias("MPI_" #name)));
