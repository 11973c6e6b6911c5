#pragma once

/// Which of MPI's functions have taken device memory from this process, and as which argument. The functions of
/// interpose/mpi/functions.txt have definitions in the test program (made by device_calls.py) that note this and call
/// libhpe-mpi.so's. What a function of hpe calls while it runs is not noted. Behind the last test a line `function
/// argument` for each is written to the file HPE_TEST_MPI_CALLS.<rank>; without that variable nothing.

namespace device_calls {

/// Notes arguments while it lives.
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

/// The next definition behind the program's.
[[nodiscard]] void* behind(const char* name);

}  // namespace device_calls
