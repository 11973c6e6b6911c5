#include "runtime/core/operations/copier.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/core/operations/arrivals.h"
#include "runtime/device/checks.h"
#include "runtime/trace/measured.h"
#include "runtime/work/reading.h"

// The shadow is the only copy of host memory (hpeMallocHost). The calling thread waits for the device work that uses
// the host memory, and then reads or writes the shadow through the alias. All other copies are device work: a
// submission orders and queues them like a kernel.
//
// Threads take staging buffers before they lock the mutexes of regions, so that no thread waits for a buffer while it
// holds a mutex.

namespace hpe::core {

using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using work::region_range;
using work::submission;

namespace {

// Copies of more bytes than this are queued in chunks, so that other threads can lock the region in between. Each chunk
// costs the caller some microseconds before it can queue other work, for example the copy in the other direction.
constexpr std::uint64_t largest_chunk = std::uint64_t{256} << 20;

// The largest number of buffers that a copy between homes uses at once, so that buffers are left for a copy in the
// other direction.
constexpr std::size_t most_buffers = 4;

bool homes_change_inside_blocks(const region_range& to, const region_range& from) {
  if (from.region->layout.homes.size() == 1) return false;
  const lock_guard lock(to.region->mutex);
  return (to.range.begin - from.range.begin) % to.region->layout.block_size != 0;
}

}  // namespace

template <class WithPart>
void copier::in_parts_that_fit(const region_range& all, const WithPart& with_part) const {
  const std::uint64_t most = with_.room.most_for_a_copy(*all.region);
  for (region_range part = all; part.range.begin < all.range.end; part.range.begin = part.range.end) {
    part.range.end = std::min(all.range.end, (part.range.begin / granule_size * granule_size) + most);
    with_part(part);
  }
}

region_range copier::resolve(const void* p, std::size_t bytes) const {
  if (!space_.contains(p)) return {};
  const allocation found = memory_.require(p, bytes);
  const std::uint64_t begin = found.region->offset_of(p);
  return {found.region, {begin, begin + bytes}};
}

void copier::wait_for_announced(const void* p, std::size_t bytes, bool write) const {
  if (!announced_.any() || bytes == 0) return;
  const region_range found = resolve(p, bytes);
  if (found.region != nullptr) announced_.wait_before(*found.region, found.range, write);
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

std::byte* copier::alias(const region_range& bytes) const { return space_.alias(bytes.address()); }

void copier::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  HPE_REQUIRE(destination != nullptr && source != nullptr, HPE_ERROR_INVALID_ARGUMENT,
              "a copy of {} bytes has a null {}", bytes, destination == nullptr ? "destination" : "source");
  const region_range to = resolve(destination, bytes);
  const region_range from = resolve(source, bytes);
  const auto distance = static_cast<std::uint64_t>(
      std::abs(static_cast<std::byte*>(destination) - static_cast<const std::byte*>(source)));
  HPE_REQUIRE(distance >= bytes, HPE_ERROR_INVALID_ARGUMENT,
              "the source and the destination of a copy of {} bytes overlap", bytes);

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

void copier::copy_in(const region_range& to, const std::byte* source) {
  region& r = *to.region;
  if (r.single_copy()) {
    work::wait_for_users(to, true, with_.devices);
    std::memcpy(alias(to), source, to.range.size());
    return;
  }
  // The copy threads fill one buffer while this thread queues the previous buffer. So the copy threads need not wait
  // for this thread between two buffers.
  struct begun {
    byte_range range;
    transfer::engine::filling chunk;
  };
  std::optional<begun> last;
  const auto queue_last = [&] {
    if (!last) return;
    queue_in({&r, last->range}, transfer::engine::filled(std::move(last->chunk)));
    last.reset();
  };
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const std::uint64_t done = at - to.range.begin;
    const std::uint64_t wished = transfer::next_chunk(done, to.range.end - at, with_.engine.staging_size());
    const std::uint64_t size = between_blocks(to, at, at + wished) - at;
    const unsigned home = memory_.likely_home(r.layout.base + at);
    auto next = with_.engine.try_stage(home, source + done, size, to.range.size());
    queue_last();
    if (!next)
      next.emplace(with_.engine.stage(home, source + done, size,
                                      to.range.size()));  // waits for a buffer; this thread holds no other buffer now
    last.emplace(begun{{at, at + size}, std::move(*next)});
    at += size;
  }
  queue_last();
}

void copier::queue_in(const region_range& to, transfer::staged buffer) {
  overwrite(to).submit_by_home([&](unsigned home, byte_range part, const point_set& after) {
    return with_.engine.write(home, to.region->layout.base + part.begin, buffer, part.begin - to.range.begin,
                              part.size(), after.points());
  });
}

std::uint64_t copier::between_blocks(const region_range& to, std::uint64_t begin, std::uint64_t end) {
  if (end == to.range.end) return end;
  const lock_guard lock(to.region->mutex);
  const std::uint64_t block = to.region->layout.block_size;
  const std::uint64_t boundary = end / block * block;
  return boundary > begin ? boundary : end;
}

submission copier::overwrite(const region_range& to) const {
  return submission(with_, {{to.region, to.range, HPE_OUT}},
                    [&](const work::device_access&) { to.require_homes(with_.devices); });
}

void copier::copy_out(std::byte* destination, const region_range& from) {
  if (from.region->single_copy()) {
    work::wait_for_users(from, false, with_.devices);
    std::memcpy(destination, alias(from), from.range.size());
    return;
  }
  arrivals under_way(with_.engine);
  std::optional<transfer::staged> buffer;
  for (std::uint64_t at = from.range.begin; at < from.range.end;) {
    // Between two turns of this loop, the thread holds no lock. So each turn checks again what the next bytes need: a
    // wait for their writers, a staging buffer, or the copy itself.
    const std::uint64_t most =
        transfer::next_chunk(at - from.range.begin, from.range.end - at, with_.engine.staging_size());
    const auto read = [&](unsigned home, const region_range& bytes) -> std::optional<timepoint> {
      if (!buffer) return std::nullopt;
      return with_.engine.read(home, *buffer, bytes.address(), bytes.range.size());
    };
    const work::read_stretch next = work::read_next(from, at, most, with_, read);
    if (next.missing) {
      with_.host.bring(next.bytes);
      continue;
    }
    std::byte* const into = destination + (at - from.range.begin);
    const unsigned home = memory_.likely_home(next.bytes.address());
    if (next.on_host) {
      with_.engine.copy_on_host(home, into, alias(next.bytes), next.bytes.range.size());
    } else if (next.queued) {
      under_way.add(home, std::move(*buffer), into, next.bytes.range.size());
      buffer.reset();
    } else if (buffer || !work::reached(next.writers.points(), with_.devices)) {
      // Wait here and not in the stream, because the copies of other waiting threads use the same stream. A thread that
      // has a buffer must not wait for a second buffer, even if the writers have just finished.
      work::wait_for(next.writers.points(), with_.devices);
      continue;
    } else {
      buffer.emplace(under_way.next_buffer(home));
      continue;
    }
    at = next.bytes.range.end;
  }
  under_way.finish();
}

void copier::copy_across(const region_range& to, const region_range& from) {
  region& t = *to.region;
  region& f = *from.region;
  if (t.single_copy() && f.single_copy()) {
    work::wait_for_users(to, true, with_.devices);
    work::wait_for_users(from, false, with_.devices);
    std::memcpy(alias(to), alias(from), to.range.size());
    return;
  }
  if (f.single_copy()) {
    work::wait_for_users(from, false, with_.devices);
    return copy_in(to, alias(from));
  }
  if (t.single_copy()) {
    work::wait_for_users(to, true, with_.devices);
    return copy_out(alias(to), from);
  }
  // If homes of the source change inside a block of the target, two commands write the block. In this case the block is
  // first uploaded, so that all of it is valid at its home even if only one of the two commands can be queued.
  work::await_room(to, with_.devices);
  const hpeAccessMode target_mode = homes_change_inside_blocks(to, from) ? HPE_INOUT : HPE_OUT;
  const std::uint64_t most = std::min({largest_chunk, with_.room.most_for_a_copy(t), with_.room.most_for_a_copy(f)});
  std::deque<timepoint> under_way;  // the timepoints of the chunks that still use buffers
  for (std::uint64_t done = 0; done < to.range.size();) {
    const std::uint64_t begin = done;
    std::uint64_t stop = std::min(begin + most, to.range.size());
    // Copies between some homes need a buffer. Take the buffer before the mutexes are locked, although the homes are
    // known only under the mutexes.
    std::optional<transfer::staged> through;
    if (!with_.engine.all_connected()) {
      if (under_way.size() == most_buffers) {
        with_.devices.wait(under_way.front(), std::chrono::steady_clock::time_point::max());
        under_way.pop_front();
      }
      through.emplace(with_.engine.borrow(memory_.likely_home(t.layout.base + to.range.begin + done)));
      stop = begin + transfer::next_chunk(begin, to.range.size() - begin, through->size());
    }
    stop = between_blocks(to, to.range.begin + begin, to.range.begin + stop) - to.range.begin;
    submission work(with_, {{&f, {from.range.begin + done, from.range.begin + stop}, HPE_IN},
                            {&t, {to.range.begin + done, to.range.begin + stop}, target_mode}});
    while (done < stop) {
      const std::uint64_t source = from.range.begin + done;
      const std::uint64_t target = to.range.begin + done;
      const std::uint64_t size = std::min(f.end_of_home(source, source + (stop - done)) - source,
                                          t.end_of_home(target, target + (stop - done)) - target);
      const unsigned target_home = t.home_of(target);
      const unsigned source_home = f.home_of(source);
      const work::device_access part[] = {{&f, {source, source + size}, HPE_IN},
                                          {&t, {target, target + size}, target_mode}};
      work.submit_part(part, [&](const point_set& after) {
        std::byte* const into = t.layout.base + target;
        const std::byte* const out_of = f.layout.base + source;
        if (with_.engine.route_between(target_home, source_home) != transfer::route::peer_staged)
          return with_.engine.copy(target_home, into, source_home, out_of, size, after.points());
        return with_.engine.copy(target_home, into, source_home, out_of, size, after.points(), *through, done - begin);
      });
      done += size;
    }
    if (through) under_way.push_back(through->busy_until());
  }
}

void copier::fill(void* destination, std::uint8_t value, std::size_t bytes) {
  if (bytes == 0) return;
  HPE_REQUIRE(destination != nullptr, HPE_ERROR_INVALID_ARGUMENT, "the address of {} bytes to set is a null pointer",
              bytes);
  const region_range to = resolve(destination, bytes);
  if (to.region == nullptr) {
    std::memset(destination, value, bytes);
    return;
  }
  region& r = *to.region;
  if (r.single_copy()) {
    work::wait_for_users(to, true, with_.devices);
    std::memset(alias(to), value, bytes);
    return;
  }
  work::await_room(to, with_.devices);
  in_parts_that_fit(to, [&](const region_range& some) {
    overwrite(some).submit_by_home([&](unsigned home, byte_range part, const point_set& after) {
      return with_.engine.fill(home, r.layout.base + part.begin, value, part.size(), after.points());
    });
  });
}

void copier::prefetch(const void* p, std::size_t bytes, int where) {
  const allocation found = memory_.require(p, bytes);
  region& r = *found.region;
  const std::uint64_t begin = r.offset_of(p);
  const std::uint64_t end = bytes != 0 ? begin + bytes : r.offset_of(found.base) + found.bytes;
  if (where == HPE_HOST) return faults_.prefetch(r.id, {begin, end});
  device::require_device(with_.devices, where);
  in_parts_that_fit({&r, {begin, end}}, [&](const region_range& part) {
    const submission as_for_a_reading_kernel(with_, {{&r, part.range, HPE_IN}});
  });
}

}  // namespace hpe::core
