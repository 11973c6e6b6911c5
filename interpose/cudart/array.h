#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>

#include "interpose/cudart/box.h"
#include "interpose/cudart/handle_table.h"
#include "interpose/cudart/memory_table.h"

namespace hpe::cudart {

/// A CUDA array: elements of one to four channels in rows. Soft devices lay them out plainly, one row behind the other.
struct device_array {
  cudaChannelFormatDesc format{};
  cudaExtent extent{};  ///< as given: in elements; a height or depth of 0 for fewer dimensions
  unsigned flags = 0;
  int device = 0;
  void* base = nullptr;
  std::size_t pitch = 0;  ///< bytes from row to row

  std::size_t element_bytes() const;
  std::size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  std::size_t planes() const { return extent.depth == 0 ? 1 : extent.depth; }

  /// Where elements lie. Throws cudaErrorInvalidValue for a box that leaves the array; width is in bytes.
  box at(const cudaPos& position, const box_extent& size) const;
};

/// Bytes of an element. Throws cudaErrorInvalidChannelDescriptor for a format that arrays and textures cannot have.
std::size_t element_bytes_of(const cudaChannelFormatDesc& format);
unsigned channels_of(const cudaChannelFormatDesc& format);

/// Members throw failure and hpe::error.
class array_table : public handle_table<cudaArray_const_t, const device_array, cudaErrorInvalidResourceHandle> {
 public:
  explicit array_table(memory_table& memory) : memory_(memory) {}

  cudaArray_t create(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags, int device);
  void free(cudaArray_t handle);
  void reset(int device);  ///< forgets a device's, whose memory is gone

 private:
  memory_table& memory_;
};

}  // namespace hpe::cudart
