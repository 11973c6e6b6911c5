#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/fdtd/boxes.h"
#include "hpe/hpe.hpp"
#include "kernels/fdtd.h"

namespace hpe::fdtd {

/// How a device obtains the cells of its neighbours.
enum class exchange {
  copied,  ///< copies of the neighbours' cells, in a halo around the device's box; kernels use only their own device's
           ///< memory
  direct   ///< reads by the device's kernels in the neighbours' memory; all boxes are in one striped array
};

/// A wave on a grid of cells, which is divided into boxes on devices. The wave is zero beyond the grid. With
/// exchange::copied, each step first copies the faces between neighbours, then computes and packs the cells for which
/// neighbours wait, then computes all other cells. Faces of slabs are whole planes, which need no packing. With
/// exchange::direct, a step is one launch for each device. step() and set() with another field return at once; the
/// accesses that launches declare determine which launches run concurrently.
class field {
 public:
  /// order: an even number from 2 to 16. speed(x, y, z) is (c dt / spacing)^2, at most stable_speed(order). Direct
  /// exchange needs slabs, and neighbouring devices that reach each other's memory. Throws bad_input for an order, a
  /// grid, or a number of devices that is not possible, and if direct exchange is not possible. Does not check the
  /// speed.
  field(const triple& cells, std::int64_t order, const triple& parts,
        const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& speed, exchange how = exchange::copied);

  /// Sets the present field and the field of the previous step to the same values.
  void set(const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& value);

  /// Copies the field of `other` from device to device. Throws bad_input if the boxes of the two fields differ.
  void set(const field& other);

  void step();

  /// Returns the present field in host memory, with z fastest.
  [[nodiscard]] std::vector<float> values() const { return values(0, cells_[1]); }
  /// Returns only the rows [from, to) along y of the present field.
  [[nodiscard]] std::vector<float> values(std::int64_t from, std::int64_t to) const;

  [[nodiscard]] const std::vector<box>& boxes() const { return boxes_; }

 private:
  /// The cells of one box and its rim, or of the whole grid.
  struct memory {
    array<float> now, next, speed;
  };
  struct part {
    std::size_t memory;                        ///< index in memories_ of the memory that holds the device's box
    array<float> ones;                         ///< the taper of every axis: all ones, for no damping
    std::vector<array<float>> sent, received;  ///< packed faces, by side; empty for slabs and where the grid ends
    order_of_work work;
    std::int64_t multiprocessors;
  };

  [[nodiscard]] memory& memory_of(std::size_t number) { return memories_[parts_[number].memory]; }

  void send(std::size_t number, const array<float>& from);
  void receive(std::size_t number);
  void compute(std::size_t number, const kernels::cell_range& of_box);

  const triple cells_;
  const std::int64_t radius_;
  const bool slabs_;
  const std::vector<box> boxes_;
  std::vector<memory> memories_;
  std::vector<part> parts_;
  kernel<kernels::wave_step<float>> step_;
  kernel<kernels::fdtd_pack<float>> pack_{module(), "fdtd_pack_f32"};
  kernel<kernels::fdtd_unpack<float>> unpack_{module(), "fdtd_unpack_f32"};
};

/// Returns the largest speed, (c dt / spacing)^2, with which steps of this order are stable in three dimensions.
[[nodiscard]] double stable_speed(std::int64_t order);

}  // namespace hpe::fdtd
