#include "runtime/memory/granule_table.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "runtime/base/error.h"

namespace hpe::memory {

namespace {

// The table takes 4 MiB of addresses for each TiB of the UVAS, but memory only for pages in use. Untouched pages read
// as zero, which is the entry of a granule without a region. The preferred place of the table is directly after the
// view and its alias.
os::reservation reserve_table(const uvas_layout& layout) {
  const std::size_t bytes = round_up(layout.size() / granule_size * sizeof(granule_entry), os::page_size());
  os::reservation table((layout.base + 2 * layout.size()) / os::page_size() * os::page_size(), bytes, os::page_size());
  HPE_REQUIRE(os::protect(table.data(), bytes, os::page_protection::read_write), HPE_ERROR_INITIALIZATION,
              "no memory for the table of {} granules", layout.size() / granule_size);
  return table;
}

std::vector<std::uint16_t> devices_of(const hpeDistribution& distribution, unsigned device_count) {
  if (distribution.devices == nullptr) {
    std::vector<std::uint16_t> all(device_count);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    return all;
  }
  HPE_REQUIRE(distribution.device_count != 0, HPE_ERROR_INVALID_ARGUMENT,
              "a distribution over no devices was asked for; name at least one device, or pass NULL for all devices");
  std::vector<std::uint16_t> devices;
  for (std::size_t i = 0; i < distribution.device_count; ++i) {
    const int device = distribution.devices[i];
    HPE_REQUIRE(device >= 0 && static_cast<unsigned>(device) < device_count, HPE_ERROR_INVALID_DEVICE,
                "a distribution names device {}; there are devices 0 to {}", device, device_count - 1);
    const auto home = static_cast<std::uint16_t>(device);
    HPE_REQUIRE(std::find(devices.begin(), devices.end(), home) == devices.end(), HPE_ERROR_INVALID_ARGUMENT,
                "a distribution names device {} twice; each device may be named only once", device);
    devices.push_back(home);
  }
  return devices;
}

std::vector<std::uint16_t> blocks(const std::vector<std::uint16_t>& devices, std::size_t granules) {
  std::vector<std::uint16_t> homes;
  homes.reserve(granules);
  const std::size_t part = granules / devices.size();
  const std::size_t longer = granules % devices.size();
  for (std::size_t i = 0; i < devices.size(); ++i) homes.insert(homes.end(), part + (i < longer ? 1 : 0), devices[i]);
  return homes;
}

std::vector<std::uint16_t> chunks(const std::vector<std::uint16_t>& devices, std::size_t granules, std::size_t chunk) {
  std::vector<std::uint16_t> homes(granules);
  for (std::size_t i = 0; i < granules; ++i) homes[i] = devices[i / chunk % devices.size()];
  return homes;
}

}  // namespace

granule_table::granule_table(const uvas_layout& layout)
    : base_(layout.base),
      size_(layout.size()),
      memory_(reserve_table(layout)),
      entries_(reinterpret_cast<slot*>(memory_.data())) {}

void granule_table::assign(const void* first, std::size_t granules, granule_entry entry) noexcept {
  for (slot& s : std::span(slot_of(first), granules)) s.store(entry, std::memory_order_release);
}

void granule_table::set_home(const void* first, std::size_t granules, std::uint16_t home) noexcept {
  for (slot& s : std::span(slot_of(first), granules)) {
    granule_entry entry = s.load(std::memory_order_relaxed);
    entry.home = home;
    s.store(entry, std::memory_order_release);
  }
}

std::vector<std::uint16_t> distribute(const hpeDistribution* distribution, std::size_t granules,
                                      unsigned device_count) {
  static constexpr hpeDistribution over_all{HPE_DISTRIBUTE_BLOCK, 0, nullptr, 0};
  const hpeDistribution& asked = distribution != nullptr ? *distribution : over_all;
  const std::vector<std::uint16_t> devices = devices_of(asked, device_count);
  switch (asked.kind) {
    case HPE_DISTRIBUTE_BLOCK: return blocks(devices, granules);
    case HPE_DISTRIBUTE_CYCLIC: return chunks(devices, granules, 1);
    case HPE_DISTRIBUTE_BLOCK_CYCLIC:
      HPE_REQUIRE(asked.chunk != 0, HPE_ERROR_INVALID_ARGUMENT,
                  "a block-cyclic distribution in chunks of 0 bytes was asked for; a chunk has at least 1 byte, and is "
                  "rounded up to {}",
                  granule_size);
      // Rounds up without overflow.
      return chunks(devices, granules, (asked.chunk - 1) / granule_size + 1);
  }
  HPE_THROW(HPE_ERROR_INVALID_ARGUMENT,
            "a distribution of kind {} was asked for; the possible kinds are block, cyclic and block-cyclic",
            static_cast<int>(asked.kind));
}

}  // namespace hpe::memory
