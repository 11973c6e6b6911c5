#pragma once

#include <cstdint>

namespace hpe::transfer {

/// The kind of memory on one side of a copy.
enum class place : std::uint8_t {
  device,      ///< memory that a device backs
  registered,  ///< host memory that copy engines reach: the alias, staging buffers
  pageable     ///< any other host memory
};

enum class route : std::uint8_t {
  host,        ///< memcpy
  direct,      ///< one copy by a device's engine between its memory and registered memory, or inside its memory
  peer,        ///< one copy by a device's engine between two devices
  staged,      ///< through staging buffers, filled or emptied by the calling thread
  peer_staged  ///< device to staging buffer to device
};

/// The route between two places. Between two devices, same_device and reachable (the engine of one side reaches the
/// other's memory) decide.
[[nodiscard]] constexpr route choose_route(place destination, place source, bool same_device, bool reachable) noexcept {
  if (destination == place::device && source == place::device) {
    if (same_device) return route::direct;
    return reachable ? route::peer : route::peer_staged;
  }
  if (destination != place::device && source != place::device) return route::host;
  return destination == place::pageable || source == place::pageable ? route::staged : route::direct;
}

}  // namespace hpe::transfer
