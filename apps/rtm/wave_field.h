#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hpe/hpe.hpp"
#include "kernels/wave.h"

namespace hpe::rtm {

/// How the planes that the stencil of a device reads of its neighbours get there.
enum class exchange {
  direct,  ///< one array spread over the devices: kernels read the neighbours' planes in place
  copied   ///< an array for each device, with room for the neighbours' planes, which copy engines bring after each step
};

/// A wave field on the planes [planes[d], planes[d + 1]) of each device d. With either exchange a kernel finds the cell
/// (x, y, z) at seen_by(d)[layout.index(x, y, z)].
template <class T>
class wave_field {
 public:
  /// Where a slab has fewer planes than the stencil reaches, the exchange is direct.
  wave_field(const kernels::field_layout& layout, const std::vector<std::int64_t>& planes, exchange how);

  /// Sets all cells to zero.
  void clear() const;

  /// For kernels of device d, which use planes of its own and those that the stencil reaches from them.
  [[nodiscard]] T* seen_by(int d) const;
  /// Planes [x0, x1), of those, as such a kernel finds them.
  [[nodiscard]] std::span<T> planes(int d, std::int64_t x0, std::int64_t x1) const;

  /// Gives the neighbours of each slab its outermost planes, after the launches that write them, which were queued
  /// before. Returns at once. Nothing to do where the exchange is direct.
  void send() const;

  /// The field on all cells, for the host. Where it is in several arrays, as it was at the last call of this.
  [[nodiscard]] const array<T>& whole();

 private:
  [[nodiscard]] int devices() const { return static_cast<int>(planes_.size()) - 1; }
  [[nodiscard]] std::int64_t first(int d) const { return planes_[static_cast<std::size_t>(d)]; }
  [[nodiscard]] std::int64_t last(int d) const { return planes_[static_cast<std::size_t>(d) + 1]; }

  kernels::field_layout layout_;
  std::vector<std::int64_t> planes_;
  array<T> whole_;               ///< copied: made when it is asked for
  std::vector<array<T>> parts_;  ///< copied: by device, from plane first(d) - radius on; direct: none
};

}  // namespace hpe::rtm
