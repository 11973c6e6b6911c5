#pragma once

/// Where items of equal size, such as kept wave fields, are between the pass that makes them and the pass that uses
/// them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/rtm/keep/codec.h"

namespace hpe::rtm {

enum class keep_place { automatic, device, host, disk };

/// The alignment of slots and of what is written to disk: O_DIRECT asks for it.
inline constexpr std::size_t sector = 4096;

/// Room for some items in the memory of devices: slots[s][d] is the part of device d of slot s, at an aligned address
/// and of a size that is a multiple of `sector`. A device without a part has an empty one.
using slots = std::vector<std::vector<std::span<std::uint8_t>>>;

/// Keeps items that kernels write in rising order, from 0 on, and gives them back to kernels in falling order, once.
/// Then the next items may begin. Items move between slots and their place while kernels run. One thread at a time.
class field_store {
 public:
  virtual ~field_store() = default;

  /// The slot for the kernels that write the item. Waits until the slot is free. Throws std::runtime_error if an
  /// earlier item could not be kept, for example because the disk is full.
  virtual std::int64_t to_write(std::int64_t item) = 0;
  /// The kernels that write the item are queued.
  virtual void written(std::int64_t item) = 0;

  /// The slot that holds the item for kernels. Waits until the item is there. Throws as to_write.
  virtual std::int64_t to_read(std::int64_t item) = 0;
  /// The kernels that read the item are queued.
  virtual void was_read(std::int64_t item) = 0;
};

struct store_settings {
  keep_place where = keep_place::device;
  std::int64_t items = 0;
  std::string folder;  ///< disk: where the file is. The file has no name, so a killed process leaves none.
  std::unique_ptr<codec> packing{};  ///< host and disk: packs the parts of slots; none: they are kept as they are
};

/// The number of slots of a store: one for each item on devices, else a ring that lets copies run ahead.
[[nodiscard]] std::int64_t slots_of(keep_place where, std::int64_t items, std::size_t item_bytes);

/// A store over slots_of() slots, which the caller owns. Throws bad_input if the folder has too little space or cannot
/// be written.
[[nodiscard]] std::unique_ptr<field_store> make_store(store_settings s, slots memory);

}  // namespace hpe::rtm
