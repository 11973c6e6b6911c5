#include "runtime/memory/directory.h"

#include <span>

#include "runtime/base/error.h"

namespace hpe::memory {

namespace {

// The table takes 4 MiB for each TiB of the UVAS, and memory only where entries are used. Untouched pages read as
// zero, which is the entry of no region. It is asked for behind the view and its alias.
os::reservation reserve_table(const device::uvas_layout& layout) {
  const std::size_t bytes = round_up(layout.size() / granule_size * sizeof(granule_entry), os::page_size());
  os::reservation table((layout.base + 2 * layout.size()) / os::page_size() * os::page_size(), bytes, os::page_size());
  HPE_REQUIRE(os::protect(table.data(), bytes, os::access::read_write), HPE_ERROR_INITIALIZATION,
              "no memory for the table of {} granules", layout.size() / granule_size);
  return table;
}

}  // namespace

directory::directory(const device::uvas_layout& layout)
    : base_(layout.base),
      size_(layout.size()),
      memory_(reserve_table(layout)),
      entries_(reinterpret_cast<slot*>(memory_.data())) {}

void directory::assign(const void* first, std::size_t granules, granule_entry entry) noexcept {
  for (slot& s : std::span(slot_of(first), granules)) s.store(entry, std::memory_order_release);
}

void directory::set_home(const void* first, std::size_t granules, std::uint16_t home) noexcept {
  for (slot& s : std::span(slot_of(first), granules)) {
    granule_entry entry = s.load(std::memory_order_relaxed);
    entry.home = home;
    s.store(entry, std::memory_order_release);
  }
}

}  // namespace hpe::memory
