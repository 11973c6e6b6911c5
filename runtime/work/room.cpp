// How much memory data may use, on devices and on the host (class residency).
#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/node/device_share.h"
#include "runtime/work/residency.h"

namespace hpe::work {

namespace {

constexpr std::uint64_t least_piece = granule_size;
// Mapping and unmapping a piece takes the CUDA driver about a tenth of a millisecond, regardless of the piece's size.
constexpr std::uint64_t largest_piece = std::uint64_t{64} << 20;
constexpr std::uint64_t pieces_of_a_device = 64;

}  // namespace

std::uint64_t residency::most_of(unsigned home) const {
  const device::device& it = devices_.at(home);
  const std::uint64_t total = it.info().memory_bytes;
  return total - std::min<std::uint64_t>(total, it.info().spare_bytes + withheld_[home].load());
}

std::uint64_t residency::room_of(unsigned home) const {
  const device::device& it = devices_.at(home);
  if (it.share() != nullptr) return most_of(home);
  const std::uint64_t has = it.memory().free + count_.device_memory[home].load();
  return std::min<std::uint64_t>(most_of(home), has - std::min<std::uint64_t>(has, it.info().spare_bytes));
}

void residency::withhold(unsigned home, std::uint64_t bytes) {
  const std::uint64_t most = most_of(home);
  HPE_REQUIRE(bytes <= most, HPE_ERROR_OUT_OF_MEMORY,
              "device {} gives this process {} more bytes for memory that cannot move, of {} in all; {} were requested "
              "(HPE_DEVICE_MEMORY sets the total)",
              home, most, devices_.at(home).info().memory_bytes, bytes);
  short_ = true;
  for (std::uint64_t ended = changes_ended_.load(); !devices_.at(home).withhold(bytes); ended = changes_ended_.load())
    if (evict(home, bytes) == 0 && !wait_for_change(ended)) throw_no_room(home, bytes);
  withheld_[home] += bytes;
}

void residency::restore(unsigned home, std::uint64_t bytes) noexcept {
  withheld_[home] -= bytes;
  devices_.at(home).restore(bytes);
}

void residency::make_room_on_host(std::uint64_t bytes) {
  if (!host_.limited() || host_.most_to_take() + eviction_.zero_copy_bytes() < bytes) return;
  for (unsigned home = 0; home < devices_.size(); ++home) {
    const lock_guard lock(*turns_[home]);
    const std::uint64_t most = host_.most_to_take();
    if (most < bytes) eviction_.free_zero_copy(home, clock_.fetch_add(1) + 1, bytes - most);
  }
}

std::uint64_t residency::piece_size(std::span<const std::uint16_t> homes) const {
  std::uint64_t least = largest_piece * pieces_of_a_device;
  for (const std::uint16_t home : homes)
    if (home < devices_.size()) least = std::min<std::uint64_t>(least, devices_.at(home).info().memory_bytes);
  least = std::min(least / pieces_of_a_device, host_.most_at_once());
  return std::clamp(std::bit_floor(std::max<std::uint64_t>(least, 1)), least_piece, largest_piece);
}

std::uint64_t residency::most_for_a_copy(const coherence::region& r) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (std::uint64_t homes = r.home_set(); homes != 0; homes &= homes - 1)
    least =
        std::min<std::uint64_t>(least, devices_.at(static_cast<unsigned>(std::countr_zero(homes))).info().memory_bytes);
  constexpr std::uint64_t part = 8;
  return std::max<std::uint64_t>(least / part / granule_size * granule_size, granule_size);
}

}  // namespace hpe::work
