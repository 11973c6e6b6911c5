#include "runtime/memory/small_objects.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

// Invariants: a slab without objects is in empty_ and has no size class; a slab with objects and free slots is in
// with_room_[its class]; a full slab is in full_. When a slab moves to another set, its set node moves too, so that
// freeing an object allocates no memory. For each slot, either sizes has the size of its object, or free_slots contains
// the slot.

namespace hpe::memory {

namespace {

constexpr std::uint32_t retired_bit = std::uint32_t{1} << 31;

[[noreturn]] void throw_freed(const small_objects::object& what) {
  HPE_THROW(HPE_ERROR_NOT_A_REGION, "the allocation of {} bytes at {} was freed by another thread just now", what.size,
            static_cast<void*>(what.base));
}

std::size_t class_of(std::size_t size) noexcept {
  const std::size_t step = std::max(small_objects::alignment, std::bit_floor(size - 1) / 4);
  return round_up(size, step);
}

void move(std::byte* slab, std::set<std::byte*>& from, std::set<std::byte*>& to) { to.insert(from.extract(slab)); }

}  // namespace

void small_objects::add_slab(std::byte* base) {
  const lock_guard lock(mutex_);
  std::set<std::byte*> made{base};
  const bool is_new = slabs_.try_emplace(base).second;
  HPE_INVARIANT(is_new);
  empty_.merge(made);
}

bool small_objects::remove_slab(std::byte* base) noexcept {
  const lock_guard lock(mutex_);
  if (empty_.erase(base) == 0) return false;
  slabs_.erase(base);
  return true;
}

std::byte* small_objects::allocate(std::size_t size) {
  HPE_INVARIANT(size != 0 && size <= largest);
  const std::size_t size_class = class_of(size);
  const lock_guard lock(mutex_);

  std::set<std::byte*>& candidates = with_room_[size_class];
  if (candidates.empty()) {
    if (empty_.empty()) return nullptr;
    std::byte* base = *empty_.begin();
    const std::size_t slots = granule_size / size_class;
    slab fresh{size_class, std::vector<std::uint32_t>(slots), std::vector<std::uint16_t>(slots)};
    for (std::size_t i = 0; i < slots; ++i) fresh.free_slots[i] = static_cast<std::uint16_t>(slots - 1 - i);
    slabs_.at(base) = std::move(fresh);
    move(base, empty_, candidates);
  }

  std::byte* base = *candidates.begin();
  slab& owner = slabs_.at(base);
  const std::size_t slot = owner.free_slots.back();
  owner.free_slots.pop_back();
  owner.sizes[slot] = static_cast<std::uint32_t>(size);
  if (owner.free_slots.empty()) move(base, candidates, full_);
  return base + slot * size_class;
}

small_objects::slabs::iterator small_objects::slab_of(const object& what, std::uint32_t size) {
  const auto next = slabs_.upper_bound(what.base);
  if (next == slabs_.begin()) return slabs_.end();
  const auto found = std::prev(next);
  const slab& owner = found->second;
  const auto offset = static_cast<std::size_t>(what.base - found->first);
  const bool there = owner.size_class != 0 && offset % owner.size_class == 0 &&
                     offset / owner.size_class < owner.sizes.size() && owner.sizes[offset / owner.size_class] == size;
  return there ? found : slabs_.end();
}

void small_objects::set_retired(const object& what, bool retired) {
  const lock_guard lock(mutex_);
  const auto size = static_cast<std::uint32_t>(what.size);
  const auto found = slab_of(what, retired ? size : size | retired_bit);
  if (found == slabs_.end()) throw_freed(what);
  auto& [base, owner] = *found;
  owner.sizes[static_cast<std::size_t>(what.base - base) / owner.size_class] ^= retired_bit;
}

std::byte* small_objects::free(const object& what) {
  const lock_guard lock(mutex_);
  const auto size = static_cast<std::uint32_t>(what.size);
  auto found = slab_of(what, size);
  if (found == slabs_.end()) found = slab_of(what, size | retired_bit);
  if (found == slabs_.end()) throw_freed(what);
  auto& [base, owner] = *found;
  const std::size_t slot = static_cast<std::size_t>(what.base - base) / owner.size_class;
  std::set<std::byte*>& with_room = with_room_.at(owner.size_class);
  if (owner.free_slots.empty()) move(base, full_, with_room);
  owner.sizes[slot] = 0;
  owner.free_slots.push_back(static_cast<std::uint16_t>(slot));
  if (owner.free_slots.size() < owner.sizes.size()) return nullptr;
  move(base, with_room, empty_);
  owner = {};
  return base;
}

bool small_objects::alone(const object& what) const {
  const lock_guard lock(mutex_);
  const auto next = slabs_.upper_bound(what.base);
  if (next == slabs_.begin()) return false;
  const auto& [base, owner] = *std::prev(next);
  if (owner.free_slots.size() + 1 != owner.sizes.size()) return false;
  const auto slot = static_cast<std::size_t>(what.base - base) / owner.size_class;
  return slot < owner.sizes.size() && (owner.sizes[slot] & ~retired_bit) == what.size;
}

std::optional<small_objects::object> small_objects::find(const void* pointer) const {
  const auto before = find_before(pointer);
  const bool inside = before && static_cast<const std::byte*>(pointer) < before->base + before->size;
  return inside ? before : std::nullopt;
}

std::optional<small_objects::object> small_objects::find_before(const void* pointer) const {
  const lock_guard lock(mutex_);
  return last_before(static_cast<const std::byte*>(pointer));
}

std::optional<small_objects::object> small_objects::last_before(const std::byte* p) const {
  const auto next = slabs_.upper_bound(p);
  if (next == slabs_.begin()) return std::nullopt;
  const auto& [base, owner] = *std::prev(next);
  const auto offset = static_cast<std::size_t>(p - base);
  if (offset >= 2 * granule_size || owner.sizes.empty()) return std::nullopt;
  for (std::size_t slot = std::min(offset / owner.size_class, owner.sizes.size() - 1) + 1; slot-- > 0;)
    if (owner.sizes[slot] != 0 && (owner.sizes[slot] & retired_bit) == 0)
      return object{base + slot * owner.size_class, owner.sizes[slot]};
  return std::nullopt;
}

}  // namespace hpe::memory
