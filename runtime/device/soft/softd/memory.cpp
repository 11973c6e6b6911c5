#include "runtime/device/soft/softd/memory.h"

#include <mutex>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::device::soft {

namespace {

constexpr std::size_t room = std::size_t{64} << 10;
static_assert(room < granule_size);

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses are numbers in requests
}

}  // namespace

bool page_tables::filled(std::uintptr_t number) const {
  const shared_lock_guard lock(mutex_);
  return filled_.contains(number);
}

void page_tables::prepare(void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t last = (begin + bytes) / unit;
  // Only whole units are filled here. Page faults fill the page tables of units that are written only in part.
  for (std::uintptr_t number = (begin + unit - 1) / unit; number < last;) {
    if (filled(number)) {
      ++number;
      continue;
    }
    const std::uintptr_t first = number;
    while (number < last && !filled(number)) ++number;
    auto* const place = reinterpret_cast<void*>(first * unit);  // NOLINT(performance-no-int-to-ptr): of this process
    const std::size_t size = (number - first) * unit;
    // Allocating huge pages in one call has a fixed cost, because Linux first makes every processor drain its lists of
    // free pages. So short ranges are filled with small pages.
    size >= worth_huge_pages ? os::populate_with_huge_pages(place, size) : os::populate_for_writing(place, size);
    const lock_guard lock(mutex_);
    for (std::uintptr_t n = first; n < number; ++n) filled_.insert(n);
  }
}

void page_tables::forget(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const lock_guard lock(mutex_);
  if (filled_.empty()) return;
  for (std::uintptr_t number = begin / unit; number * unit < begin + bytes; ++number) filled_.erase(number);
}

namespace {

os::reservation reserve(const uvas_layout& layout) {
  return os::reservation::at(layout.base - granule_size, layout.size() + granule_size);
}

}  // namespace

bool address_space::is_free(const uvas_layout& layout) { return reserve(layout).size() != 0; }

address_space::address_space(const uvas_layout& layout) : layout_(layout), space_(reserve(layout)) {
  HPE_REQUIRE(
      space_.size() != 0, HPE_ERROR_INITIALIZATION,
      "the {} bytes at {:#x} are not free in the process of a soft device; set HPE_ADDRESS_BASE to another address",
      layout.size(), layout.base);
}

void address_space::make_room_below(std::uintptr_t address) {
  if (table_.find(address - room) || table_.find(address - 1)) return;
  if (!os::protect(pointer(address - room), room, os::page_protection::read_write)) return;
  const lock_guard lock(mutex_);
  rooms_.insert(address);
}

// Unmaps the separate memory of rooms (see memory.h) that overlap a range that is about to be mapped.
void address_space::take_room(std::uintptr_t begin, std::uintptr_t end) {
  const lock_guard lock(mutex_);
  for (auto its = rooms_.upper_bound(begin); its != rooms_.end() && *its - room < end; its = rooms_.erase(its))
    os::unmap_to_reserved(pointer(*its - room), room);
}

void address_space::map(unsigned device, std::uintptr_t address, std::size_t bytes, bool zero_copy) {
  take_room(address, address + bytes);
  make_room_below(address);
  os::map_file(pointer(address), bytes, os::page_protection::read_write, files_.at(device).get(),
               address - layout_.base);
  table_.insert(address, bytes, {static_cast<int>(device), 0, zero_copy});
}

void address_space::unmap(unsigned device, std::uintptr_t address, std::size_t bytes) {
  table_.erase(address, bytes, static_cast<int>(device));
  take_away(address, bytes);
}

bool address_space::holds(std::uintptr_t address, std::size_t bytes) const {
  {
    const shared_lock_guard lock(mutex_);
    if (const auto its = rooms_.upper_bound(address); its != rooms_.end() && address >= *its - room) {
      if (address + bytes <= *its) return true;
      bytes -= *its - address;
      address = *its;
    }
  }
  for (std::uintptr_t at = address; at < address + bytes;) {
    const auto range = contains(at) ? table_.find(at) : std::nullopt;
    if (!range) return false;
    at = range->end;
  }
  return true;
}

void address_space::take_away(std::uintptr_t address, std::size_t bytes) {
  pages_.forget(pointer(address), bytes);
  os::unmap_to_reserved(pointer(address), bytes);
  const lock_guard lock(mutex_);
  if (rooms_.erase(address) != 0) os::unmap_to_reserved(pointer(address - room), room);
}

void address_space::register_host(std::uintptr_t address, std::size_t bytes, int file, std::int64_t offset) {
  const auto file_offset = static_cast<std::uint64_t>(offset);
  if (contains(address)) {
    take_room(address, address + bytes);
    os::map_file(pointer(address), bytes, os::page_protection::read_write, file, file_offset);
    table_.insert(address, bytes, {});
    return;
  }
  // Map the registered memory, if possible, 1 TiB below the UVAS, at addresses that programs do not use by default. If
  // a kernel uses a pointer to ordinary memory of the program, it must fault: this device must not have registered
  // memory at that address.
  constexpr std::uintptr_t distance = std::uintptr_t{1} << 40;
  const std::uintptr_t below =
      layout_.base > bytes + distance ? (layout_.base - bytes - distance) / granule_size * granule_size : 0;
  os::reservation place(below, bytes, os::page_size());
  os::map_file(place.data(), bytes, os::page_protection::read_write, file, file_offset);
  os::exclude_from_core(place.data(), bytes);
  table_.insert(address, bytes, {host_location, place.data() - static_cast<std::byte*>(pointer(address))});
  registered_.emplace(address, std::move(place));
}

void address_space::unregister_host(std::uintptr_t address, std::size_t bytes) {
  if (contains(address)) {
    table_.erase(address, bytes, host_location);
    return take_away(address, bytes);
  }
  const auto found = registered_.find(address);
  HPE_REQUIRE(found != registered_.end() && found->second.size() == bytes, HPE_ERROR_INVALID_ARGUMENT,
              "{} bytes of host memory at {:#x} were not registered as one range", bytes, address);
  table_.erase(address, bytes, host_location);
  pages_.forget(found->second.data(), bytes);
  registered_.erase(found);
}

void address_space::import_memory(std::uintptr_t address, std::size_t bytes, int file, std::int64_t offset) {
  take_room(address, address + bytes);
  os::map_file(pointer(address), bytes, os::page_protection::read_write, file, static_cast<std::uint64_t>(offset));
  table_.insert(address, bytes, {foreign_location, 0});
}

void address_space::drop_import(std::uintptr_t address, std::size_t bytes) {
  table_.erase(address, bytes, foreign_location);
  take_away(address, bytes);
}

}  // namespace hpe::device::soft
