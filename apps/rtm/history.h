#pragma once

/// The source's wave field between the two passes of a shot. The forward pass computes this field forward in time, and
/// the imaging condition uses it backward in time.

#include <cstdint>
#include <memory>
#include <string>

#include "apps/rtm/keep/field_store.h"
#include "apps/rtm/wave.h"

namespace hpe::rtm {

/// The data from which the backward pass obtains the source's field.
enum class keep_method {
  automatic,
  fields,      ///< the field at every keep_every-th step
  boundary,    ///< the cells around the model at every step and the last two fields, from which steps run backward
  checkpoints  ///< the state at few steps; all other states are computed again from these states (Revolve)
};

/// How a migration keeps the source's field. Without zfp, the image has the same bits for every place of `fields`.
/// Uncompressed `checkpoints` and uncompressed `fields` give the same bits.
struct keeping {
  keep_method how = keep_method::automatic;
  keep_place where = keep_place::automatic;
  std::int64_t bits = 0;         ///< bits of a cell in kept fields: 4, 8 or 16; 0: uncompressed
  bool zfp = false;              ///< the host compresses with zfp; false: kernels compress (kernels/wave_parameters.h)
  std::int64_t checkpoints = 0;  ///< number of checkpoints; 0: as many as fit into memory
  std::string folder = ".";      ///< folder of the file for keep_place::disk
};

/// The grid, its division among devices, and the steps of a pass, which together determine the size of the kept data.
/// The grid and the decomposition must outlive a history.
struct history_shape {
  const grid& cells;
  const decomposition& parts;
  std::int64_t steps;
  std::int64_t keep_every;

  bool cut = false;          ///< the grid is cut over processes; only fields can be kept
  std::int64_t at_once = 1;  ///< number of histories that share the host's memory and the disk

  /// Returns the number of fields that the imaging condition uses.
  [[nodiscard]] std::int64_t fields() const { return (steps + keep_every - 1) / keep_every; }
};

/// Keeps the source's field by one of the methods. Shots use a history one after another, each with one forward and one
/// backward pass.
class source_history {
 public:
  virtual ~source_history() = default;

  /// To be called before step t of the forward pass, for each t in ascending order.
  virtual void before_step(propagator<float>& forward, std::int64_t t) = 0;

  /// To be called after the last forward step. The references must stay valid until the end of the backward pass.
  virtual void turn(const propagator<float>& forward, const medium<float>& m, const traces<float>& source) = 0;

  /// To be called before step t of the backward pass, for each t in descending order: adds to the image if t is a
  /// multiple of keep_every.
  virtual void correlate(propagator<float>& backward, std::int64_t t, const stack<float>& onto) = 0;
};

/// Makes a history. `how` and `where` must not be automatic. Throws bad_input for a folder that cannot be used, and
/// hpe::error if there is too little memory.
[[nodiscard]] std::unique_ptr<source_history> make_history(const history_shape& shape, const keeping& k);

/// Bytes of one item that a method keeps: on the device with the largest part, on all devices together, and at the
/// item's final place.
struct item_bytes {
  std::size_t on_one_device = 0, on_devices = 0, kept = 0;
};
[[nodiscard]] item_bytes bytes_of_field(const history_shape& shape, const keeping& k);
[[nodiscard]] item_bytes bytes_of_boundary(const history_shape& shape);
[[nodiscard]] item_bytes bytes_of_checkpoint(const history_shape& shape);

}  // namespace hpe::rtm
