#include "runtime/core/copier.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/core/arrivals.h"
#include "runtime/trace/measured.h"

// Host memory (one copy, the shadow) is read and written through its alias by the calling thread, after the device
// work that uses it. Everything else is device work like a kernel: released, ordered, and queued.
//
// Staging buffers come before the locks of regions: nobody waits for a buffer while it holds a region.

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;

namespace {

// Larger copies are queued in pieces, so that others get at the region in between. Each costs the caller some
// microseconds before it can queue what comes next, perhaps the copy in the other direction.
constexpr std::uint64_t piece_size = std::uint64_t{256} << 20;

// A copy between homes uses no more buffers at once, so that one in the other direction finds some, too.
constexpr std::size_t most_buffers = 4;

}  // namespace

copier::span copier::resolve(const void* p, std::size_t bytes) const {
  if (!env_.space.contains(p)) return {};
  const allocation found = memory_.require(p, bytes);
  const std::uint64_t begin = found.region->offset_of(p);
  return {found.region, {begin, begin + bytes}};
}

void copier::wait_for_announced(const void* p, std::size_t bytes, bool write) const {
  if (!env_.announced.any() || bytes == 0) return;
  const span found = resolve(p, bytes);
  if (found.region != nullptr) env_.wait_for_announced(*found.region, found.range, write);
}

void copier::copy_for_program(void* destination, const void* source, std::size_t bytes) {
  wait_for_announced(source, bytes, false);
  wait_for_announced(destination, bytes, true);
  copy(destination, source, bytes);
}

void copier::fill_for_program(void* destination, std::uint8_t value, std::size_t bytes) {
  wait_for_announced(destination, bytes, true);
  fill(destination, value, bytes);
}

std::byte* copier::alias(const span& what) const { return env_.space.alias(what.region->is.base + what.range.begin); }

void copier::wait_for_users(const span& what, bool before_write) const {
  point_set users;
  {
    const std::lock_guard lock(what.region->mutex);
    before_write ? what.region->order.before_write(what.range, users)
                 : what.region->order.before_read(what.range, users);
  }
  env_.wait_for(users);
}

void copier::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  HPE_REQUIRE(destination != nullptr && source != nullptr, HPE_ERROR_INVALID_ARGUMENT,
              "a copy of {} bytes has a null {}", bytes, destination == nullptr ? "destination" : "source");
  const span to = resolve(destination, bytes);
  const span from = resolve(source, bytes);
  const auto distance = static_cast<std::uint64_t>(
      std::abs(static_cast<std::byte*>(destination) - static_cast<const std::byte*>(source)));
  HPE_REQUIRE(distance >= bytes, HPE_ERROR_INVALID_ARGUMENT, "the source and the destination of {} bytes overlap",
              bytes);

  if (to.region == nullptr && from.region == nullptr) {
    std::memcpy(destination, source, bytes);
    return;
  }
  using trace::way;
  const way between = to.region == nullptr ? way::down_staged : way::across;
  const trace::measured here(from.region == nullptr ? way::up_staged : between, bytes);
  if (from.region == nullptr) {
    copy_in(to, static_cast<const std::byte*>(source));
  } else if (to.region == nullptr) {
    copy_out(static_cast<std::byte*>(destination), from);
  } else {
    copy_across(to, from);
  }
}

void copier::copy_in(const span& to, const std::byte* source) {
  region& r = *to.region;
  if (r.single_copy()) {
    wait_for_users(to, true);
    std::memcpy(alias(to), source, to.range.size());
    return;
  }
  {
    // The whole range at once, so that blocks which the copy covers in pieces are not uploaded first.
    device_work work(env_, {{&r, to.range, HPE_OUT}}, [&](const device_access&) { require_homes(to); });
    work.commit();
  }
  // The threads fill one buffer while the one before is queued, and need not meet in between.
  struct begun {
    byte_range range;
    transfer::engine::filling piece;
  };
  std::optional<begun> last;
  const auto queue_last = [&] {
    if (!last) return;
    queue_in(r, last->range, transfer::engine::filled(std::move(last->piece)));
    last.reset();
  };
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const std::uint64_t done = at - to.range.begin;
    const std::uint64_t size = transfer::next_piece(done, to.range.end - at, env_.engine.staging_size());
    const unsigned home = env_.likely_home(r.is.base + at);
    auto next = env_.engine.try_stage(home, source + done, size, to.range.size());
    queue_last();
    if (!next)
      next.emplace(env_.engine.stage(home, source + done, size, to.range.size()));  // who waits for a buffer holds none
    last.emplace(begun{{at, at + size}, std::move(*next)});
    at += size;
  }
  queue_last();
}

void copier::queue_in(region& r, byte_range range, transfer::staged buffer) {
  device_work work(env_, {{&r, range, HPE_OUT}});
  for (std::uint64_t at = range.begin; at < range.end;) {
    const byte_range part{at, r.end_of_home(at, range.end)};
    point_set after;
    r.order.before_write(part, after);
    r.order.record_write(
        part, env_.engine.write(r.home_of(at), r.is.base + at, buffer, at - range.begin, part.size(), after.points()));
    at = part.end;
  }
  work.commit();
}

void copier::copy_out(std::byte* destination, const span& from) {
  region& r = *from.region;
  if (r.single_copy()) {
    wait_for_users(from, false);
    std::memcpy(destination, alias(from), from.range.size());
    return;
  }
  arrivals under_way(env_.engine);
  std::optional<transfer::staged> buffer;
  for (std::uint64_t at = from.range.begin; at < from.range.end;) {
    // Nothing is held from one turn to the next but a buffer, so each looks anew at what the next bytes need: to be
    // waited for, a buffer, or the copy itself.
    stretch next;
    point_set writers;
    bool queued = false;
    {
      const std::lock_guard lock(r.mutex);
      require_alive(from);
      next = good_stretch(r, {at, from.range.end},
                          transfer::next_piece(at - from.range.begin, from.range.end - at, env_.engine.staging_size()));
      if (!next.on_host) {
        r.order.before_read(next.range, writers);
        queued = buffer && env_.reached(writers);
      }
      if (queued)
        r.order.record_read(next.range, env_.engine.read(r.home_of(at), *buffer, r.is.base + at, next.range.size()));
    }
    std::byte* const into = destination + (at - from.range.begin);
    const unsigned home = env_.likely_home(r.is.base + at);
    if (next.on_host) {
      env_.engine.copy_on_host(home, into, alias({&r, next.range}), next.range.size());
    } else if (queued) {
      under_way.add(home, std::move(*buffer), into, next.range.size());
      buffer.reset();
    } else if (buffer || !env_.reached(writers)) {
      // Here and not in the stream, which other waiting threads share. Who has a buffer waits for no second one, even
      // if the writers have just finished.
      env_.wait_for(writers);
      continue;
    } else {
      buffer.emplace(under_way.next_buffer(home));
      continue;
    }
    at = next.range.end;
  }
  under_way.finish();
}

copier::stretch copier::good_stretch(const region& r, byte_range wanted, std::uint64_t most) const {
  const auto host_has = [&](std::uint64_t b) {
    const block_state s = r.blocks[b].state;
    return s == block_state::host || s == block_state::shared || s == block_state::fresh;
  };
  std::uint64_t b = r.block_of(wanted.begin);
  stretch result{wanted, host_has(b)};
  if (!result.on_host) {
    result.range.end = std::min(wanted.end, wanted.begin + most);
    result.range.end = r.end_of_home(wanted.begin, result.range.end);
  }
  const std::uint64_t last = r.block_of(result.range.end - 1);
  while (b < last && host_has(b + 1) == result.on_host) ++b;
  result.range.end = std::min(r.bytes_of({b, b + 1}).end, result.range.end);
  return result;
}

void copier::require_homes(const span& what) const {
  const region& r = *what.region;
  for (std::uint64_t at = what.range.begin; at < what.range.end; at = r.end_of_home(at, what.range.end))
    HPE_REQUIRE(!env_.devices.at(r.home_of(at)).lost(), HPE_ERROR_DEVICE_LOST,
                "device {} is lost and takes no data; the allocation at {} can be migrated to another", r.home_of(at),
                static_cast<void*>(r.is.base));
}

void copier::require_alive(const span& what) {
  HPE_REQUIRE(what.region->alive && what.range.end <= what.region->is.extent, HPE_ERROR_NOT_A_REGION,
              "an allocation that was to be copied was freed by another thread just now");
}

void copier::copy_across(const span& to, const span& from) {
  region& t = *to.region;
  region& f = *from.region;
  if (t.single_copy() && f.single_copy()) {
    wait_for_users(to, true);
    wait_for_users(from, false);
    std::memcpy(alias(to), alias(from), to.range.size());
    return;
  }
  if (f.single_copy()) {
    wait_for_users(from, false);
    return copy_in(to, alias(from));
  }
  if (t.single_copy()) {
    wait_for_users(to, true);
    return copy_out(alias(to), from);
  }
  std::deque<timepoint> under_way;  // of the pieces in buffers
  for (std::uint64_t done = 0; done < to.range.size();) {
    const std::uint64_t begin = done;
    std::uint64_t stop = std::min(begin + piece_size, to.range.size());
    // Where some homes need a buffer between them, it is there before the locks: which homes it will be is known later.
    std::optional<transfer::staged> through;
    if (!env_.engine.all_connected()) {
      if (under_way.size() == most_buffers) {
        env_.devices.wait(under_way.front(), std::chrono::steady_clock::time_point::max());
        under_way.pop_front();
      }
      through.emplace(env_.engine.borrow(env_.likely_home(t.is.base + to.range.begin + done)));
      stop = begin + transfer::next_piece(begin, to.range.size() - begin, through->size());
    }
    device_work work(env_, {{&f, {from.range.begin + done, from.range.begin + stop}, HPE_IN},
                            {&t, {to.range.begin + done, to.range.begin + stop}, HPE_OUT}});
    while (done < stop) {
      const std::uint64_t source = from.range.begin + done;
      const std::uint64_t target = to.range.begin + done;
      const std::uint64_t size = std::min(f.end_of_home(source, source + (stop - done)) - source,
                                          t.end_of_home(target, target + (stop - done)) - target);
      point_set after;
      f.order.before_read({source, source + size}, after);
      t.order.before_write({target, target + size}, after);
      const unsigned target_home = t.home_of(target);
      const unsigned source_home = f.home_of(source);
      const timepoint point = env_.engine.route_between(target_home, source_home) == transfer::route::peer_staged
                                  ? env_.engine.copy(target_home, t.is.base + target, source_home, f.is.base + source,
                                                     size, after.points(), *through, done - begin)
                                  : env_.engine.copy(target_home, t.is.base + target, source_home, f.is.base + source,
                                                     size, after.points());
      f.order.record_read({source, source + size}, point);
      t.order.record_write({target, target + size}, point);
      done += size;
    }
    work.commit();
    if (through) under_way.push_back(through->busy_until());
  }
}

void copier::fill(void* destination, std::uint8_t value, std::size_t bytes) {
  if (bytes == 0) return;
  HPE_REQUIRE(destination != nullptr, HPE_ERROR_INVALID_ARGUMENT, "{} bytes at a null pointer were to be set", bytes);
  const span to = resolve(destination, bytes);
  if (to.region == nullptr) {
    std::memset(destination, value, bytes);
    return;
  }
  region& r = *to.region;
  if (r.single_copy()) {
    wait_for_users(to, true);
    std::memset(alias(to), value, bytes);
    return;
  }
  device_work work(env_, {{&r, to.range, HPE_OUT}});
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const byte_range part{at, r.end_of_home(at, to.range.end)};
    point_set after;
    r.order.before_write(part, after);
    r.order.record_write(part, env_.engine.fill(r.home_of(at), r.is.base + at, value, part.size(), after.points()));
    at = part.end;
  }
  work.commit();
}

void copier::prefetch(const void* p, std::size_t bytes, int where) {
  const allocation found = memory_.require(p, bytes);
  region& r = *found.region;
  const std::uint64_t begin = r.offset_of(p);
  const std::uint64_t end = bytes != 0 ? begin + bytes : r.offset_of(found.base) + found.bytes;
  if (where == HPE_HOST) return env_.faults.prefetch(r.id, {begin, end});
  env_.require_device(where);
  // What a kernel that reads it would find done.
  device_work work(env_, {{&r, {begin, end}, HPE_IN}});
  work.commit();
}

}  // namespace hpe::core
