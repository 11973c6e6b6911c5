#pragma once

/// Records which of MPI's functions this process has called with device memory, and as which argument. The functions of
/// interpose/mpi/functions.txt have definitions in the test program (made by device_calls.py) that record the call and
/// forward it to libhpe-mpi.so. Calls inside of functions of hpe are not recorded. After the last test a line `function
/// argument` for each is written to the file HPE_TEST_MPI_CALLS.<rank>; without that variable nothing.

namespace device_calls {

/// Records arguments while it lives.
class call {
 public:
  explicit call(const char* function);
  ~call();
  call(const call&) = delete;
  call& operator=(const call&) = delete;

  /// The argument is an address.
  void given(const char* argument, const void* address) const;
  /// The function has stored an address where the argument points.
  void given_back(const char* argument, const void* place) const;

 private:
  const char* function_;
  bool nested_;
};

/// The next definition after that of the program.
[[nodiscard]] void* behind(const char* name);

}  // namespace device_calls
