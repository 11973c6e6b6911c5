#include "runtime/work/block_copies.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/trace/profile.h"
#include "runtime/work/host_spill.h"

namespace hpe::work {

using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;

namespace {

// The bytes of an access whose contents the work needs: at most two ranges.
std::vector<byte_range> read_by(const device_access& access) HPE_REQUIRES(access.region->mutex) {
  const region& r = *access.region;
  r.mutex.assert_held();
  if (access.mode != HPE_OUT || r.degraded) return {r.degraded ? byte_range{0, r.bytes_at_homes()} : access.range};
  // Of an overwritten range, the work needs the blocks that it overwrites only in part.
  const block_run whole = r.blocks_overwritten_by(access.range);
  const byte_range inside =
      whole.begin < whole.end ? r.bytes_of(whole) : byte_range{access.range.end, access.range.end};
  std::vector<byte_range> result;
  if (access.range.begin < inside.begin) result.push_back({access.range.begin, inside.begin});
  if (inside.end < access.range.end) result.push_back({inside.end, access.range.end});
  return result;
}

bool in_file_only(const region& r, byte_range bytes) HPE_REQUIRES(r.mutex) {
  const block_run run = r.blocks_of({bytes.begin, std::min(bytes.end, r.layout.extent)});
  for (std::uint64_t b = run.begin; b < run.end; ++b)
    if (r.state(b) == block_state::host && !host_spill::in_memory(r, r.bytes_of({b, b + 1}))) return true;
  return false;
}

}  // namespace

std::vector<timepoint> upload(const resources& with, region& r, block_run run, device::priority level) {
  std::vector<timepoint> copies;
  if (r.single_copy()) {
    r.transition(run, block_event::flush);
    return copies;
  }
  const byte_range bytes = r.bytes_of(run);
  r.for_each_home(bytes, [&](unsigned home, byte_range part) {
    const device_access access{&r, part, HPE_OUT};
    copies.reserve(copies.size() + 1);
    copies.push_back(queue_ordered(std::span(&access, 1), with.devices, [&](const point_set& after) {
      return with.engine.upload(home, r.layout.base + part.begin, part.size(), after.points(), level);
    }));
    trace::moved(r.layout.base, r.layout.bytes, part.size(), true);
    trace::used(r.layout.base, r.layout.bytes, part.begin, std::min(part.end, r.layout.bytes));
    r.mutex.assert_held();
    const block_run sent = r.blocks_within({bytes.begin, part.end});
    r.transition({run.begin, sent.end}, block_event::flush);
    run.begin = sent.end;
  });
  return copies;
}

namespace {

// Calls visit(offset, shape) for the bytes of a range that are in none of the rows, in groups of equal distance.
template <class Visit>
void for_each_range_between(byte_range in, const placed_box& rows, const Visit& visit) {
  const std::uint64_t width = rows.shape.extent.width, stride = rows.shape.strides.row, count = rows.shape.extent.rows;
  const auto visit_range = [&](std::uint64_t begin, std::uint64_t end) {
    begin = std::max(begin, in.begin);
    end = std::min(end, in.end);
    if (begin < end) visit(begin, box{{end - begin}, {}});
  };
  const auto first = static_cast<std::uint64_t>(rows.offset);
  visit_range(in.begin, first);
  for (std::uint64_t z = 0; z < rows.shape.extent.planes; ++z) {
    const std::uint64_t begin = first + z * rows.shape.strides.plane, end = begin + (count - 1) * stride + width;
    visit_range(end, z + 1 < rows.shape.extent.planes ? begin + rows.shape.strides.plane : in.end);
    if (count < 2 || end <= in.begin || begin >= in.end) continue;
    // Gap n of the plane follows row n. Only the first and the last of these gaps may be partly in the range.
    const std::uint64_t gap = begin + width, last = count - 2;
    const std::uint64_t from = in.begin <= gap ? 0 : (in.begin - gap + stride - 1) / stride;
    const std::uint64_t room = in.end < gap + (stride - width) ? 0 : (in.end - gap - (stride - width)) / stride + 1;
    const std::uint64_t to = std::min(room, last + 1);
    if (from > 0 && from - 1 <= last)
      visit_range(gap + (from - 1) * stride, gap + (from - 1) * stride + stride - width);
    if (from < to) visit(gap + from * stride, box{{stride - width, to - from}, {stride, 0}});
    if (to <= last && to >= from) visit_range(gap + to * stride, gap + to * stride + stride - width);
  }
}

}  // namespace

std::vector<timepoint> upload_between_rows(const resources& with, const device_access& access) {
  region& r = *access.region;
  r.mutex.assert_held();  // the same mutex, by the name that Clang compares
  std::vector<timepoint> copies;
  const block_run whole = r.blocks_overwritten_by(access.range);
  for (std::uint64_t b = whole.begin; b < whole.end;) {
    const block_run same = r.blocks().same_from(b, whole.end);
    b = same.end;
    if (r.state(same.begin) != block_state::host) continue;
    r.for_each_home(r.bytes_of(same), [&](unsigned home, byte_range part) {
      part.end = std::min(part.end, access.range.end);
      if (part.empty()) return;  // only bytes behind the allocation
      const device_access write{&r, part, HPE_OUT};
      for_each_range_between(part, *access.rows, [&](std::uint64_t at, const box& shape) {
        copies.reserve(copies.size() + 1);
        copies.push_back(queue_ordered(std::span(&write, 1), with.devices, [&](const point_set& after) {
          return with.engine.upload_rows(home, r.layout.base + at, shape, after.points(), device::priority::launch);
        }));
        trace::moved(r.layout.base, r.layout.bytes, shape.bytes(), true);
      });
    });
  }
  return copies;
}

timepoint upload_newer(const resources& with, region& r, byte_range bytes, bool write) {
  timepoint last;
  if (bytes.empty() || r.degraded) return last;
  const block_run run = r.blocks_of({bytes.begin, std::min(bytes.end, r.layout.extent)});
  for (std::uint64_t b = run.begin; b < run.end;) {
    const block_run same = r.blocks().same_from(b, run.end);
    b = same.end;
    if (r.state(same.begin) != block_state::host) continue;
    if (!with.host.hold(r, r.bytes_of(same), host_spill::shadow_use::read)) continue;
    if (!with.views.set(r, same, write ? os::page_protection::none : os::page_protection::read)) return last;
    if (const auto copies = upload(with, r, same, device::priority::launch); !copies.empty()) last = copies.back();
  }
  return last;
}

bool needs_file(const device_access& access) {
  const region& r = *access.region;
  r.mutex.assert_held();
  if (r.on_host.empty()) return false;
  return std::ranges::any_of(read_by(access), [&](const byte_range& bytes) {
    r.mutex.assert_held();
    return in_file_only(r, bytes);
  });
}

// Reads granules from the file in groups, because host memory may be too small for all of them. The granules of a group
// are read at the same time. Uploaded blocks are in state shared, so that the host's copy can be given up again. If
// other threads take the memory of a group before its upload, the rest of the group is read one granule after the
// other.
void upload_from_file(const resources& with, const device_access& access) {
  region& r = *access.region;
  if (!with.host.limited() || r.single_copy()) return;
  std::vector<byte_range> parts;
  {
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    access.region->mutex.assert_held();  // the same mutex, by the name that Clang compares
    if (!r.alive || access.range.end > r.layout.extent) return;
    parts = read_by(access);
  }
  for (const byte_range& part : parts) {
    const std::uint64_t most = std::max<std::uint64_t>(with.host.most_at_once() / granule_size, 1);
    std::uint64_t granules = most;
    for (std::uint64_t at = part.begin; at < part.end;) {
      byte_range bytes{at, std::min(part.end, (at / granule_size + granules) * granule_size)};
      bool missing = false;
      {
        const lock_guard lock(r.mutex);
        r.mutex.assert_held();
        if (!r.alive || access.range.end > r.layout.extent || r.degraded || !r.resident.usable(bytes)) return;
        bytes.end = std::min(bytes.end, r.layout.extent);
        missing = in_file_only(r, bytes);
      }
      if (missing) {
        with.host.bring({&r, bytes}, [](block_state s) noexcept { return s == block_state::host; });
        const lock_guard lock(r.mutex);
        r.mutex.assert_held();
        if (r.alive && access.range.end <= r.layout.extent && r.resident.usable(bytes))
          upload_newer(with, r, bytes, access.mode != HPE_IN);
        if (r.alive && !r.degraded && in_file_only(r, bytes)) {
          granules = 1;
          continue;
        }
      }
      granules = most;
      at = bytes.end;
    }
  }
}

void download(const resources& with, region& r, block_run run, device::priority level, std::vector<timepoint>& copies) {
  if (r.single_copy()) return;
  r.use_shadow();
  r.for_each_home(r.bytes_of(run), [&](unsigned home, byte_range part) {
    copies.reserve(copies.size() + 1);
    const timepoint copied = with.engine.download(home, r.layout.base + part.begin, part.size(), {}, level);
    const device_access access{&r, part, HPE_IN};
    record(std::span(&access, 1), std::span(&copied, 1), with.devices);
    trace::moved(r.layout.base, r.layout.bytes, part.size(), false);
    trace::used(r.layout.base, r.layout.bytes, part.begin, std::min(part.end, r.layout.bytes));
    copies.push_back(copied);
  });
}

void bring_to_host(const resources& with, region& r) {
  with.host.bring_all(r);
  r.unsettle();
  point_set users;
  r.order.before_write(r.whole(), users);
  wait_for(users.points(), with.devices);
  const auto only_at_home = [&](std::uint64_t b) HPE_REQUIRES(r.mutex) {
    return r.state(b) == block_state::device || r.state(b) == block_state::fetching;
  };
  std::vector<timepoint> copies;
  try {
    for (std::uint64_t b = 0; b < r.blocks().count(); ++b)
      if (only_at_home(b)) download(with, r, {b, b + 1}, device::priority::launch, copies);
  } catch (...) {
    wait_for(copies, with.devices);  // no other work waits for copies into the shadow of blocks in state device
    throw;
  }
  wait_for(copies, with.devices);
  require_success(copies, with.devices);
  r.transition(r.all_blocks(), block_event::brought_to_host);
}

void degrade_to_host(const resources& with, region& r) {
  bring_to_host(with, r);
  r.transition(r.all_blocks(), block_event::host_write);  // fresh blocks read as zero in the shadow
  with.views.degrade(r);
}

std::vector<timepoint> degrade_to_homes(const resources& with, region& r) {
  HPE_REQUIRE(
      r.resident.covers({0, r.bytes_at_homes()}), HPE_ERROR_SYSTEM,
      "mprotect failed for lack of mappings; hpe cannot treat the allocation of {} bytes at {} as a single block "
      "instead, because it is not all in device memory; raise vm.max_map_count",
      r.layout.bytes, static_cast<void*>(r.layout.base));
  // Close the whole view first, so that no write of the host is lost. This needs no further mapping.
  HPE_REQUIRE(with.views.set(r, r.all_blocks(), os::page_protection::none), HPE_ERROR_SYSTEM,
              "mprotect of a whole allocation failed for lack of mappings; raise vm.max_map_count");
  with.host.bring_all(r);
  std::vector<timepoint> copies;
  for (std::uint64_t b = 0; b < r.blocks().count(); ++b) {
    if (r.state(b) != block_state::host) continue;
    const std::vector<timepoint> queued = upload(with, r, {b, b + 1}, device::priority::launch);
    copies.insert(copies.end(), queued.begin(), queued.end());
  }
  r.transition(r.all_blocks(), block_event::device_write);
  with.views.degrade(r);
  return copies;
}

void drop_host_copy(const resources& with, region& r, byte_range bytes) {
  r.note_write();
  r.resident.outdate(bytes);
  // The region's order records the other process's write after all present users of the bytes. One of these users may
  // be a fetch that is now useless but still writes the shadow. The next writer of the shadow waits for the writers of
  // the home, and so also for that fetch.
  point_set users;
  r.order.before_write(bytes, users);
  const device_access written{&r, bytes, HPE_INOUT};
  if (!users.empty()) record(std::span(&written, 1), users.points(), with.devices);
  const block_run run = r.blocks_of(bytes);
  for (std::uint64_t b = run.begin; b < run.end;) {
    const block_run same = r.blocks().same_from(b, run.end);
    b = same.end;
    const block_state state = r.state(same.begin);
    if (state == block_state::host || state == block_state::device) continue;
    if (coherence::apply(state, block_event::device_write).actions.close &&
        !with.views.set(r, same, os::page_protection::none)) {
      const std::vector<timepoint> copies = degrade_to_homes(with, r);
      wait_for(copies, with.devices);
      return require_success(copies, with.devices);
    }
    r.transition(same, block_event::device_write);
  }
}

}  // namespace hpe::work
