#include "runtime/core/host_access.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/core/device_work.h"

// No mutex is held while device work is waited for. What is found under a region's mutex may be different when it is
// taken again, so each turn of a loop looks anew.

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;

namespace {

// Bytes of a home that one command copies, so that others get at the link in between.
constexpr std::uint64_t piece = std::uint64_t{64} << 20;

bool host_may_read(block_state s) {
  return s == block_state::host || s == block_state::shared || s == block_state::fresh;
}

bool host_owns(block_state s) { return s == block_state::host; }

}  // namespace

host_access::span host_access::locate(const void* p, std::size_t bytes) const {
  const allocation found = memory_.require(p, bytes);
  const std::uint64_t begin = found.region->offset_of(p);
  return {found.region, {begin, begin + bytes}};
}

host_access::span host_access::resolve(const void* p, std::size_t bytes, host_use use) const {
  const span found = locate(p, bytes);
  env_.wait_for_announced(*found.region, found.range, use != host_use::read);
  return found;
}

void host_access::require_alive(const span& what) {
  HPE_REQUIRE(what.region->alive && what.range.end <= what.region->is.extent, HPE_ERROR_NOT_A_REGION,
              "an allocation that was to be used was freed by another thread just now");
}

void host_access::wait_for_users(const span& what, host_use use) const {
  point_set users;
  {
    const std::lock_guard lock(what.region->mutex);
    require_alive(what);
    use == host_use::read ? what.region->order.before_read(what.range, users)
                          : what.region->order.before_write(what.range, users);
  }
  env_.wait_for(users);
}

std::uint64_t host_access::end_of_same(const region& r, std::uint64_t begin, std::uint64_t end,
                                       bool (*has)(block_state)) {
  std::uint64_t b = r.block_of(begin);
  const bool first = has(r.blocks[b].state);
  const std::uint64_t last = r.block_of(end - 1);
  while (b < last && has(r.blocks[b + 1].state) == first) ++b;
  return std::min(r.bytes_of({b, b + 1}).end, end);
}

std::byte* host_access::in_place(const void* p, std::size_t bytes, host_use use) const {
  const span what = use == host_use::read ? resolve(p, bytes, use) : locate(p, bytes);
  const region& r = *what.region;
  if (r.single_copy()) {
    wait_for_users(what, use);
    return env_.space.alias(p);
  }
  if (use != host_use::read) return nullptr;
  const std::lock_guard lock(r.mutex);
  require_alive(what);
  const auto run = r.blocks_of(what.range);
  for (std::uint64_t b = run.begin; b < run.end; ++b)
    if (!host_may_read(r.blocks[b].state)) return nullptr;
  return env_.space.alias(p);
}

loan host_access::borrow(const void* p, std::size_t bytes) { return loans_.take(bytes, p); }

void host_access::read(std::byte* into, const void* p, std::size_t bytes, std::span<const host_piece> pieces) const {
  if (pieces.empty()) return;
  const span all = resolve(p, bytes, host_use::read);
  if (all.region->single_copy()) {
    wait_for_users(all, host_use::read);
    for (const host_piece& one : pieces) std::memcpy(into + one.offset, env_.space.alias(p) + one.offset, one.bytes);
    return;
  }
  point_set copies;
  for (const host_piece& one : pieces) {
    const std::uint64_t begin = all.range.begin + one.offset;
    read_piece(into + one.offset, {all.region, {begin, begin + one.bytes}}, copies);
  }
  finish(copies);
}

point_set host_access::start_read(std::byte* into, const void* p, std::size_t bytes) const {
  point_set copies;
  const span all = resolve(p, bytes, host_use::read);
  if (all.region->single_copy()) {
    wait_for_users(all, host_use::read);
    std::memcpy(into, env_.space.alias(p), bytes);
  } else {
    read_piece(into, all, copies);
  }
  return copies;
}

bool host_access::reached(const point_set& points) const { return env_.reached(points); }

void host_access::finish(const point_set& points) const {
  for (const timepoint p : points.points()) env_.engine.finish(p);
}

void host_access::wait_for_writers(const void* p, std::size_t bytes) const {
  wait_for_users(resolve(p, bytes, host_use::read), host_use::read);
}

void host_access::read_piece(std::byte* into, const span& from, point_set& copies) const {
  region& r = *from.region;
  for (std::uint64_t at = from.range.begin; at < from.range.end;) {
    std::byte* const to = into + (at - from.range.begin);
    std::uint64_t end = 0;
    bool on_host = false;
    point_set writers;
    {
      const std::lock_guard lock(r.mutex);
      require_alive(from);
      on_host = host_may_read(r.blocks[r.block_of(at)].state);
      end = end_of_same(r, at, from.range.end, host_may_read);
      if (!on_host) {
        end = r.end_of_home(at, std::min(end, at + piece));
        r.order.before_read({at, end}, writers);
        if (env_.reached(writers)) {
          const timepoint copied = env_.engine.copy_to_host(r.home_of(at), to, r.is.base + at, end - at);
          r.order.record_read({at, end}, copied);
          copies.add(copied);
          at = end;
          continue;
        }
      }
    }
    if (on_host) {
      env_.engine.copy_on_host(env_.likely_home(r.is.base + at), to, env_.space.alias(r.is.base + at), end - at);
      at = end;
    } else {
      env_.wait_for(writers);  // here and not in the stream, which other waiting threads share
    }
  }
}

void host_access::write(void* p, loan& from, const std::byte* data, std::size_t bytes) const {
  if (bytes == 0) return;
  const span to = resolve(p, bytes, host_use::write);
  region& r = *to.region;
  if (r.single_copy()) {
    wait_for_users(to, host_use::write);
    std::memcpy(env_.space.alias(p), data, bytes);
    return;
  }
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const std::byte* const source = data + (at - to.range.begin);
    std::uint64_t end = 0;
    {
      const std::lock_guard lock(r.mutex);
      require_alive(to);
      end = end_of_same(r, at, to.range.end, host_owns);
      if (host_owns(r.blocks[r.block_of(at)].state)) {
        // Under the mutex, so that no upload starts before all bytes are there.
        std::memcpy(env_.space.alias(r.is.base + at), source, end - at);
        at = end;
        continue;
      }
    }
    write_home({&r, {at, end}}, from, source);
    at = end;
  }
}

void host_access::write_home(const span& to, loan& from, const std::byte* data) const {
  region& r = *to.region;
  device_work work(env_, {{&r, to.range, HPE_OUT}}, [&](const device_access&) {
    for (std::uint64_t at = to.range.begin; at < to.range.end; at = r.end_of_home(at, to.range.end))
      HPE_REQUIRE(!env_.devices.at(r.home_of(at)).lost(), HPE_ERROR_DEVICE_LOST,
                  "device {} is lost and takes no data; the allocation at {} can be migrated to another", r.home_of(at),
                  static_cast<void*>(r.is.base));
  });
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const byte_range part{at, r.end_of_home(at, std::min(to.range.end, at + piece))};
    point_set after;
    r.order.before_write(part, after);
    const timepoint done = env_.engine.copy_from_host(r.home_of(at), r.is.base + at, data + (at - to.range.begin),
                                                      part.size(), after.points());
    from.busy_until(done);
    r.order.record_write(part, done);
    at = part.end;
  }
  work.commit();
}

void host_access::settle(loan& l) const { env_.wait_for(l.busy()); }

}  // namespace hpe::core
