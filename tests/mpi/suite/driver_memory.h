#pragma once

/// Device memory that is allocated from the CUDA driver. Tests use this memory instead of hpe memory if
/// HPE_TEST_MPI_MEMORY is driver (cudaMalloc) or pool (cudaMallocAsync). The tests must then run under `hpe run`, with
/// the driver of a GPU or the stand-in for the CUDA driver (tests/interpose/gpu).

#include <cstddef>
#include <utility>
#include <vector>

class driver_bytes {
 public:
  /// Whether the tests should use this memory.
  [[nodiscard]] static bool wanted();

  explicit driver_bytes(const std::vector<std::byte>& content);
  ~driver_bytes();
  driver_bytes(driver_bytes&& other) noexcept
      : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
  driver_bytes& operator=(driver_bytes&&) = delete;

  [[nodiscard]] std::byte* data() const;
  [[nodiscard]] std::vector<std::byte> content() const;

 private:
  unsigned long long address_ = 0;
  std::size_t bytes_;
};
