#pragma once

#include <driver_types.h>
#include <texture_types.h>

#include <map>
#include <mutex>
#include <optional>

#include "interpose/cudart/array.h"
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

/// Texture objects by their handles: the addresses of their descriptions in the memory of a device. Thread safe.
/// Members throw failure and hpe::error.
class texture_table {
 public:
  explicit texture_table(memory_table& memory) : memory_(memory) {}

  cudaTextureObject_t create(const texture_object& object, const ptx::texture& description);
  texture_object find(cudaTextureObject_t handle) const;
  void destroy(cudaTextureObject_t handle);
  void reset(int device);  ///< forgets a device's, whose memory is gone

 private:
  memory_table& memory_;
  mutable std::mutex mutex_;
  std::map<cudaTextureObject_t, texture_object> objects_;
};

}  // namespace hpe::cudart
