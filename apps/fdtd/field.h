#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/fdtd/boxes.h"
#include "hpe/hpe.hpp"
#include "kernels/fdtd.h"

namespace hpe::fdtd {

/// A wave on a grid of cells, zero beyond the grid, divided into boxes on devices. Each step first moves the faces
/// between neighbours, then computes and packs the cells that neighbours wait for, then computes the rest. All calls
/// return at once; the memory that launches name decides what runs concurrently. Faces of slabs are whole planes, which
/// need no packing.
class field {
 public:
  /// order: 2, 4, ... 16. speed(x, y, z) is (c dt / spacing)^2, at most stable_speed(order).
  field(const triple& cells, std::int64_t order, const triple& parts,
        const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& speed);

  /// Sets the field, now and one step ago.
  void set(const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& value);

  /// Copies the field of an object with the same grid, order and parts, from device to device.
  void set(const field& other);

  void step();

  /// The present field for the host, z fastest.
  [[nodiscard]] std::vector<float> values() const { return values(0, cells_[1]); }
  /// The present field for the host, only the rows [from, to) along y.
  [[nodiscard]] std::vector<float> values(std::int64_t from, std::int64_t to) const;

  [[nodiscard]] const std::vector<box>& boxes() const { return boxes_; }

 private:
  /// The arrays of one device.
  struct part {
    array<float> now, next, speed;
    array<float> ones;                         ///< the tapers of all axes: nothing damps
    std::vector<array<float>> sent, received;  ///< packed faces, by side; empty without a neighbour and for slabs
    order_of_work work;
    std::int64_t multiprocessors;
  };

  void send(std::size_t number, const array<float>& from);
  void receive(std::size_t number);
  void compute(std::size_t number, const kernels::cell_range& cells);

  const triple cells_;
  const std::int64_t radius_;
  const bool slabs_;
  const std::vector<box> boxes_;
  std::vector<part> parts_;
  kernel<kernels::wave_step<float>> step_;
  kernel<kernels::fdtd_pack<float>> pack_{module(), "fdtd_pack_f32"};
  kernel<kernels::fdtd_unpack<float>> unpack_{module(), "fdtd_unpack_f32"};
};

/// The largest speed for which the steps of an order are stable in three dimensions.
[[nodiscard]] double stable_speed(std::int64_t order);

}  // namespace hpe::fdtd
