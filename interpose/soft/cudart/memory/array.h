#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "interpose/soft/cudart/device/handle_table.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/base/box.h"

namespace hpe::cudart {

/// A CUDA array: rows of elements with one to four channels. Soft devices store the elements in plain row-major order;
/// the layers of a layered array are stored like the planes of a three-dimensional array.
struct device_array {
  cudaChannelFormatDesc format{};
  cudaExtent extent{};  ///< the size in elements that the program requested; height or depth is 0 if not used
  unsigned flags = 0;
  int device = 0;
  void* base = nullptr;
  std::size_t pitch = 0;  ///< bytes from one row to the next

  bool is_cube() const { return (flags & cudaArrayCubemap) != 0; }  ///< the faces of a cube are stored as layers
  bool is_layered() const { return (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0; }
  std::size_t element_bytes() const;
  std::size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  std::size_t planes() const { return extent.depth == 0 ? 1 : extent.depth; }

  box_strides strides() const { return {pitch, rows() * pitch}; }
  /// Returns the address of the first byte of a box of this size that begins at `position`. Throws
  /// cudaErrorInvalidValue if the box is not inside the array.
  char* at(const cudaPos& position, const box_extent& size) const;
};

/// Returns the number of bytes in an element. Throws cudaErrorInvalidChannelDescriptor for a format that is allowed
/// neither for arrays nor for textures.
std::size_t element_bytes_of(const cudaChannelFormatDesc& format);
unsigned channels_of(const cudaChannelFormatDesc& format);

/// The functions throw `failure` and hpe::error.
class array_table : public handle_table<cudaArray_const_t, const device_array, cudaErrorInvalidResourceHandle> {
 public:
  explicit array_table(memory_table& memory) : memory_(memory) {}

  cudaArray_t create(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags, int device);
  void free(cudaArray_t handle);
  void reset(int device);  ///< removes the arrays of a device; their memory has already been freed

 private:
  memory_table& memory_;
};

/// A mipmapped array: a series of arrays (levels), each with half the extent of the previous level.
struct mipmapped_array {
  std::vector<cudaArray_t> levels;
  int device = 0;
};

/// The functions throw `failure` and hpe::error.
class mipmap_table : public handle_table<cudaMipmappedArray_const_t, const mipmapped_array, cudaErrorInvalidValue> {
 public:
  explicit mipmap_table(array_table& arrays) : arrays_(arrays) {}

  /// Creates `levels` levels, or fewer: no level follows the level with extent 1.
  cudaMipmappedArray_t create(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned levels, unsigned flags,
                              int device);
  void free(cudaMipmappedArray_t handle);
  void reset(int device);

 private:
  array_table& arrays_;
};

}  // namespace hpe::cudart
