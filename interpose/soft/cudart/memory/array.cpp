#include "interpose/soft/cudart/memory/array.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hpe/announce.h"
#include "interpose/soft/cudart/device/errors.h"

namespace hpe::cudart {
namespace {

constexpr std::size_t pitch_alignment = 512;

std::array<int, 4> bits_of(const cudaChannelFormatDesc& format) { return {format.x, format.y, format.z, format.w}; }

}  // namespace

unsigned channels_of(const cudaChannelFormatDesc& format) {
  const auto bits = bits_of(format);
  return static_cast<unsigned>(std::find(bits.begin(), bits.end(), 0) - bits.begin());
}

std::size_t element_bytes_of(const cudaChannelFormatDesc& format) {
  const auto bits = bits_of(format);
  const unsigned channels = channels_of(format);
  const bool known_width = format.x == 8 || format.x == 16 || format.x == 32;
  const bool known_kind = format.f == cudaChannelFormatKindSigned || format.f == cudaChannelFormatKindUnsigned ||
                          (format.f == cudaChannelFormatKindFloat && format.x != 8);
  require(known_width && known_kind && (channels == 1 || channels == 2 || channels == 4),
          cudaErrorInvalidChannelDescriptor);
  for (unsigned i = 0; i < 4; ++i) require(bits[i] == (i < channels ? format.x : 0), cudaErrorInvalidChannelDescriptor);
  return static_cast<std::size_t>(format.x) / 8 * channels;
}

std::size_t device_array::element_bytes() const { return element_bytes_of(format); }

char* device_array::at(const cudaPos& position, const box_extent& size) const {
  const std::size_t width = extent.width * element_bytes();
  const std::size_t x = saturated_product(position.x, element_bytes());
  const auto fits = [](std::size_t from, std::size_t count, std::size_t all) {
    return from <= all && count <= all - from;
  };
  require(fits(x, size.width, width) && fits(position.y, size.rows, rows()) && fits(position.z, size.planes, planes()),
          cudaErrorInvalidValue);
  return static_cast<char*>(base) + strides().offset_of(x, position.y, position.z);
}

cudaArray_t array_table::create(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned flags, int device) {
  const std::size_t row = saturated_product(element_bytes_of(format), extent.width);
  auto made = std::make_shared<device_array>();
  *made = {format, extent, flags, device, nullptr, (row + pitch_alignment - 1) / pitch_alignment * pitch_alignment};
  const bool has_its_dimensions = made->is_layered() ? extent.depth != 0 : extent.depth == 0 || extent.height != 0;
  require(row != 0 && has_its_dimensions && row <= too_many_bytes - pitch_alignment, cudaErrorInvalidValue);
  if (made->is_cube()) {
    const bool has_layers = (flags & cudaArrayLayered) != 0;
    require(extent.width == extent.height && (has_layers ? extent.depth % 6 == 0 : extent.depth == 6),
            cudaErrorInvalidValue);
  }
  const std::size_t size = box_extent{made->pitch, made->rows(), made->planes()}.bytes();
  check(::hpeMallocOn(&made->base, size, device));
  memory_.add({.base = made->base, .size = size, .kind = allocation_kind::device, .device = device});
  return const_cast<cudaArray_t>(adopt(std::move(made)));
}

void array_table::free(cudaArray_t handle) {
  const auto gone = destroy(handle);
  if (memory_.remove(gone->base)) check(::hpeFreeFinished(gone->base));
}

void array_table::reset(int device) {
  take_if([&](const device_array& each) { return each.device == device; });
}

cudaMipmappedArray_t mipmap_table::create(const cudaChannelFormatDesc& format, cudaExtent extent, unsigned levels,
                                          unsigned flags, int device) {
  require(levels > 0, cudaErrorInvalidValue);
  const bool keeps_depth = (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0;
  const std::size_t greatest = std::max({extent.width, extent.height, keeps_depth ? 0 : extent.depth});
  auto made = std::make_shared<mipmapped_array>();
  made->device = device;
  const auto smaller = [](std::size_t size) { return size == 0 ? 0 : std::max<std::size_t>(size / 2, 1); };
  for (std::size_t size = std::max<std::size_t>(greatest, 1); size > 0 && made->levels.size() < levels; size /= 2) {
    made->levels.push_back(arrays_.create(format, extent, flags, device));
    extent = {smaller(extent.width), smaller(extent.height), keeps_depth ? extent.depth : smaller(extent.depth)};
  }
  return const_cast<cudaMipmappedArray_t>(adopt(std::move(made)));
}

void mipmap_table::free(cudaMipmappedArray_t handle) {
  const auto gone = destroy(handle);
  for (const cudaArray_t level : gone->levels) arrays_.free(level);
}

void mipmap_table::reset(int device) {
  take_if([&](const mipmapped_array& each) { return each.device == device; });
}

}  // namespace hpe::cudart
