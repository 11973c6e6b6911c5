// The functions for arrays, texture objects and surface objects.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <optional>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/memory/array.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/memory/copy_shapes.h"

using namespace hpe::libcuda;
using hpe::cudart::check;
using hpe::cudart::process;

namespace {

cudaArray_t array_of(CUarray handle) { return reinterpret_cast<cudaArray_t>(handle); }

// The flags of arrays have the same values in both interfaces.
static_assert(CUDA_ARRAY3D_LAYERED == cudaArrayLayered && CUDA_ARRAY3D_SURFACE_LDST == cudaArraySurfaceLoadStore &&
              CUDA_ARRAY3D_CUBEMAP == cudaArrayCubemap && CUDA_ARRAY3D_TEXTURE_GATHER == cudaArrayTextureGather);

cudaError_t create(CUarray* made, const CUDA_ARRAY3D_DESCRIPTOR& from) {
  const cudaChannelFormatDesc format = format_of(from.Format, from.NumChannels);
  return cudaMalloc3DArray(reinterpret_cast<cudaArray_t*>(made), &format, {from.Width, from.Height, from.Depth},
                           from.Flags);
}

CUDA_ARRAY3D_DESCRIPTOR describe(CUarray handle) {
  const auto it = process().arrays().find(array_of(handle));
  return {it->extent.width,
          it->extent.height,
          it->extent.depth,
          format_of(it->format),
          hpe::cudart::channels_of(it->format),
          it->flags};
}

cudaResourceDesc resource_of(const CUDA_RESOURCE_DESC& from) {
  cudaResourceDesc to{};
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      to.resType = cudaResourceTypeArray;
      to.res.array.array = array_of(from.res.array.hArray);
      return to;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to.resType = cudaResourceTypeMipmappedArray;
      to.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
      return to;
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = from.res.linear;
      to.resType = cudaResourceTypeLinear;
      to.res.linear = {reinterpret_cast<void*>(linear.devPtr), format_of(linear.format, linear.numChannels),
                       linear.sizeInBytes};
      return to;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& rows = from.res.pitch2D;
      to.resType = cudaResourceTypePitch2D;
      to.res.pitch2D = {reinterpret_cast<void*>(rows.devPtr), format_of(rows.format, rows.numChannels), rows.width,
                        rows.height, rows.pitchInBytes};
      return to;
    }
  }
  throw hpe::cudart::failure(cudaErrorInvalidValue);
}

CUDA_RESOURCE_DESC resource_of(const cudaResourceDesc& from) {
  CUDA_RESOURCE_DESC to{};
  switch (from.resType) {
    case cudaResourceTypeArray:
      to.resType = CU_RESOURCE_TYPE_ARRAY;
      to.res.array.hArray = reinterpret_cast<CUarray>(from.res.array.array);
      break;
    case cudaResourceTypeMipmappedArray:
      to.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      to.res.mipmap.hMipmappedArray = reinterpret_cast<CUmipmappedArray>(from.res.mipmap.mipmap);
      break;
    case cudaResourceTypeLinear: {
      const auto& linear = from.res.linear;
      to.resType = CU_RESOURCE_TYPE_LINEAR;
      to.res.linear = {reinterpret_cast<CUdeviceptr>(linear.devPtr), format_of(linear.desc),
                       hpe::cudart::channels_of(linear.desc), linear.sizeInBytes};
      break;
    }
    default: {
      const auto& rows = from.res.pitch2D;
      to.resType = CU_RESOURCE_TYPE_PITCH2D;
      to.res.pitch2D = {reinterpret_cast<CUdeviceptr>(rows.devPtr),
                        format_of(rows.desc),
                        hpe::cudart::channels_of(rows.desc),
                        rows.width,
                        rows.height,
                        rows.pitchInBytes};
      break;
    }
  }
  return to;
}

/// Returns the read mode of a texture: unless the flags request integers, kernels read integers as floats (normalized,
/// up to 1). Floats and integers of 32 bits are not converted.
cudaTextureReadMode read_mode(unsigned flags, const cudaResourceDesc& resource) {
  cudaChannelFormatDesc format{};
  switch (resource.resType) {
    case cudaResourceTypeArray: check(cudaGetChannelDesc(&format, resource.res.array.array)); break;
    case cudaResourceTypeLinear: format = resource.res.linear.desc; break;
    case cudaResourceTypePitch2D: format = resource.res.pitch2D.desc; break;
    case cudaResourceTypeMipmappedArray: {
      cudaArray_t finest = nullptr;
      check(cudaGetMipmappedArrayLevel(&finest, resource.res.mipmap.mipmap, 0));
      check(cudaGetChannelDesc(&format, finest));
      break;
    }
    default: return cudaReadModeElementType;
  }
  const bool normalizes =
      (flags & CU_TRSF_READ_AS_INTEGER) == 0 && format.f != cudaChannelFormatKindFloat && format.x < 32;
  return normalizes ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
}

cudaTextureDesc texture_of(const CUDA_TEXTURE_DESC& from, const cudaResourceDesc& resource) {
  cudaTextureDesc to{};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<cudaTextureAddressMode>(from.addressMode[i]);
  to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
  to.readMode = read_mode(from.flags, resource);
  to.sRGB = (from.flags & CU_TRSF_SRGB) != 0 ? 1 : 0;
  std::copy_n(from.borderColor, 4, to.borderColor);
  to.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0 ? 1 : 0;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  to.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0 ? 1 : 0;
  to.seamlessCubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0 ? 1 : 0;
  return to;
}

CUDA_TEXTURE_DESC texture_of(const cudaTextureDesc& from) {
  CUDA_TEXTURE_DESC to{};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
  to.filterMode = static_cast<CUfilter_mode>(from.filterMode);
  to.flags = (from.readMode == cudaReadModeElementType ? unsigned{CU_TRSF_READ_AS_INTEGER} : 0U) |
             (from.normalizedCoords != 0 ? unsigned{CU_TRSF_NORMALIZED_COORDINATES} : 0U) |
             (from.sRGB != 0 ? unsigned{CU_TRSF_SRGB} : 0U) |
             (from.disableTrilinearOptimization != 0 ? unsigned{CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION} : 0U) |
             (from.seamlessCubemap != 0 ? unsigned{CU_TRSF_SEAMLESS_CUBEMAP} : 0U);
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::copy_n(from.borderColor, 4, to.borderColor);
  return to;
}

static_assert(sizeof(CUDA_RESOURCE_VIEW_DESC) >= sizeof(cudaResourceViewDesc));

}  // namespace

extern "C" {

CUresult CUDAAPI cuArrayCreate_v2(CUarray* made, const CUDA_ARRAY_DESCRIPTOR* from) {
  return in_context("cuArrayCreate_v2", [&] {
    const CUDA_ARRAY_DESCRIPTOR& it = given(from);
    return create(made, {it.Width, it.Height, 0, it.Format, it.NumChannels, 0});
  });
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray* made, const CUDA_ARRAY3D_DESCRIPTOR* from) {
  return in_context("cuArray3DCreate_v2", [&] { return create(made, given(from)); });
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* made, const CUDA_ARRAY3D_DESCRIPTOR* from, unsigned levels) {
  return in_context("cuMipmappedArrayCreate", [&] {
    const CUDA_ARRAY3D_DESCRIPTOR& it = given(from);
    const cudaChannelFormatDesc format = format_of(it.Format, it.NumChannels);
    return cudaMallocMipmappedArray(reinterpret_cast<cudaMipmappedArray_t*>(made), &format,
                                    {it.Width, it.Height, it.Depth}, levels, it.Flags);
  });
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(std::size_t* elements, CUarray_format format, unsigned channels,
                                                    CUdevice device) {
  return call("cuDeviceGetTexture1DLinearMaxWidth", [&] {
    const cudaChannelFormatDesc same = format_of(format, channels);
    return cudaDeviceGetTexture1DLinearMaxWidth(elements, &same, device);
  });
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  return in_context("cuArrayGetDescriptor_v2", [&] {
    const CUDA_ARRAY3D_DESCRIPTOR whole = describe(handle);
    given(out) = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
  });
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  return in_context("cuArray3DGetDescriptor_v2", [&] { given(out) = describe(handle); });
}

// The functions that copy contiguous bytes from or to one-dimensional arrays.

CUresult CUDAAPI cuMemcpyHtoA_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes) {
  return in_context("cuMemcpyHtoA_v2",
                    [&] { return cudaMemcpyToArray(array_of(to), offset, 0, from, bytes, cudaMemcpyHostToDevice); });
}

CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes,
                                      CUstream stream) {
  return in_context("cuMemcpyHtoAAsync_v2", [&] {
    return cudaMemcpyToArrayAsync(array_of(to), offset, 0, from, bytes, cudaMemcpyHostToDevice, stream);
  });
}

CUresult CUDAAPI cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes) {
  return in_context("cuMemcpyAtoH_v2",
                    [&] { return cudaMemcpyFromArray(to, array_of(from), offset, 0, bytes, cudaMemcpyDeviceToHost); });
}

CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes, CUstream stream) {
  return in_context("cuMemcpyAtoHAsync_v2", [&] {
    return cudaMemcpyFromArrayAsync(to, array_of(from), offset, 0, bytes, cudaMemcpyDeviceToHost, stream);
  });
}

CUresult CUDAAPI cuMemcpyDtoA_v2(CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes) {
  return in_context("cuMemcpyDtoA_v2", [&] {
    return cudaMemcpyToArray(array_of(to), offset, 0, reinterpret_cast<void*>(from), bytes, cudaMemcpyDeviceToDevice);
  });
}

CUresult CUDAAPI cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes) {
  return in_context("cuMemcpyAtoD_v2", [&] {
    return cudaMemcpyFromArray(reinterpret_cast<void*>(to), array_of(from), offset, 0, bytes, cudaMemcpyDeviceToDevice);
  });
}

CUresult CUDAAPI cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                                 std::size_t bytes) {
  return in_context("cuMemcpyAtoA_v2", [&] {
    return cudaMemcpy2DArrayToArray(array_of(to), to_offset, 0, array_of(from), from_offset, 0, bytes, 1,
                                    cudaMemcpyDeviceToDevice);
  });
}

CUresult CUDAAPI cuTexObjectCreate(CUtexObject* made, const CUDA_RESOURCE_DESC* resource,
                                   const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  return in_context("cuTexObjectCreate", [&] {
    const cudaResourceDesc same = resource_of(given(resource));
    const cudaTextureDesc description = texture_of(given(texture), same);
    return cudaCreateTextureObject(made, &same, &description, reinterpret_cast<const cudaResourceViewDesc*>(view));
  });
}

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject texture) {
  return in_context("cuTexObjectGetResourceDesc", [&] {
    cudaResourceDesc same{};
    check(cudaGetTextureObjectResourceDesc(&same, texture));
    given(out) = resource_of(same);
  });
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject texture) {
  return in_context("cuTexObjectGetTextureDesc", [&] {
    cudaTextureDesc same{};
    check(cudaGetTextureObjectTextureDesc(&same, texture));
    given(out) = texture_of(same);
  });
}

CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* out, CUtexObject texture) {
  return in_context("cuTexObjectGetResourceViewDesc", [&] {
    given(out) = {};
    return cudaGetTextureObjectResourceViewDesc(reinterpret_cast<cudaResourceViewDesc*>(out), texture);
  });
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject* made, const CUDA_RESOURCE_DESC* resource) {
  return in_context("cuSurfObjectCreate", [&] {
    const cudaResourceDesc same = resource_of(given(resource));
    return cudaCreateSurfaceObject(made, &same);
  });
}

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUsurfObject surface) {
  return in_context("cuSurfObjectGetResourceDesc", [&] {
    cudaResourceDesc same{};
    check(cudaGetSurfaceObjectResourceDesc(&same, surface));
    given(out) = resource_of(same);
  });
}
}
