// The log begins with its size. The device adds entries behind the size and then increases it; the owner sets it to
// zero. If the owner does so while the device appends, the device begins again.

#include "runtime/device/soft/shared/recorded_accesses.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::device::soft {

namespace {

constexpr std::uint64_t heap_room = std::uint64_t{1} << 30;

}  // namespace

ptx::record_places record_places_of(const uvas_layout& layout) noexcept {
  const std::uint64_t base = layout.base - granule_size;
  const std::uint64_t size = granule_size + layout.size() + heap_room;
  return {base, size, base + size};
}

struct access_log::head {
  std::atomic<std::uint64_t> entries;
};

struct access_log::entry {
  enum class kind : std::uint8_t { stretch, block_race, shared_race };

  std::uint64_t begin, end;
  kind what;
  std::uint8_t uses[2], numbers[2];
};

namespace {

struct place_text {
  char text[3][120];
};

}  // namespace

access_log::access_log(int file, std::uint64_t offset) : file_(file), offset_(offset), space_(0, room, granule_size) {
  os::map_file(space_.data(), space_.size(), os::page_protection::read_write, file, offset);
  os::exclude_from_core(space_.data(), space_.size());
}

access_log::head& access_log::first() const noexcept { return *reinterpret_cast<head*>(space_.data()); }

// The texts of a race in shared memory take the place of the entries behind it.
void access_log::append(std::span<const recorded_stretch> accesses, std::span<const recorded_race> races) {
  constexpr std::size_t slots_of_text = (sizeof(place_text) + sizeof(entry) - 1) / sizeof(entry);
  if (accesses.empty() && races.empty()) return;
  const lock_guard lock(mutex_);
  auto* const entries = reinterpret_cast<entry*>(space_.data() + sizeof(entry));
  const std::size_t most = room / sizeof(entry) - 1;
  for (;;) {
    std::uint64_t before = first().entries.load(std::memory_order_acquire), at = before;
    HPE_REQUIRE(at + accesses.size() + races.size() * (1 + slots_of_text) <= most, HPE_ERROR_OUT_OF_MEMORY,
                "HPE_CHECK: a launch has accessed too many separate ranges of memory");
    for (const recorded_stretch& each : accesses)
      entries[at++] = {
          each.begin, each.end, entry::kind::stretch, {static_cast<std::uint8_t>(each.how)}, {each.number}};
    for (const recorded_race& each : races) {
      const auto use = [](const recorded_race::access& a) { return static_cast<std::uint8_t>(a.how); };
      entries[at++] = {each.begin,
                       each.end,
                       each.is_shared ? entry::kind::shared_race : entry::kind::block_race,
                       {use(each.earlier), use(each.later)},
                       {each.earlier.number, each.later.number}};
      if (!each.is_shared) continue;
      place_text texts{};
      each.earlier.place.copy(texts.text[0], sizeof texts.text[0] - 1);
      each.later.place.copy(texts.text[1], sizeof texts.text[1] - 1);
      each.variable.copy(texts.text[2], sizeof texts.text[2] - 1);
      std::memcpy(static_cast<void*>(entries + at), &texts, sizeof texts);
      at += slots_of_text;
    }
    if (first().entries.compare_exchange_strong(before, at, std::memory_order_release)) return;
  }
}

void access_log::take(function_ref<void(const recorded_stretch&)> visit, std::vector<recorded_race>& races) {
  constexpr std::size_t slots_of_text = (sizeof(place_text) + sizeof(entry) - 1) / sizeof(entry);
  constexpr std::uint64_t most_kept = std::uint64_t{16} << 20;
  const lock_guard lock(mutex_);
  const auto* const entries = reinterpret_cast<const entry*>(space_.data() + sizeof(entry));
  std::uint64_t done = 0;
  for (std::uint64_t all = 0; (all = first().entries.load(std::memory_order_acquire)) != done;) {
    while (done < all) {
      const entry& e = entries[done++];
      const auto use = [&](std::size_t n) { return static_cast<ptx::recorded_use>(e.uses[n]); };
      if (e.what == entry::kind::stretch) {
        visit({e.begin, e.end, use(0), e.numbers[0]});
        continue;
      }
      recorded_race made{
          e.what == entry::kind::shared_race, e.begin, e.end, {use(0), e.numbers[0]}, {use(1), e.numbers[1]}};
      if (made.is_shared) {
        place_text texts;
        std::memcpy(&texts, static_cast<const void*>(entries + done), sizeof texts);
        done += slots_of_text;
        made.earlier.place = texts.text[0];
        made.later.place = texts.text[1];
        made.variable = texts.text[2];
      }
      races.push_back(std::move(made));
    }
    // No device writes entries that are before the size.
    if (const std::uint64_t end = done * sizeof(entry) / granule_size * granule_size; end > most_kept)
      os::discard(file_, offset_ + most_kept, end - most_kept);
    std::uint64_t read = all;
    if (first().entries.compare_exchange_strong(read, 0, std::memory_order_acq_rel)) break;
  }
}

recorded_reader::of_device::of_device(const ptx::record_places& places)
    : file(os::create_memory_file("hpe-accesses", places.bytes() + access_log::room)),
      log(file.get(), places.bytes()) {}

recorded_reader::recorded_reader(const uvas_layout& layout, unsigned devices) {
  for (unsigned d = 0; d < devices; ++d) devices_.push_back(std::make_unique<of_device>(record_places_of(layout)));
}

void recorded_reader::take(unsigned device, function_ref<void(const recorded_stretch&)> visit) {
  of_device& it = *devices_[device];
  std::vector<recorded_race> found;
  it.log.take(visit, found);
  const lock_guard lock(it.mutex);
  it.races.insert(it.races.end(), found.begin(), found.end());
}

std::vector<recorded_race> recorded_reader::take_races(unsigned device) {
  of_device& it = *devices_[device];
  const lock_guard lock(it.mutex);
  return std::exchange(it.races, {});
}

}  // namespace hpe::device::soft
