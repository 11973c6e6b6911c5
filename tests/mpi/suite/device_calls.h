#pragma once

/// Records to which MPI functions this process has passed device memory, and in which argument. For each function in
/// interpose/mpi/functions.txt, device_calls.py generates a definition in the test program, which records the call and
/// forwards it to libhpe-mpi.so. Calls that hpe itself makes are not recorded. After the last test, the process writes
/// a line `function argument` for each recorded pair to the file $HPE_TEST_MPI_CALLS.<rank>. If this variable is not
/// set, the process writes nothing.

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
  /// Like given(), for an argument that points to a variable in which the function has stored an address.
  void given_back(const char* argument, const void* place) const;

 private:
  const char* function_;
  bool nested_;
};

/// Returns the definition of an MPI function in the libraries after the program in the search order.
[[nodiscard]] void* behind(const char* name);

}  // namespace device_calls
