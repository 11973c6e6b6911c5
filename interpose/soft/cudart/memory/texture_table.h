#pragma once

#include <driver_types.h>
#include <texture_types.h>

#include <optional>

#include "interpose/soft/cudart/device/handle_table.h"
#include "interpose/soft/cudart/memory/array.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/ptx/execution/textures/texture.h"

namespace hpe::cudart {

/// The program's description of a texture or surface object; a surface object uses only the resource.
struct texture_object {
  cudaResourceDesc resource{};
  cudaTextureDesc description{};
  std::optional<cudaResourceViewDesc> view;
  int device = 0;
};

/// Describes the memory layout of an array in the form that kernels use. Throws cudaErrorInvalidChannelDescriptor
/// unless the channels have 8, 16 or 32 bits.
ptx::texture layout_of(const device_array& array);

/// Describes a texture object in the form that kernels use. Throws cudaErrorInvalidValue for parameters that CUDA does
/// not allow, and cudaErrorNotSupported for parameters that soft devices do not support.
ptx::texture describe(const texture_object& object, const array_table& arrays, const mipmap_table& mipmaps);

/// The texture objects or the surface objects of the program. The handle of an object is the address of its description
/// in device memory. The functions throw `failure` and hpe::error.
class texture_table : public handle_table<cudaTextureObject_t, const texture_object, cudaErrorInvalidValue> {
 public:
  explicit texture_table(memory_table& memory) : memory_(memory) {}

  cudaTextureObject_t create(const texture_object& object, const ptx::texture& description);
  void free(cudaTextureObject_t handle);
  void reset(int device);  ///< removes the objects of a device; their memory has already been freed

 private:
  memory_table& memory_;
};

}  // namespace hpe::cudart
