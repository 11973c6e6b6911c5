#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace hpe::rtm {

/// Packs the parts of an item into fewer bytes, on the host. Only one thread at a time may use a codec.
class codec {
 public:
  virtual ~codec() = default;

  /// Returns the largest possible size of the packed part of device d.
  [[nodiscard]] virtual std::size_t packed_bytes(std::size_t d) const = 0;

  /// Packs a part of device d to `to`, which has room for packed_bytes(d) bytes; unpack() restores the part. Both throw
  /// std::runtime_error if the codec fails.
  virtual void pack(std::size_t d, std::span<const std::uint8_t> part, std::uint8_t* to) const = 0;
  virtual void unpack(std::size_t d, const std::uint8_t* from, std::span<std::uint8_t> part) const = 0;
};

/// The number of cells of a part along z (fastest in memory), y and x.
using part_shape = std::array<std::int64_t, 3>;

/// Makes a codec that uses zfp (Lindstrom, Fixed-rate compressed floating-point arrays, TVCG 20, 2014) for 32-bit
/// floats, with a fixed number of bits per cell. shapes: the shapes of the parts, by device.
[[nodiscard]] std::unique_ptr<codec> make_zfp(std::vector<part_shape> shapes, std::int64_t bits);

}  // namespace hpe::rtm
