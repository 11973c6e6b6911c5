#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "apps/rtm/grid.h"
#include "apps/rtm/keep/field_store.h"
#include "apps/rtm/rtm_team.h"
#include "apps/rtm/wave_field.h"
#include "hpe/hpe.hpp"
#include "kernels/absorb.h"
#include "kernels/wave_parameters.h"

namespace hpe::rtm {

/// Planes [x0, x1) that one launch of a step computes, on a device of the decomposition.
struct plane_range {
  int device;
  std::int64_t x0, x1;
};

/// Whether a device launches a step as one range, or first launches the ranges that neighbours read, so that neighbours
/// do not wait for the other ranges.
enum class launch_order { at_once, rims_first };

/// How a group of consecutive devices shares a grid: device d of the group owns the planes [planes[d], planes[d + 1]).
struct decomposition {
  std::vector<std::int64_t> planes;
  std::vector<plane_range> ranges;
  int first_device = 0;

  [[nodiscard]] int devices() const { return static_cast<int>(planes.size()) - 1; }
  [[nodiscard]] std::int64_t first(int d) const { return planes[static_cast<std::size_t>(d)]; }
  [[nodiscard]] std::int64_t last(int d) const { return planes[static_cast<std::size_t>(d) + 1]; }
  /// Returns the number that launches and placements use for device d of the group.
  [[nodiscard]] int device(int d) const { return first_device + d; }
  [[nodiscard]] std::vector<int> list() const;
  /// Waits for all work on these devices.
  void synchronize() const;
};

/// Whether another process has planes before or after this process's planes of a grid.
struct neighbours {
  bool before = false, after = false;
};

/// Cuts a grid into equal slabs. If a placement boundary is at most a fiftieth of a slab away from a slab's end, the
/// end moves to this boundary.
decomposition decompose(const kernels::field_layout& layout, int devices, std::size_t element_size,
                        launch_order order = launch_order::rims_first, neighbours beyond = {}, int first_device = 0);

/// Returns the cells of the model that device d owns. The nx of the window may be 0.
[[nodiscard]] kernels::window model_part(const grid& g, const decomposition& parts, int d);

/// Bytes of one kept field on the cells of a window. bits: the bits of a cell; 0: uncompressed.
template <class T>
[[nodiscard]] std::size_t kept_bytes(const kernels::window& w, std::int64_t bits);

/// Points of a grid with a series of samples each, one for every time step: a source's signature or recorded traces.
/// Each device holds the points of its ranges of planes.
template <class T>
class traces {
 public:
  traces(const decomposition& parts, const std::vector<kernels::point>& points, std::int64_t steps);

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] std::size_t count() const { return count_; }

  /// Returns all samples, step by step: [step][point], with the points in the given order.
  [[nodiscard]] std::vector<T> read() const;
  void write(const std::vector<T>& samples);

  /// The points of one range of planes, and their samples [step][point].
  struct share {
    std::vector<std::size_t> numbers;  ///< indices of the points in the given list
    array<kernels::point> points;
    array<T> samples;

    [[nodiscard]] std::size_t count() const { return numbers.size(); }
    [[nodiscard]] std::span<T> row(std::int64_t step) const {
      return samples.subspan(static_cast<std::size_t>(step) * count(), count());
    }
  };
  [[nodiscard]] const share& of(std::size_t range) const { return shares_[range]; }

 private:
  std::int64_t steps_;
  std::size_t count_;
  std::vector<share> shares_;
};

/// The velocities and densities of one model in the form that kernels use: speed = g (c dt)^2 and, if the density
/// varies, the potential on every cell of the grid. The model's outermost values continue through the absorbing layers.
/// If the density varies, wave fields are pressure / sqrt(density).
template <class T>
struct medium {
  /// density: the densities of the model's cells; null: constant density.
  medium(const grid& g, const decomposition& parts, const volume& velocity, double time_step,
         const volume* density = nullptr);
  array<T> speed;
  array<T> potential;  ///< empty if the density is constant
};

/// Wave fields kept for the imaging condition: [device][number][cell of the device's part of the model]. bits: the
/// number of bits, 4, 8 or 16, that encode a cell within the range of values of its block (kernels/wave_parameters.h);
/// 0: uncompressed.
template <class T>
class kept_fields {
 public:
  kept_fields(const grid& g, const decomposition& parts, std::int64_t count, std::int64_t bits = 0);

  [[nodiscard]] std::int64_t bits() const { return bits_; }
  /// Returns the cells of the model that device d owns. The nx of the window may be 0.
  [[nodiscard]] kernels::window window(int d) const { return windows_[static_cast<std::size_t>(d)]; }
  /// Returns a field's part on device d.
  [[nodiscard]] std::span<std::uint8_t> bytes(int d, std::int64_t number) const;
  /// Returns the memory reserved for a field's part on device d, a multiple of `sector` bytes.
  [[nodiscard]] std::span<std::uint8_t> room(int d, std::int64_t number) const;
  /// Returns a field's part on device d as cells; bits() must be 0.
  [[nodiscard]] std::span<T> on(int d, std::int64_t number) const;

  /// Returns the bytes of `count` fields on the device that needs the most bytes.
  static std::size_t bytes_per_device(const grid& g, const decomposition& parts, std::int64_t count,
                                      std::int64_t bits = 0);

 private:
  std::vector<kernels::window> windows_;
  std::int64_t bits_;
  std::size_t part_;  ///< bytes from one device's part to the next one
  array<std::uint8_t> fields_;
};

/// The image and the illumination of one or more shots, on the model's cells. CPU code may use both as ordinary arrays.
template <class T>
struct stack {
  stack(const grid& g, const decomposition& parts);
  /// Sets the image and the illumination to zero.
  void clear() const;
  array<T> image, illumination;
};

/// The wave equation on one grid, spread over devices. A device's kernel reads planes of neighbouring devices, either
/// in their memory or as copies (wave_field.h). The accesses that launches declare order launches and copies. All calls
/// return at once. The result does not depend on the kind of exchange.
template <class T>
class propagator {
 public:
  /// outside: the exchange with the other processes that have slabs of the grid; null: no other process has a slab. The
  /// outermost planes are computed first, so that the exchange runs while the other planes are computed.
  propagator(const grid& g, const decomposition& parts, exchange how = exchange::direct,
             std::unique_ptr<halo_exchange> outside = nullptr);

  /// Sets the present field, the previous field and the memories of matched layers to zero.
  void reset();

  /// Adds step t of `injected` to the next field, copies the present field to step t of `recorded` (either may be
  /// null), and advances by one step. Steps with descending t are the adjoint of steps with ascending t.
  void step(const medium<T>& m, const traces<T>* injected, const traces<T>* recorded, std::int64_t t);

  /// Stores the present field as field `number` of `to`.
  void keep(const kept_fields<T>& to, std::int64_t number);

  /// Adds the product of the present field and a kept field to the image, and the kept field's square to the
  /// illumination.
  void correlate(const kept_fields<T>& with, std::int64_t number, const stack<T>& onto);

  /// Returns the present field on all cells of the grid, for the host. Valid until the next step.
  [[nodiscard]] const array<T>& field() { return now_.whole(); }

  /// Exchanges the present field and the previous field. Without damping, steps then go back in time.
  void turn() { std::swap(now_, next_); }

  /// Returns the present field in the memory of devices. Valid until the next step.
  [[nodiscard]] const wave_field<T>& present() const { return now_; }

  /// Returns the memory of device d that determines all further steps. Valid until the next step. Propagators on the
  /// same grid have lists of the same lengths, so copies of these ranges save and restore a state.
  [[nodiscard]] std::vector<std::span<T>> state(int d) const;

 private:
  /// A device's part of a matched layer, and the memory variables of its cells.
  struct layer_part {
    array<T> memory, rates;
    kernels::absorb<T> parameters;
    hpeShape shape;
  };
  [[nodiscard]] layer_part make_layers(int device) const;
  /// Applies the matched layers to the next field. Does nothing if the grid has a sponge.
  void absorb(const medium<T>& m);

  /// Returns planes [x0, x1) of an array with the layout of a field.
  [[nodiscard]] std::span<T> planes(const array<T>& a, std::int64_t x0, std::int64_t x1) const;

  /// Begins to exchange the outermost planes of the next field.
  void begin_exchange();

  const grid grid_;
  const decomposition parts_;
  wave_field<T> now_, next_;
  std::vector<array<T>> tapers_;      ///< tapers of x, then y, then z; a copy for each device
  std::vector<kernels::slab> slabs_;  ///< slab of each device
  std::vector<kernels::slab> cuts_;   ///< planes of each range, cut into tiles
  std::vector<layer_part> layers_;    ///< matched layers, by device; empty if the grid has a sponge
  kernel<kernels::wave_step<T>> step_;
  kernel<kernels::absorb<T>> absorb_;
  kernel<kernels::keep<T>> keep_;
  kernel<kernels::correlate<T>> correlate_;
  kernel<kernels::keep_compressed<T>> keep_compressed_;
  kernel<kernels::correlate_compressed<T>> correlate_compressed_;
  const std::unique_ptr<halo_exchange> outside_;  ///< the last member: its destructor waits for messages to the fields
};

}  // namespace hpe::rtm
