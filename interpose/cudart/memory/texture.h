#pragma once

#include <driver_types.h>
#include <texture_types.h>

#include <optional>

#include "interpose/cudart/device/handle_table.h"
#include "interpose/cudart/memory/array.h"
#include "interpose/cudart/memory/memory_table.h"
#include "runtime/ptx/execution/textures/texture.h"

namespace hpe::cudart {

/// The program's description of a texture or surface object; a surface has only the resource.
struct texture_object {
  cudaResourceDesc resource{};
  cudaTextureDesc description{};
  std::optional<cudaResourceViewDesc> view;
  int device = 0;
};

/// The memory layout of an array, for kernels. Throws cudaErrorInvalidChannelDescriptor unless channels have 8, 16 or
/// 32 bits.
ptx::texture layout_of(const device_array& array);

/// The description by which kernels read a texture object. Throws cudaErrorInvalidValue for parameters that CUDA does
/// not allow, cudaErrorNotSupported for those that soft devices do not support.
ptx::texture describe(const texture_object& object, const array_table& arrays, const mipmap_table& mipmaps);

/// Texture or surface objects. A handle is the address of the object's description in device memory. Members throw
/// failure and hpe::error.
class texture_table : public handle_table<cudaTextureObject_t, const texture_object, cudaErrorInvalidValue> {
 public:
  explicit texture_table(memory_table& memory) : memory_(memory) {}

  cudaTextureObject_t create(const texture_object& object, const ptx::texture& description);
  void free(cudaTextureObject_t handle);
  void reset(int device);  ///< forgets the objects of a device, whose memory has been freed

 private:
  memory_table& memory_;
};

}  // namespace hpe::cudart
