#include "runtime/work/device_room.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/node/device_share.h"

namespace hpe::work {

std::uint64_t device_room::most_of(unsigned home) const {
  const device::device& it = devices_.at(home);
  const std::uint64_t total = it.info().memory_bytes;
  return total - std::min<std::uint64_t>(total, it.info().spare_bytes + withheld_[home].load());
}

std::uint64_t device_room::most_now(unsigned home) const {
  const device::device& it = devices_.at(home);
  if (it.share() != nullptr) return most_of(home);
  const std::uint64_t has = it.memory().free + count_.device_memory[home].load();
  return std::min<std::uint64_t>(most_of(home), has - std::min<std::uint64_t>(has, it.info().spare_bytes));
}

std::uint64_t device_room::piece_size(std::span<const std::uint16_t> homes, std::uint64_t most) const {
  std::uint64_t least = largest_piece * pieces_of_a_device;
  for (const std::uint16_t home : homes)
    if (home < devices_.size()) least = std::min<std::uint64_t>(least, devices_.at(home).info().memory_bytes);
  least = std::min(least / pieces_of_a_device, most);
  return std::clamp(std::bit_floor(std::max<std::uint64_t>(least, 1)), least_piece, largest_piece);
}

std::uint64_t device_room::most_for_a_copy(const coherence::region& r) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (std::uint64_t homes = r.home_set(); homes != 0; homes &= homes - 1)
    least =
        std::min<std::uint64_t>(least, devices_.at(static_cast<unsigned>(std::countr_zero(homes))).info().memory_bytes);
  constexpr std::uint64_t part = 8;
  return std::max<std::uint64_t>(least / part / granule_size * granule_size, granule_size);
}

std::string how_to_need_less(std::span<const device_access> accesses) {
  if (std::ranges::any_of(accesses, &device_access::only_mapped))
    return "it may follow pointers in memory to all allocations; raise HPE_HOST_MEMORY, or free allocations; with "
           "hpe run --scope args, which is for kernels that use only the allocations to which their parameters point, "
           "only these must fit";
  if (std::ranges::any_of(accesses, &device_access::if_alive))
    return "it may use all allocations, because it was queued without a list of its accesses (HPE_ALL, or a kernel of "
           "a CUDA program that hpe does not know); with a list, or hpe run --scope args, only the named data must fit";
  return fmt::format(
      "it names {} range{}; a launch over a part of the data, or accesses of only the bytes that it uses "
      "(hpeAccess.size), need less",
      accesses.size(), accesses.size() == 1 ? "" : "s");
}

void device_room::throw_too_large(unsigned home, std::uint64_t bytes, std::span<const device_access> accesses) const {
  HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "the work needs {} bytes on device {} at once, which gives this process {}: {}",
            bytes, home, most_now(home), how_to_need_less(accesses));
}

void device_room::throw_full(unsigned home, std::uint64_t bytes) const {
  const device::memory_usage memory = devices_.at(home).memory();
  const node::device_share* const share = devices_.at(home).share();
  HPE_THROW(HPE_ERROR_OUT_OF_MEMORY,
            "device {} has {} bytes of memory left of {}, and {} more are needed; no data of this process can make "
            "room for them{}",
            home, memory.free, memory.total, bytes, share == nullptr ? "" : "; " + share->others_in_words());
}

}  // namespace hpe::work
