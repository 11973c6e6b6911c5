#pragma once

#include <driver_types.h>
#include <texture_types.h>

#include <optional>

#include "interpose/cudart/array.h"
#include "interpose/cudart/handle_table.h"
#include "interpose/cudart/memory_table.h"
#include "runtime/ptx/texture.h"

namespace hpe::cudart {

/// What the program was given a texture object for.
struct texture_object {
  cudaResourceDesc resource{};
  cudaTextureDesc description{};
  std::optional<cudaResourceViewDesc> view;
  int device = 0;
};

/// How kernels read a texture object. Arrays and memory of one or two dimensions with channels of 8, 16 or 32 bits.
/// Throws cudaErrorInvalidValue for what CUDA does not allow, cudaErrorNotSupported for what soft devices cannot.
ptx::texture describe(const texture_object& object, const array_table& arrays);

/// Handles are the addresses of the objects' descriptions in the memory of a device. Members throw failure and
/// hpe::error.
class texture_table : public handle_table<cudaTextureObject_t, const texture_object, cudaErrorInvalidValue> {
 public:
  explicit texture_table(memory_table& memory) : memory_(memory) {}

  cudaTextureObject_t create(const texture_object& object, const ptx::texture& description);
  void free(cudaTextureObject_t handle);
  void reset(int device);  ///< forgets a device's, whose memory is gone

 private:
  memory_table& memory_;
};

}  // namespace hpe::cudart
