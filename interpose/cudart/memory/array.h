#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/cudart/device/handle_table.h"
#include "interpose/cudart/memory/box.h"
#include "interpose/cudart/memory/memory_table.h"

namespace hpe::cudart {

/// A CUDA array: elements of one to four channels in rows. Soft devices store arrays in plain row-major order; the
/// layers of a layered array are stored like the planes of a three-dimensional one.
struct device_array {
  cudaChannelFormatDesc format{};
  cudaExtent extent{};  ///< as the program gave it, in elements; height or depth is 0 if the array has fewer dimensions
  unsigned flags = 0;
  int device = 0;
  void* base = nullptr;
  std::size_t pitch = 0;  ///< bytes from row to row

  bool is_cube() const { return (flags & cudaArrayCubemap) != 0; }  ///< each face is a layer
  bool is_layered() const { return (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0; }
  std::size_t element_bytes() const;
  std::size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  std::size_t planes() const { return extent.depth == 0 ? 1 : extent.depth; }

  /// The box of `size` at `position`; size.width is in bytes. Throws cudaErrorInvalidValue if the box leaves the array.
  box at(const cudaPos& position, const box_extent& size) const;
};

/// Bytes of an element. Throws cudaErrorInvalidChannelDescriptor for a format that neither arrays nor textures allow.
std::size_t element_bytes_of(const cudaChannelFormatDesc& format);
unsigned channels_of(const cudaChannelFormatDesc& format);

/// Members throw failure and hpe::error.
class array_table : public handle_table<cudaArray_const_t, const device_array, cudaErrorInvalidResourceHandle> {
 public:
  explicit array_table(memory_table& memory) : memory_(memory) {}

  cudaArray_t create(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags, int device);
  void free(cudaArray_t handle);
  void reset(int device);  ///< forgets the arrays of a device, whose memory has been freed

 private:
  memory_table& memory_;
};

/// A mipmapped array: arrays of half the extent each.
struct mipmapped_array {
  std::vector<cudaArray_t> levels;
  int device = 0;
};

/// Members throw failure and hpe::error.
class mipmap_table : public handle_table<cudaMipmappedArray_const_t, const mipmapped_array, cudaErrorInvalidValue> {
 public:
  explicit mipmap_table(array_table& arrays) : arrays_(arrays) {}

  /// As many levels as the program asks for, and at most down to an extent of 1.
  cudaMipmappedArray_t create(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned levels, unsigned flags,
                              int device);
  void free(cudaMipmappedArray_t handle);
  void reset(int device);

 private:
  array_table& arrays_;
};

}  // namespace hpe::cudart
