#include "runtime/transfer/engine.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

namespace hpe::transfer {

using device::priority;

engine::engine(device::device_set& devices, memory::uvas& space, const staging_options& staging, counters& count)
    : devices_(devices), space_(space), options_(staging), count_(count), chunk_(staging.buffer) {
  const std::size_t ring_bytes = staging.buffer * staging.count;
  std::byte* ring = space.alias(space.segment_begin(memory::segment_kind::runtime));
  space.open_alias(space.segment_begin(memory::segment_kind::runtime), ring_bytes * staging.near.groups());
  for (unsigned g = 0; g < staging.near.groups(); ++g, ring += ring_bytes) {
    options_.near.settle_memory(g, ring, ring_bytes);
    // NOLINTNEXTLINE(modernize-make-unique): make_unique cannot build the ring, which cannot be moved, in its place
    groups_.push_back(std::unique_ptr<group>(new group{{devices, ring, staging.buffer, staging.count}}));
  }
  for (unsigned d = 0; d < devices.size(); ++d) {
    device_streams streams{};
    for (const priority level : {priority::waiting_host, priority::launch, priority::prefetch, priority::rolling})
      streams.by_priority[unsigned(level)] = &devices.at(d).create_stream(level);
    streams.leaving = &devices.at(d).create_stream(priority::launch);
    streams_.push_back(streams);
  }
  for (unsigned to = 0; to < devices.size(); ++to)
    for (unsigned from = 0; from < devices.size(); ++from)
      all_connected_ = all_connected_ && route_between(to, from) != route::peer_staged;
}

void engine::wait_all(device::stream& stream, points after) {
  for (const timepoint point : after) stream.wait(point);
}

void engine::finish(timepoint point) {
  devices_.wait(point, std::chrono::steady_clock::time_point::max());
  if (const auto failure = devices_.status_of(point)) throw *failure;
}

timepoint engine::upload(unsigned home, std::byte* address, std::size_t bytes, points after, priority level) {
  device::stream& stream = stream_of(home, level);
  wait_all(stream, after);
  const timepoint done = stream.copy(address, space_.alias(address), bytes);
  counters::add(count_.bytes_to_device, bytes);
  return done;
}

timepoint engine::upload_rows(unsigned home, std::byte* address, const box& rows, points after, priority level) {
  device::stream& stream = stream_of(home, level);
  wait_all(stream, after);
  const timepoint done = stream.copy_rows(address, space_.alias(address), rows);
  counters::add(count_.bytes_to_device, rows.bytes());
  return done;
}

timepoint engine::download(unsigned home, std::byte* address, std::size_t bytes, points after, priority level) {
  device::stream& stream = stream_of(home, level);
  wait_all(stream, after);
  const timepoint done = stream.copy(space_.alias(address), address, bytes);
  counters::add(count_.bytes_to_host, bytes);
  return done;
}

timepoint engine::evict(unsigned home, std::byte* address, std::size_t bytes, points after) {
  device::stream& stream = *streams_[home].leaving;
  wait_all(stream, after);
  const timepoint done = stream.copy(space_.alias(address), address, bytes);
  counters::add(count_.bytes_to_host, bytes);
  counters::add(count_.bytes_written_back, bytes);
  return done;
}

timepoint engine::fill(unsigned home, std::byte* address, std::uint8_t value, std::size_t bytes, points after) {
  device::stream& stream = stream_of(home, priority::launch);
  wait_all(stream, after);
  return stream.fill(address, value, bytes);
}

copy_crew::pending engine::begin_copy(unsigned home, void* to, const void* from, std::size_t bytes,
                                      copy_crew::writing how) {
  if (bytes < copy_crew::worth_helping) {
    copy_crew::copy_alone(to, from, bytes, how);
    return {};
  }
  std::call_once(fitted_, [&] {
    const calibration found = fit();
    chunk_.store(found.chunk, std::memory_order_relaxed);
    for (unsigned g = 0; g < groups_.size(); ++g)
      groups_[g]->crew = std::make_unique<copy_crew>(found.threads - 1, [this, g] { options_.near.settle_thread(g); });
  });
  return near(home).crew->begin(to, from, bytes, how);
}

calibration engine::fit() noexcept {
  const unsigned most_threads = copy_crew::threads_for_this_machine();
  calibration result{options_.buffer, most_threads};
  const device::properties& first = devices_.at(0).info();
  // Soft devices are not measured: their links are copies that the host's own cores make.
  if (options_.fit != fitting::off && first.kind == HPE_DEVICE_CUDA) {
    try {
      const auto cache = calibration_cache::of(devices_, first);
      const auto known = options_.fit == fitting::again ? std::nullopt : cache.load(options_.buffer, most_threads);
      if (known) {
        result = *known;
      } else {
        // Borrows without waiting, because the caller may hold a buffer.
        std::vector<staged> borrowed;
        while (auto buffer = try_borrow(0)) borrowed.push_back(std::move(*buffer));
        std::vector<std::byte*> buffers;
        for (const staged& b : borrowed) buffers.push_back(b.data());
        // The trial needs device memory. fit() maps it at the addresses of the staging buffers, where no other device
        // memory is mapped.
        std::byte* const place = space_.segment_begin(memory::segment_kind::runtime);
        const std::size_t bytes = round_up(options_.buffer, granule_size);
        if (!buffers.empty()) {
          devices_.at(0).map(place, bytes);
          result = calibrate(devices_, 0, place, buffers, options_.buffer, most_threads,
                             [this] { options_.near.settle_thread(options_.near.group(0)); });
          devices_.at(0).unmap(place, bytes);
          cache.store(result);
        }
      }
    } catch (const std::exception& e) {
      log(log_level::debug, "calibration of transfers: {}", e.what());
    }
  }
  if (options_.threads != 0) result.threads = options_.threads;
  return result;
}

engine::filling engine::stage(unsigned home, const void* source, std::size_t bytes, std::size_t whole) {
  return fill_buffer(home, borrow(home), source, bytes, whole);
}

std::optional<engine::filling> engine::try_stage(unsigned home, const void* source, std::size_t bytes,
                                                 std::size_t whole) {
  auto buffer = try_borrow(home);
  if (!buffer) return std::nullopt;
  return fill_buffer(home, std::move(*buffer), source, bytes, whole);
}

engine::filling engine::fill_buffer(unsigned home, staged&& buffer, const void* source, std::size_t bytes,
                                    std::size_t whole) {
  HPE_INVARIANT(bytes <= buffer.size());
  // A soft device runs on cores of the host, and reads data faster if the data is in their caches.
  const bool on_gpu = devices_.at(home).info().kind == HPE_DEVICE_CUDA;
  auto copy =
      begin_copy(home, buffer.data(), source, bytes, on_gpu ? copy_crew::to_stage(whole) : copy_crew::writing::cached);
  return {std::move(buffer), std::move(copy)};
}

staged engine::filled(filling&& begun) {
  begun.copy.finish();
  return std::move(begun.buffer);
}

timepoint engine::write(unsigned home, std::byte* address, staged& from, std::size_t offset, std::size_t bytes,
                        points after) {
  // Devices read the buffer one after the other, so that the timepoint of the last reader covers all readers.
  device::stream& stream = stream_of(home, priority::launch);
  wait_all(stream, after);
  stream.wait(from.busy_until());
  const timepoint done = stream.copy(address, from.data() + offset, bytes);
  from.busy_until(done);
  counters::add(count_.bytes_to_device, bytes);
  counters::add(count_.bytes_staged, bytes);
  return done;
}

staged engine::borrow(unsigned home) {
  staging_ring& ring = near(home).ring;
  return {ring, ring.take(), ring.buffer_size()};
}

std::optional<staged> engine::try_borrow(unsigned home) {
  staging_ring& ring = near(home).ring;
  std::byte* memory = ring.try_take();
  if (memory == nullptr) return std::nullopt;
  return staged(ring, memory, ring.buffer_size());
}

timepoint engine::read(unsigned home, staged& into, const std::byte* address, std::size_t bytes) {
  const timepoint done = stream_of(home, priority::waiting_host).copy(into.data(), address, bytes);
  into.busy_until(done);
  counters::add(count_.bytes_to_host, bytes);
  counters::add(count_.bytes_staged, bytes);
  return done;
}

timepoint engine::copy_to_host(unsigned home, std::byte* registered, const std::byte* address, std::size_t bytes) {
  const timepoint done = stream_of(home, priority::waiting_host).copy(registered, address, bytes);
  counters::add(count_.bytes_to_host, bytes);
  counters::add(count_.bytes_staged, bytes);
  return done;
}

timepoint engine::copy_from_host(unsigned home, std::byte* address, const std::byte* registered, std::size_t bytes,
                                 points after) {
  device::stream& stream = stream_of(home, priority::launch);
  wait_all(stream, after);
  const timepoint done = stream.copy(address, registered, bytes);
  counters::add(count_.bytes_to_device, bytes);
  counters::add(count_.bytes_staged, bytes);
  return done;
}

route engine::route_between(unsigned to, unsigned from) const {
  const bool reachable = devices_.at(to).can_access(from) || devices_.at(from).can_access(to);
  return choose_route(copy_endpoint::device, copy_endpoint::device, to == from, reachable);
}

timepoint engine::copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                       points after) {
  device::stream& stream = stream_of(devices_.at(to).can_access(from) ? to : from, priority::launch);
  wait_all(stream, after);
  if (route_between(to, from) == route::peer) counters::add(count_.bytes_peer, bytes);
  return stream.copy(destination, source, bytes);
}

timepoint engine::copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                       points after, staged& through, std::size_t offset) {
  device::stream& out = *streams_[from].leaving;
  device::stream& in = stream_of(to, priority::launch);
  wait_all(out, after);
  // The commands that use the buffer run one after the other, so that the timepoint of the last command covers all of
  // them.
  out.wait(through.busy_until());
  const timepoint filled = out.copy(through.data() + offset, source, bytes);
  through.busy_until(filled);
  in.wait(filled);
  const timepoint done = in.copy(destination, through.data() + offset, bytes);
  through.busy_until(done);
  counters::add(count_.bytes_peer, bytes);
  counters::add(count_.bytes_staged, bytes);
  return done;
}

timepoint engine::copy_foreign(unsigned home, std::byte* destination, const std::byte* source, std::size_t bytes,
                               points after) {
  device::stream& stream = stream_of(home, priority::launch);
  wait_all(stream, after);
  const timepoint done = stream.copy(destination, source, bytes);
  counters::add(count_.bytes_peer, bytes);
  return done;
}

void engine::for_each_stream(unsigned home, const std::function<void(const device::stream&)>& visit) const {
  for (const device::stream* s : streams_[home].by_priority) visit(*s);
  visit(*streams_[home].leaving);
}

}  // namespace hpe::transfer
