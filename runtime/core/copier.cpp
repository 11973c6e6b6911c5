#include "runtime/core/copier.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

// Host memory (one copy, the shadow) is read and written through its alias by the calling thread, after the device
// work that uses it. Everything else is device work like a kernel: released, ordered, and queued.

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;

namespace {

// Larger copies are queued in pieces, so that others get at the region in between.
constexpr std::uint64_t piece_size = std::uint64_t{8} << 20;

}  // namespace

copier::span copier::resolve(const void* p, std::size_t bytes) const {
  if (!env_.space.contains(p)) return {};
  const allocation found = memory_.require(p, bytes);
  const std::uint64_t begin = found.region->offset_of(p);
  return {found.region, {begin, begin + bytes}};
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
  } else if (from.region == nullptr) {
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
    device_work work(env_, {{&r, to.range, HPE_OUT}});
    work.commit();
  }
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const std::uint64_t size = std::min<std::uint64_t>(env_.engine.staging_size(), to.range.end - at);
    auto buffer = env_.engine.stage(source + (at - to.range.begin), size);
    device_work work(env_, {{&r, {at, at + size}, HPE_OUT}});
    for (const std::uint64_t end = at + size; at < end;) {
      const byte_range part{at, r.end_of_home(at, end)};
      point_set after;
      r.order.before_write(part, after);
      r.order.record_write(part, env_.engine.write(r.home_of(at), r.is.base + at, buffer, buffer.size() - (end - at),
                                                   part.size(), after.points()));
      at = part.end;
    }
    work.commit();
  }
}

void copier::copy_out(std::byte* destination, const span& from) {
  region& r = *from.region;
  if (r.single_copy()) {
    wait_for_users(from, false);
    std::memcpy(destination, alias(from), from.range.size());
    return;
  }
  for (std::uint64_t at = from.range.begin; at < from.range.end;) {
    // The longest stretch from here that is good on one side and has one home.
    byte_range part;
    bool on_host = false;
    unsigned home = 0;
    point_set writers;
    {
      const std::lock_guard lock(r.mutex);
      const auto host_has = [&](std::uint64_t b) {
        const block_state s = r.blocks[b].state;
        return s == block_state::host || s == block_state::shared || s == block_state::fresh;
      };
      std::uint64_t b = r.block_of(at);
      on_host = host_has(b);
      const std::uint64_t last = r.block_of(from.range.end - 1);
      while (b < last && host_has(b + 1) == on_host) ++b;
      part = {at, std::min(r.bytes_of({b, b + 1}).end, from.range.end)};
      if (!on_host) {
        part.end = r.end_of_home(at, part.end);
        home = r.home_of(at);
        r.order.before_read(part, writers);
      }
    }
    std::byte* into = destination + (at - from.range.begin);
    if (on_host) {
      std::memcpy(into, alias({&r, part}), part.size());
    } else {
      env_.engine.read(home, into, r.is.base + part.begin, part.size(), writers.points());
    }
    at = part.end;
  }
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
  for (std::uint64_t done = 0; done < to.range.size();) {
    const std::uint64_t stop = std::min(done + piece_size, to.range.size());
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
      const timepoint point = env_.engine.copy(t.home_of(target), t.is.base + target, f.home_of(source),
                                               f.is.base + source, size, after.points());
      f.order.record_read({source, source + size}, point);
      t.order.record_write({target, target + size}, point);
      done += size;
    }
    work.commit();
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
