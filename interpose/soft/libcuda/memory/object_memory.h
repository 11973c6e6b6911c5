#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hpe::libcuda {

/// The memory of an object of cuMemCreate: bytes of a memory file. The bytes exist as long as an object of this class,
/// a mapping, or a file descriptor of any process refers to them. An object of this class that this process has created
/// also occupies as many bytes of its device's memory; an imported one does not, because the memory occupies the device
/// of the process that created it. The functions throw `failure` and hpe::error.
class object_memory {
 public:
  /// Creates memory. If the properties request file descriptors, the memory is a file of its own, which also contains
  /// the properties; otherwise, it is a part of a file of this process. Throws cudaErrorMemoryAllocation if the device
  /// has too little memory left, and cudaErrorOperatingSystem.
  object_memory(std::size_t bytes, const CUmemAllocationProp& properties);

  /// Opens memory by a descriptor from descriptor(). The caller may close the descriptor after the call. Throws
  /// cudaErrorInvalidValue for any other descriptor.
  explicit object_memory(int descriptor);

  ~object_memory();
  object_memory(const object_memory&) = delete;
  object_memory& operator=(const object_memory&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const CUmemAllocationProp& properties() const noexcept { return properties_; }

  /// Returns a new descriptor, which the caller owns and which is closed on exec. Throws cudaErrorInvalidValue if the
  /// properties do not request descriptors, and cudaErrorOperatingSystem.
  [[nodiscard]] int descriptor() const;

  /// Maps the first `bytes` bytes to addresses of hpeReserve.
  void map(CUdeviceptr address, std::size_t bytes) const;

 private:
  class file;

  std::size_t size_ = 0;
  CUmemAllocationProp properties_{};
  std::unique_ptr<file> file_;
  struct freed {
    void operator()(void* allocation) const noexcept;
  };
  std::unique_ptr<void, freed>
      occupied_;  // an allocation that no code touches, so that the device has less free memory
};

}  // namespace hpe::libcuda
