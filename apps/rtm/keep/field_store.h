#pragma once

/// Stores for items of equal size, such as kept wave fields, between the pass that makes the items and the pass that
/// uses them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/rtm/keep/codec.h"

namespace hpe::rtm {

enum class keep_place { automatic, device, host, disk };

/// The alignment of slots and of writes to disk, as O_DIRECT requires.
inline constexpr std::size_t sector = 4096;

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

/// Device memory for some items: slots[s][d] is device d's part of slot s. The address and the size of a part are
/// multiples of `sector`; the part is empty if the device has no part of items.
using slots = std::vector<std::vector<std::span<std::uint8_t>>>;

/// Stores items that kernels write in ascending order, from 0 on, and returns each item to kernels once, in descending
/// order. The next series of items may then begin. Items move between slots and the place of storage while kernels run.
/// Only one thread at a time may use a store.
class field_store {
 public:
  virtual ~field_store() = default;

  /// Returns the slot into which kernels write the item. Waits until the slot is free. Throws std::runtime_error if an
  /// earlier item could not be kept, for example because the disk is full.
  virtual std::int64_t to_write(std::int64_t item) = 0;
  /// To be called when the kernels that write the item are queued.
  virtual void written(std::int64_t item) = 0;

  /// Returns the slot from which kernels read the item. Waits until the item is available. Throws the same errors as
  /// to_write.
  virtual std::int64_t to_read(std::int64_t item) = 0;
  /// To be called when the kernels that read the item are queued.
  virtual void was_read(std::int64_t item) = 0;
};

struct store_settings {
  keep_place where = keep_place::device;
  std::int64_t items = 0;
  std::string folder;                ///< disk: the folder of the file, which has no name and thus ends with the process
  std::unique_ptr<codec> packing{};  ///< host and disk: packs the parts of slots; null: no packing
};

/// Returns the number of slots of a store: one for each item if the items stay on devices, else the length of a ring in
/// which copies can run ahead of kernels.
[[nodiscard]] std::int64_t slots_of(keep_place where, std::int64_t items, std::size_t item_bytes);

/// Returns a store over slots_of() slots, which the caller owns. Throws bad_input if the folder has too little space or
/// cannot be written.
[[nodiscard]] std::unique_ptr<field_store> make_store(store_settings s, slots memory);

}  // namespace hpe::rtm
