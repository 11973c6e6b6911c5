#pragma once

/// Common parts of the tests of messages from device memory that CUDA allocated (messages.cpp). The tests run in two
/// ranks, with the stand-in for the CUDA driver.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/interpose/gpu/stand_in/stand_in.h"
#include "tests/mpi/adopted/frame.h"

namespace adopted {

using bytes = std::vector<std::uint8_t>;

template <class Function>
Function* of_stand_in(const char* name) {
  static const auto behind = reinterpret_cast<void* (*)(const char*)>(::dlsym(RTLD_DEFAULT, "hpe_cuda_driver_entry"));
  return reinterpret_cast<Function*>(behind(name));
}
inline unsigned calls_of(const char* entry) { return of_stand_in<stand_in::count_function>("stand_in_count")(entry); }

// Returns random bytes, which are the same on both ranks for the same seed.
inline bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937_64 numbers(seed);
  bytes result(count);
  for (auto& b : result) b = static_cast<std::uint8_t>(numbers());
  return result;
}
inline unsigned seed_of(int of_rank, std::size_t count) {
  static const unsigned first = [] {
    const char* const told = std::getenv("HPE_TEST_SEED");
    unsigned s = told != nullptr ? static_cast<unsigned>(std::strtoul(told, nullptr, 10)) : std::random_device{}();
    MPI_Bcast(&s, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("seed %u\n", s);
    return s;
  }();
  return first + static_cast<unsigned>(count) * 2 + static_cast<unsigned>(of_rank);
}

class device_bytes {
 public:
  /// Whether new objects allocate memory from the device's pool. The driver cannot share this memory with other
  /// processes.
  inline static bool of_pool = false;

  explicit device_bytes(std::size_t count) : count_(count), of_pool_(of_pool) {
    EXPECT((of_pool ? cuMemAllocAsync(&address_, count + 1, nullptr) : cuMemAlloc(&address_, count + 1)) ==
           CUDA_SUCCESS);
  }
  explicit device_bytes(const bytes& content) : device_bytes(content.size()) { put(content); }
  ~device_bytes() { EXPECT((of_pool_ ? cuMemFreeAsync(address_, nullptr) : cuMemFree(address_)) == CUDA_SUCCESS); }
  device_bytes(const device_bytes&) = delete;
  device_bytes& operator=(const device_bytes&) = delete;
  void put(const bytes& content) const {
    EXPECT(cuMemcpyHtoD(address_, content.data(), content.size()) == CUDA_SUCCESS);
  }
  [[nodiscard]] bytes get() const {
    bytes result(count_);
    EXPECT(cuMemcpyDtoH(result.data(), address_, count_) == CUDA_SUCCESS);
    return result;
  }
  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(address_); }
  [[nodiscard]] CUdeviceptr address() const { return address_; }

 private:
  std::size_t count_;
  bool of_pool_;
  CUdeviceptr address_ = 0;
};

// Whether messages are copied from device to device. With HPE_MPI_DIRECT=0, messages pass through host memory.
inline bool direct() { return std::getenv("HPE_MPI_DIRECT") == nullptr; }

inline bool one_device() { return std::getenv("HPE_TEST_ONE_DEVICE") != nullptr; }
inline int device() { return one_device() ? 0 : rank; }

inline constexpr int tag = 5;
inline const MPI_Comm world = MPI_COMM_WORLD;
inline int other() { return 1 - rank; }

/// The tests, which are defined in the other files of this folder.
void advertised_receives();
void unfilled_receives();
void messages_of_all_types();
void sides_that_copy();
void messages_wait_for_users();
void collective_calls();

}  // namespace adopted
