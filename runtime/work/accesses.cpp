#include "runtime/work/accesses.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/trace/stalls.h"

namespace hpe::work {

using coherence::byte_range;
using coherence::point_set;
using coherence::region;

namespace {

constexpr auto forever = std::chrono::steady_clock::time_point::max();

// The text that trace::awaited reports about a wait for a timepoint. devices: the device_set.
std::string end_of_work(const void* devices, std::uint64_t timeline, std::uint64_t value) {
  return "it waits for " +
         static_cast<const device::device_set*>(devices)->work_before({static_cast<std::uint32_t>(timeline), value});
}

}  // namespace

void region_range::require_alive() const {
  HPE_REQUIRE(region->alive && range.end <= region->layout.extent, HPE_ERROR_NOT_A_REGION,
              "the allocation of an access was freed by another thread just now");
}

void region_range::require_homes(device::device_set& devices) const {
  if (region->single_copy()) return;
  region->for_each_home(range, [&](unsigned home, byte_range) {
    HPE_REQUIRE(!devices.at(home).lost(), HPE_ERROR_DEVICE_LOST,
                "device {} is lost, so data cannot be copied to or from it; the allocation at {} can be migrated to "
                "another device (hpeMigrate)",
                home, static_cast<void*>(region->layout.base));
  });
}

point_set users_of(const region_range& bytes, bool before_write) {
  point_set users;
  const lock_guard lock(bytes.region->mutex);
  bytes.require_alive();
  before_write ? bytes.region->order.before_write(bytes.range, users)
               : bytes.region->order.before_read(bytes.range, users);
  return users;
}

void wait_for_users(const region_range& bytes, bool before_write, device::device_set& devices) {
  const point_set users = users_of(bytes, before_write);
  wait_for(users.points(), devices);
}

void await_room(const region_range& bytes, device::device_set& devices) {
  std::uint64_t homes = 0;
  {
    const lock_guard lock(bytes.region->mutex);
    bytes.require_alive();
    bytes.region->for_each_home(bytes.range, [&](unsigned home, byte_range) { homes |= std::uint64_t{1} << home; });
  }
  for (; homes != 0; homes &= homes - 1) devices.at(static_cast<unsigned>(std::countr_zero(homes))).await_room(nullptr);
}

bool host_has(coherence::block_state state) noexcept {
  using enum coherence::block_state;
  return state == host || state == shared || state == fresh;
}

bool has_host_copy(coherence::block_state state) noexcept {
  using enum coherence::block_state;
  return state == host || state == shared;
}

std::uint64_t end_of_same(const coherence::region& r, std::uint64_t begin, std::uint64_t end,
                          bool (*has)(coherence::block_state) noexcept) {
  std::uint64_t b = r.block_of(begin);
  const bool first = has(r.state(b));
  const std::uint64_t last = r.block_of(end - 1);
  while (b < last && has(r.state(b + 1)) == first) ++b;
  return std::min(r.bytes_of({b, b + 1}).end, end);
}

void region_locks::lock(std::vector<region*> regions) {
  locked_ = std::move(regions);
  for (region* r : locked_) r->mutex.lock();
}

void region_locks::unlock() noexcept {
  for (region* r : locked_) r->mutex.unlock();
  locked_.clear();
}

void collect(std::span<const device_access> accesses, device::device_set& devices, point_set& after) {
  for (const device_access& access : accesses) {
    access.region->mutex.assert_held();
    auto& order = access.region->order;
    if (order.crowded()) {
      order.forget([&](timepoint p) { return devices.reached(p); });
      // A forgotten point may belong to a write that came after a piece was copied to the shadow. Without this point,
      // the order does not show that the copy is outdated. Therefore all copies of the region's pieces are marked as
      // outdated.
      access.region->resident.outdate(access.region->whole());
    }
    if (access.concurrent) {
      order.before_concurrent(access.range, after);
    } else if (access.mode == HPE_IN) {
      order.before_read(access.range, after);
    } else {
      order.before_write(access.range, after);
    }
  }
}

void record(std::span<const device_access> accesses, std::span<const timepoint> points,
            device::device_set& devices) noexcept {
  record_or_wait(points, devices, [&] {
    for (const device_access& access : accesses) {
      access.region->mutex.assert_held();
      auto& order = access.region->order;
      if (access.concurrent) {
        for (const timepoint point : points) order.record_concurrent(access.range, point);
      } else if (access.mode == HPE_IN) {
        for (const timepoint point : points) order.record_read(access.range, point);
      } else {
        order.record_writes(access.range, points);
      }
    }
  });
}

void record_or_wait(std::span<const timepoint> points, device::device_set& devices,
                    function_ref<void()> record) noexcept {
  try {
    record();
  } catch (const std::bad_alloc&) {
    for (const timepoint point : points) devices.wait(point, forever);
  }
}

void wait_for(std::span<const timepoint> points, device::device_set& devices) {
  for (const timepoint p : points) {
    if (devices.reached(p)) continue;
    const trace::awaited here({end_of_work, &devices, p.timeline, p.value});
    devices.wait(p, forever);
  }
}

bool reached(std::span<const timepoint> points, const device::device_set& devices) {
  return std::all_of(points.begin(), points.end(), [&](timepoint p) { return devices.reached(p); });
}

point_set users_of_shadow(const coherence::region& r, byte_range bytes) {
  // Uploads are recorded as writers of the home. So is a launch that made a fetch useless; the launch waits for that
  // fetch. In a degraded region, such a fetch consisted of copies from several homes, and the launch may have waited
  // for only one of these copies. An eviction's copy also writes the shadow; it is recorded as a reader of the home. In
  // a region with a single copy, kernels read and write the shadow itself.
  point_set users;
  if (r.ordered_by_program()) {
    r.order.before_concurrent(bytes, users);  // the host counts as concurrent work (submission::release)
  } else if (r.single_copy() || r.degraded || r.resident.copied_out(bytes)) {
    r.order.before_write(bytes, users);
  } else {
    r.order.before_read(bytes, users);
  }
  return users;
}

void require_success(std::span<const timepoint> points, const device::device_set& devices) {
  for (const timepoint p : points)
    if (const auto failure = devices.status_of(p)) throw *failure;
}

}  // namespace hpe::work
