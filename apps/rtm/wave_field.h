#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hpe/hpe.hpp"
#include "kernels/wave_parameters.h"

namespace hpe::rtm {

/// How a device obtains the planes of its neighbours that its stencil reads.
enum class exchange {
  direct,  ///< one array over all devices: kernels read planes in the memory of neighbours
  copied   ///< an array for each device; copy engines copy the neighbours' planes into it after each step
};

/// A wave field on the planes [planes[d], planes[d + 1]) of each device d of a group. With either exchange, kernels of
/// device d find cell (x, y, z) at seen_by(d)[layout.index(x, y, z)].
template <class T>
class wave_field {
 public:
  /// Allocates the field on consecutive devices from `first_device` on. If a slab has fewer planes than the stencil's
  /// radius, the exchange is direct.
  wave_field(const kernels::field_layout& layout, const std::vector<std::int64_t>& planes, exchange how,
             int first_device = 0);

  /// Sets all cells to zero.
  void clear() const;

  /// Returns the field's address for kernels of device d. These kernels may use the device's own planes and the planes
  /// that the stencil reaches from them.
  [[nodiscard]] T* seen_by(int d) const;
  /// Planes [x0, x1), at the address that kernels of device d use.
  [[nodiscard]] std::span<T> planes(int d, std::int64_t x0, std::int64_t x1) const;

  /// Copies the outermost planes of each slab to its neighbours, after the queued launches that write these planes.
  /// Returns at once. Does nothing if the exchange is direct.
  void send() const;

  /// Returns the field on all cells, for the host. If the field is in several arrays, the result is a copy, which each
  /// call of whole() renews.
  [[nodiscard]] const array<T>& whole();

 private:
  [[nodiscard]] int devices() const { return static_cast<int>(planes_.size()) - 1; }
  [[nodiscard]] std::int64_t first(int d) const { return planes_[static_cast<std::size_t>(d)]; }
  [[nodiscard]] std::int64_t last(int d) const { return planes_[static_cast<std::size_t>(d) + 1]; }

  kernels::field_layout layout_;
  std::vector<std::int64_t> planes_;
  int first_device_;
  array<T> whole_;               ///< exchange `copied`: allocated by the first call of whole()
  std::vector<array<T>> parts_;  ///< `copied`: array of each device, from plane first(d) - radius on; `direct`: none
};

}  // namespace hpe::rtm
