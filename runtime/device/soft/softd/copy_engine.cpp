#include "runtime/device/soft/softd/copy_engine.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/device/soft/shared/path.h"
#include "runtime/device/soft/softd/crash_guard.h"
#include "runtime/os/copy.h"

namespace hpe::device::soft {

namespace {

void* local(std::uintptr_t address, const address_table::backed_range& where) {
  return reinterpret_cast<void*>(address + static_cast<std::uintptr_t>(where.where.shift));  // NOLINT
}

void plain_copy(void* destination, const void* source, std::size_t bytes) noexcept {
  std::memcpy(destination, source, bytes);
}

void require_no_crash(const std::optional<crash>& crashed) {
  if (!crashed) return;
  HPE_REQUIRE(
      crashed->signal != SIGBUS, HPE_ERROR_OUT_OF_MEMORY,
      "a copy found no memory behind {:#x}: the machine has none left, or the file of registered memory became shorter",
      crashed->address);
  HPE_THROW(HPE_ERROR_INTERNAL, "a copy crashed at {:#x} with signal {}", crashed->address, crashed->signal);
}

template <class Body>
void guarded(Body body) {
  require_no_crash(run_guarded(body));
}

// The parameters of a copy that the pool runs like a launch: each tile copies one slice of `size` bytes.
struct slices {
  static constexpr std::size_t size = std::size_t{512} << 10;

  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
  bool through_caches;
};

void copy_slices(const void* parameters, const hpeTiles* tiles) {
  const auto& all = *static_cast<const slices*>(parameters);
  const std::size_t begin = tiles->begin * slices::size;
  const std::size_t end = std::min(all.bytes, tiles->end * slices::size);
  (all.through_caches ? plain_copy : os::copy_past_caches)(all.to + begin, all.from + begin, end - begin);
}

}  // namespace

void copy_engine::copy_together(void* destination, const void* source, std::size_t bytes, bool through_caches) const {
  const slices all{static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), bytes, through_caches};
  const std::uint32_t grid[3] = {static_cast<std::uint32_t>((bytes + slices::size - 1) / slices::size), 1, 1};
  if (const auto trouble = pool_.run(copy_slices, &all, grid)) require_no_crash(trouble->signal);
}

address_table::backed_range copy_engine::find(std::uintptr_t address) const {
  const auto found = memory_.find(address);
  HPE_REQUIRE(found, HPE_ERROR_INVALID_ARGUMENT, "the memory at {:#x} was taken away while a queued copy used it",
              address);
  return *found;
}

void copy_engine::copy(std::uintptr_t destination, std::uintptr_t source, std::size_t bytes, priority level) const {
  std::uint64_t latency = 0;  // added once, to the arrival of the last part
  // The link time at which the last reserved part arrives; 0 until a part passes a link with a limit.
  std::uint64_t arrival = 0;
  while (bytes > 0) {
    const auto to = find(destination);
    const auto from = find(source);
    std::size_t part = std::min({bytes, to.end - destination, from.end - source});
    const path way = find_path(shared_, device_, from.where.device, to.where.device);
    if (way.limited()) {
      if (arrival == 0) arrival = link_time();
      latency = std::max(latency, way.limit->latency_ns);
      part = std::min(part, burst_size(*way.limit));
      arrival = reserve_path(way.span(), *way.limit, part, arrival, level, part < bytes);
    }
    memory_.prepare_for_writing(local(destination, to), part);
    // Short parts are written through the caches, long parts around them. The limit is higher for copies to host
    // memory, because the runtime reads staging buffers while their bytes are in the caches, and for copies inside a
    // device, because the device's kernels use the bytes next.
    constexpr std::size_t is_short = std::size_t{256} << 10;
    const bool is_used_soon = to.where.device == host_location || to.where.device == from.where.device;
    const bool through_caches = part < (is_used_soon ? granule_size : is_short);
    if (part > slices::size && !way.limited() && pool_.threads() > 1) {
      copy_together(local(destination, to), local(source, from), part, through_caches);
    } else {
      guarded([&] {
        (through_caches ? plain_copy : os::copy_past_caches)(local(destination, to), local(source, from), part);
      });
    }
    if (way.limited()) approach(arrival);
    destination += part;
    source += part;
    bytes -= part;
  }
  if (arrival != 0) wait_until(arrival + latency);
}

void copy_engine::fill(std::uintptr_t destination, std::uint8_t value, std::size_t bytes) const {
  while (bytes > 0) {
    const auto to = find(destination);
    const std::size_t part = std::min<std::size_t>(bytes, to.end - destination);
    memory_.prepare_for_writing(local(destination, to), part);
    guarded([&] { std::memset(local(destination, to), value, part); });
    destination += part;
    bytes -= part;
  }
}

void copy_engine::take_fingerprint(std::uintptr_t result, std::uintptr_t source, std::size_t bytes,
                                   const fingerprint_key& key) const {
  fingerprint_sum sum(key);
  while (bytes > 0) {
    const auto from = find(source);
    const std::size_t part = std::min<std::size_t>(bytes, from.end - source);
    guarded([&] { sum.add(local(source, from), part); });
    source += part;
    bytes -= part;
  }
  const auto to = find(result);
  guarded([&] { std::memcpy(local(result, to), &sum.value(), sizeof sum.value()); });
}

}  // namespace hpe::device::soft
