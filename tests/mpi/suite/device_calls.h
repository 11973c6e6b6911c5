#pragma once

/// Records which of MPI's functions this process has called with device memory, and in which argument. The functions of
/// interpose/mpi/functions.txt have definitions in the test program (made by device_calls.py) that record the call and
/// forward it to libhpe-mpi.so. Calls that hpe's functions make are not recorded. After the last test, a line `function
/// argument` for each recorded pair is written to the file HPE_TEST_MPI_CALLS.<rank>; if that variable is not set,
/// nothing is written.

namespace device_calls {

/// Records the arguments of one call of an MPI function.
class call {
 public:
  explicit call(const char* function);
  ~call();
  call(const call&) = delete;
  call& operator=(const call&) = delete;

  /// Records an argument that is an address.
  void given(const char* argument, const void* address) const;
  /// Like given(), for an argument that points to a place where the function has stored an address.
  void given_back(const char* argument, const void* place) const;

 private:
  const char* function_;
  bool nested_;
};

/// Returns the next definition of a function after that in the program.
[[nodiscard]] void* behind(const char* name);

}  // namespace device_calls
