#pragma once

#include <cstdint>

namespace hpe::transfer {

/// The kind of memory on one side of a copy.
enum class copy_endpoint : std::uint8_t {
  device,      ///< memory that a device backs
  registered,  ///< host memory that copy engines can access: the alias, staging buffers
  pageable     ///< any other host memory
};

enum class route : std::uint8_t {
  host,        ///< a memcpy by the host
  direct,      ///< one copy by a device's copy engine: between its memory and registered memory, or within its memory
  peer,        ///< one copy by a device's copy engine between two devices
  staged,      ///< through staging buffers, which the calling thread fills or empties
  peer_staged  ///< from a device to a staging buffer, and from there to another device
};

/// The route of a copy between two places. If both places are on devices, the route depends on same_device and on
/// reachable. reachable: the copy engine of one of the devices can access the memory of the other.
[[nodiscard]] constexpr route choose_route(copy_endpoint destination, copy_endpoint source, bool same_device,
                                           bool reachable) noexcept {
  if (destination == copy_endpoint::device && source == copy_endpoint::device) {
    if (same_device) return route::direct;
    return reachable ? route::peer : route::peer_staged;
  }
  if (destination != copy_endpoint::device && source != copy_endpoint::device) return route::host;
  return destination == copy_endpoint::pageable || source == copy_endpoint::pageable ? route::staged : route::direct;
}

}  // namespace hpe::transfer
