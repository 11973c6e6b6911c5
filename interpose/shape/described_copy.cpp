// If the pitch or the height in a description is 0, the rows or planes of the memory have no gaps. The description of a
// part always has a pitch and a height that are not 0. The base in the part's description is the address of the part's
// first byte: the driver refuses a base that is not mapped, and hpe ensures only that the part itself is in device
// memory.
#include "interpose/shape/described_copy.h"

#include <cstring>

namespace hpe::cuda_shape {

namespace {

// One side of a copy, with the members of the driver's structures. For a structure without planes, z and height are 0.
struct driver_side {
  unsigned type;  // a CUmemorytype, or an invalid number that the program passed
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t x, y, z, pitch, height;
};

// Whether this type of description describes copies with planes. Only these types have the member Depth.
template <class Description>
constexpr bool has_planes = requires(const Description& c) {
  c.Depth;
};

// Returns the value as a number. The program may have stored a number that is no enumerator; loading it as a
// CUmemorytype would be undefined behaviour.
unsigned number_of(const CUmemorytype& type) {
  unsigned result;
  std::memcpy(&result, &type, sizeof type);
  return result;
}

template <class Description>
driver_side source_of(const Description& c) {
  driver_side s{
      number_of(c.srcMemoryType), c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes, c.srcY, 0, c.srcPitch, 0};
  if constexpr (has_planes<Description>) s.z = c.srcZ, s.height = c.srcHeight;
  return s;
}
template <class Description>
driver_side target_of(const Description& c) {
  driver_side s{
      number_of(c.dstMemoryType), c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes, c.dstY, 0, c.dstPitch, 0};
  if constexpr (has_planes<Description>) s.z = c.dstZ, s.height = c.dstHeight;
  return s;
}

// Returns false if the memory type in the description is invalid.
bool decode(const driver_side& s, const box_extent& extent, copy_side& to) {
  to.x = s.x;
  to.y = s.y;
  to.z = s.z;
  if (s.type == CU_MEMORYTYPE_ARRAY) {
    to.is_array = true;
    to.array = s.array;
    return true;
  }
  const bool is_host = s.type == CU_MEMORYTYPE_HOST;
  if (!is_host && s.type != CU_MEMORYTYPE_DEVICE && s.type != CU_MEMORYTYPE_UNIFIED) return false;
  to.pitch = s.pitch != 0 ? s.pitch : saturated_sum(s.x, extent.width);
  to.height = s.height != 0 ? s.height : saturated_sum(s.y, extent.rows);
  to.base = is_host ? reinterpret_cast<CUdeviceptr>(s.host) : s.device;
  return saturated_sum(to.first(), box{extent, to.strides()}.span()) != too_many_bytes;
}

template <class Description>
std::optional<described_copy> decode(const Description& c) {
  described_copy result;
  result.extent = {c.WidthInBytes, c.Height, 1};
  if constexpr (has_planes<Description>) result.extent.planes = c.Depth;
  if (!decode(source_of(c), result.extent, result.from) || !decode(target_of(c), result.extent, result.to))
    return std::nullopt;
  return result;
}

template <class Description>
Description describe_part(Description c, const described_copy& whole, const box_part& part) {
  // For an array, adds the position of the part; for memory, the base becomes the address of the part's first byte.
  const auto begin_of = [&part](const copy_side& s) {
    copy_side at = s;
    if (s.is_array) {
      at.x += part.x;
      at.y += part.y;
      at.z += part.z;
    } else {
      at.base = s.first() + s.strides().offset_of(part.x, part.y, part.z);
      at.x = at.y = at.z = 0;
    }
    return at;
  };
  const copy_side from = begin_of(whole.from), to = begin_of(whole.to);
  c.srcXInBytes = from.x;
  c.srcY = from.y;
  c.dstXInBytes = to.x;
  c.dstY = to.y;
  if (!from.is_array) {
    c.srcDevice = from.base;
    c.srcHost = reinterpret_cast<const void*>(from.base);  // NOLINT(performance-no-int-to-ptr): integer address
    c.srcPitch = from.pitch;
  }
  if (!to.is_array) {
    c.dstDevice = to.base;
    c.dstHost = reinterpret_cast<void*>(to.base);  // NOLINT(performance-no-int-to-ptr): likewise
    c.dstPitch = to.pitch;
  }
  c.WidthInBytes = part.extent.width;
  c.Height = part.extent.rows;
  if constexpr (has_planes<Description>) {
    c.srcZ = from.z;
    c.dstZ = to.z;
    if (!from.is_array) c.srcHeight = from.height;
    if (!to.is_array) c.dstHeight = to.height;
    c.Depth = part.extent.planes;
  }
  return c;
}

}  // namespace

std::optional<described_copy> decoded(const CUDA_MEMCPY2D& description) { return decode(description); }
std::optional<described_copy> decoded(const CUDA_MEMCPY3D& description) { return decode(description); }
std::optional<described_copy> decoded(const CUDA_MEMCPY3D_PEER& description) { return decode(description); }

CUDA_MEMCPY2D part_of(CUDA_MEMCPY2D description, const described_copy& whole, const box_part& part) {
  return describe_part(description, whole, part);
}
CUDA_MEMCPY3D part_of(CUDA_MEMCPY3D description, const described_copy& whole, const box_part& part) {
  return describe_part(description, whole, part);
}
CUDA_MEMCPY3D_PEER part_of(CUDA_MEMCPY3D_PEER description, const described_copy& whole, const box_part& part) {
  return describe_part(description, whole, part);
}

}  // namespace hpe::cuda_shape
