#include "runtime/memory/small_objects.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

// Invariants: a slab is in empty_ exactly if no object is in it, and then it belongs to no size class; it is in
// with_room_[its class] exactly if it has objects and free slots. sizes and free_slots name every slot once.

namespace hpe::memory {

namespace {

std::size_t class_of(std::size_t size) noexcept {
  const std::size_t step = std::max(small_objects::alignment, std::bit_floor(size - 1) / 4);
  return round_up(size, step);
}

}  // namespace

void small_objects::add_slab(std::byte* base) {
  const std::lock_guard lock(mutex_);
  const bool is_new = slabs_.try_emplace(base).second;
  HPE_INVARIANT(is_new);
  empty_.insert(base);
}

bool small_objects::remove_slab(std::byte* base) {
  const std::lock_guard lock(mutex_);
  if (empty_.erase(base) == 0) return false;
  slabs_.erase(base);
  return true;
}

std::byte* small_objects::allocate(std::size_t size) {
  HPE_INVARIANT(size != 0 && size <= largest);
  const std::size_t size_class = class_of(size);
  const std::lock_guard lock(mutex_);

  std::set<std::byte*>& candidates = with_room_[size_class];
  if (candidates.empty()) {
    if (empty_.empty()) return nullptr;
    std::byte* base = *empty_.begin();
    slab& fresh = slabs_.at(base);
    const std::size_t slots = granule_size / size_class;
    fresh.size_class = size_class;
    fresh.sizes.assign(slots, 0);
    fresh.free_slots.resize(slots);
    for (std::size_t i = 0; i < slots; ++i) fresh.free_slots[i] = static_cast<std::uint16_t>(slots - 1 - i);
    candidates.insert(base);
    empty_.erase(base);
  }

  std::byte* base = *candidates.begin();
  slab& owner = slabs_.at(base);
  const std::size_t slot = owner.free_slots.back();
  owner.free_slots.pop_back();
  owner.sizes[slot] = static_cast<std::uint32_t>(size);
  if (owner.free_slots.empty()) candidates.erase(base);
  return base + slot * size_class;
}

std::byte* small_objects::free(const void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = place_of(static_cast<const std::byte*>(pointer));
  HPE_REQUIRE(found, HPE_ERROR_NOT_A_REGION, "{} was to be freed, but no allocation is there now", pointer);
  slab& owner = slabs_.at(found->slab);
  const std::byte* start = found->slab + found->slot * owner.size_class;
  HPE_REQUIRE(start == pointer, HPE_ERROR_NOT_A_REGION,
              "{} was to be freed, but it lies inside an allocation of {} bytes that starts at {}", pointer,
              owner.sizes[found->slot], static_cast<const void*>(start));

  owner.sizes[found->slot] = 0;
  owner.free_slots.push_back(static_cast<std::uint16_t>(found->slot));
  if (owner.free_slots.size() < owner.sizes.size()) {
    with_room_[owner.size_class].insert(found->slab);
    return nullptr;
  }
  with_room_[owner.size_class].erase(found->slab);
  empty_.insert(found->slab);
  owner = {};
  return found->slab;
}

std::optional<small_objects::object> small_objects::find(const void* pointer) const {
  const auto* p = static_cast<const std::byte*>(pointer);
  const std::lock_guard lock(mutex_);
  const auto found = place_of(p);
  if (!found) return std::nullopt;
  const slab& owner = slabs_.at(found->slab);
  std::byte* start = found->slab + found->slot * owner.size_class;
  const std::size_t size = owner.sizes[found->slot];
  if (static_cast<std::size_t>(p - start) >= size) return std::nullopt;
  return object{start, size};
}

// The slot in use that the address lies in, its padding included.
std::optional<small_objects::place> small_objects::place_of(const std::byte* p) const {
  const auto next = slabs_.upper_bound(p);
  if (next == slabs_.begin()) return std::nullopt;
  const auto& [base, owner] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(p - base);
  if (offset >= granule_size || owner.sizes.empty()) return std::nullopt;
  const std::size_t slot = offset / owner.size_class;
  if (slot >= owner.sizes.size() || owner.sizes[slot] == 0) return std::nullopt;
  return place{base, slot};
}

}  // namespace hpe::memory
