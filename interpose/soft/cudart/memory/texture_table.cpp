#include "interpose/soft/cudart/memory/texture_table.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>

#include "hpe/announce.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"

namespace hpe::cudart {
namespace {

using element = ptx::texture::element;

element format_of(const cudaChannelFormatDesc& format) {
  static_cast<void>(element_bytes_of(format));  // throws for a format that textures cannot have
  switch (format.f) {
    case cudaChannelFormatKindFloat: return format.x == 32 ? element::f32 : element::f16;
    case cudaChannelFormatKindSigned:
      return format.x == 32 ? element::s32 : format.x == 16 ? element::s16 : element::s8;
    default: return format.x == 32 ? element::u32 : format.x == 16 ? element::u16 : element::u8;
  }
}

ptx::texture empty_of(const cudaChannelFormatDesc& format) {
  ptx::texture result;
  result.channels = channels_of(format);
  result.format = format_of(format);
  return result;
}

/// Describes the memory of a resource.
ptx::texture memory_of(const cudaResourceDesc& resource, const array_table& arrays, const mipmap_table& mipmaps) {
  ptx::texture result;
  switch (resource.resType) {
    case cudaResourceTypeArray: return layout_of(*arrays.find(resource.res.array.array));
    case cudaResourceTypeMipmappedArray: {
      const auto levels = mipmaps.find(resource.res.mipmap.mipmap)->levels;
      result = layout_of(*arrays.find(levels.front()));
      result.levels = static_cast<std::uint32_t>(levels.size());
      require(result.levels <= ptx::texture::most_levels, cudaErrorInvalidValue);
      for (std::size_t n = 1; n < levels.size(); ++n) result.smaller[n - 1] = layout_of(*arrays.find(levels[n]));
      return result;
    }
    case cudaResourceTypeLinear:
      result = empty_of(resource.res.linear.desc);
      result.data = resource.res.linear.devPtr;
      result.width = resource.res.linear.sizeInBytes / element_bytes_of(resource.res.linear.desc);
      result.pitch = resource.res.linear.sizeInBytes;
      break;
    case cudaResourceTypePitch2D:
      result = empty_of(resource.res.pitch2D.desc);
      result.data = resource.res.pitch2D.devPtr;
      result.width = resource.res.pitch2D.width;
      result.height = resource.res.pitch2D.height;
      result.pitch = resource.res.pitch2D.pitchInBytes;
      require(result.height != 0 && result.pitch >= result.row_bytes(), cudaErrorInvalidValue);
      break;
    default: throw failure(cudaErrorNotSupported);
  }
  require(result.data != nullptr && result.width != 0, cudaErrorInvalidValue);
  return result;
}

ptx::texture::addressing addressing_of(cudaTextureAddressMode mode) {
  require(mode >= cudaAddressModeWrap && mode <= cudaAddressModeBorder, cudaErrorInvalidValue);
  return static_cast<ptx::texture::addressing>(mode);
}

}  // namespace

ptx::texture layout_of(const device_array& array) {
  ptx::texture result = empty_of(array.format);
  result.data = array.base;
  result.width = array.extent.width;
  result.height = array.extent.height;
  result.pitch = array.pitch;
  (array.is_layered() ? result.layers : result.depth) = array.extent.depth;
  result.slice = array.pitch * array.rows();
  result.cube = array.is_cube();
  return result;
}

ptx::texture describe(const texture_object& object, const array_table& arrays, const mipmap_table& mipmaps) {
  ptx::texture result = memory_of(object.resource, arrays, mipmaps);
  const cudaTextureDesc& wanted = object.description;
  result.across = addressing_of(wanted.addressMode[0]);
  result.down = addressing_of(wanted.addressMode[1]);
  result.deep = addressing_of(wanted.addressMode[2]);
  result.linear = wanted.filterMode == cudaFilterModeLinear;
  result.normalized = wanted.normalizedCoords != 0;
  result.to_float = wanted.readMode == cudaReadModeNormalizedFloat && !result.gives_floats();
  // Integers of 32 bits cannot be normalized.
  require(!result.to_float || result.channel_bytes() < 4, cudaErrorInvalidValue);
  require(!result.linear || result.gives_floats(), cudaErrorInvalidValue);
  result.srgb = wanted.sRGB != 0;
  require(!result.srgb || (result.to_float && result.format == element::u8), cudaErrorInvalidValue);
  result.seamless = wanted.seamlessCubemap != 0;
  result.between_levels = wanted.mipmapFilterMode == cudaFilterModeLinear;
  require(result.levels == 1 || !result.between_levels || result.gives_floats(), cudaErrorInvalidValue);
  result.level_bias = wanted.mipmapLevelBias;
  result.least_level = wanted.minMipmapLevelClamp;
  result.greatest_level = wanted.maxMipmapLevelClamp;
  const bool is_black =
      std::all_of(std::begin(wanted.borderColor), std::end(wanted.borderColor), [](float c) { return c == 0; });
  require(is_black || result.gives_floats(), cudaErrorNotSupported);
  std::transform(std::begin(wanted.borderColor), std::end(wanted.borderColor), result.border.begin(),
                 [](float c) { return std::bit_cast<std::uint32_t>(c); });
  require(!object.view || object.view->format == cudaResViewFormatNone, cudaErrorNotSupported);
  return result;
}

cudaTextureObject_t texture_table::create(const texture_object& object, const ptx::texture& description) {
  void* place = nullptr;
  check(::hpeMallocOn(&place, sizeof description, object.device));
  *static_cast<ptx::texture*>(place) = description;
  memory_.add({.base = place, .size = sizeof description, .kind = allocation_kind::device, .device = object.device});
  const auto handle = reinterpret_cast<cudaTextureObject_t>(place);
  enter(handle, std::make_shared<const texture_object>(object));
  return handle;
}

void texture_table::free(cudaTextureObject_t handle) {
  destroy(handle);
  auto* const place = reinterpret_cast<void*>(handle);
  if (memory_.remove(place)) check(::hpeFreeFinished(place));
}

void texture_table::reset(int device) {
  take_if([&](const texture_object& each) { return each.device == device; });
}

}  // namespace hpe::cudart

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaCreateTextureObject(cudaTextureObject_t* made, const cudaResourceDesc* resource,
                                              const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
  return api_call(__func__, [&] {
    require(made != nullptr && resource != nullptr && description != nullptr, cudaErrorInvalidValue);
    texture_object object{*resource, *description, std::nullopt, process().current_device()};
    if (view != nullptr) object.view = *view;
    *made = process().textures().create(object, describe(object, process().arrays(), process().mipmaps()));
  });
}

cudaError_t CUDARTAPI cudaDestroyTextureObject(cudaTextureObject_t handle) {
  return api_call(__func__, [&] {
    if (handle != 0) process().textures().free(handle);
  });
}

cudaError_t CUDARTAPI cudaGetTextureObjectResourceDesc(cudaResourceDesc* out, cudaTextureObject_t handle) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = process().textures().find(handle)->resource;
  });
}

cudaError_t CUDARTAPI cudaGetTextureObjectTextureDesc(cudaTextureDesc* out, cudaTextureObject_t handle) {
  return api_call(__func__, [&] {
    require(out != nullptr, cudaErrorInvalidValue);
    *out = process().textures().find(handle)->description;
  });
}

cudaError_t CUDARTAPI cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* out, cudaTextureObject_t handle) {
  return api_call(__func__, [&] {
    const auto object = process().textures().find(handle);
    require(out != nullptr && object->view.has_value(), cudaErrorInvalidValue);
    *out = *object->view;
  });
}
}
