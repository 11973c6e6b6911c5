#include "runtime/transfer/engine.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "runtime/base/error.h"
#include "runtime/transfer/route.h"

namespace hpe::transfer {

using device::priority;

engine::engine(device::device_set& devices, const memory::uvas& space, std::size_t staging_buffer,
               std::size_t staging_count, counters& count)
    : devices_(devices),
      space_(space),
      count_(count),
      staging_(devices, space.alias(space.segment_begin(memory::segment_kind::runtime)), staging_buffer,
               staging_count) {
  for (unsigned d = 0; d < devices.size(); ++d) {
    device_streams streams{};
    for (const priority level : {priority::waiting_host, priority::launch, priority::prefetch, priority::rolling})
      streams.by_priority[unsigned(level)] = &devices.at(d).create_stream(level);
    streams_.push_back(streams);
  }
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

timepoint engine::download(unsigned home, std::byte* address, std::size_t bytes, points after, priority level) {
  device::stream& stream = stream_of(home, level);
  wait_all(stream, after);
  const timepoint done = stream.copy(space_.alias(address), address, bytes);
  counters::add(count_.bytes_to_host, bytes);
  return done;
}

timepoint engine::fill(unsigned home, std::byte* address, std::uint8_t value, std::size_t bytes, points after) {
  device::stream& stream = stream_of(home, priority::launch);
  wait_all(stream, after);
  return stream.fill(address, value, bytes);
}

staged engine::stage(const void* source, std::size_t bytes) {
  HPE_INVARIANT(bytes <= staging_.buffer_size());
  staged buffer(staging_, staging_.take(), bytes);
  std::memcpy(buffer.data(), source, bytes);
  return buffer;
}

timepoint engine::write(unsigned home, std::byte* address, staged& from, std::size_t offset, std::size_t bytes,
                        points after) {
  // One device after the other reads the buffer, so that its last reader's timepoint stands for all of them.
  device::stream& stream = stream_of(home, priority::launch);
  wait_all(stream, after);
  stream.wait(from.busy_until());
  const timepoint done = stream.copy(address, from.data() + offset, bytes);
  from.busy_until(done);
  counters::add(count_.bytes_to_device, bytes);
  counters::add(count_.bytes_staged, bytes);
  return done;
}

void engine::read(unsigned home, void* destination, const std::byte* address, std::size_t bytes, points after) {
  // Waited for here and not in the stream, which other waiting threads share.
  for (const timepoint point : after) devices_.wait(point, std::chrono::steady_clock::time_point::max());
  device::stream& stream = stream_of(home, priority::waiting_host);

  // While one buffer is emptied, the next is being filled.
  struct piece {
    staged buffer;
    std::size_t at;
    timepoint filled;
  };
  std::deque<piece> under_way;
  const auto empty_oldest = [&] {
    const piece& oldest = under_way.front();
    finish(oldest.filled);
    std::memcpy(static_cast<std::byte*>(destination) + oldest.at, oldest.buffer.data(), oldest.buffer.size());
    under_way.pop_front();
  };
  for (std::size_t at = 0; at < bytes; at += staging_.buffer_size()) {
    if (under_way.size() == 2) empty_oldest();
    std::byte* memory = under_way.empty() ? staging_.take() : staging_.try_take();
    if (memory == nullptr) {
      empty_oldest();
      memory = staging_.take();
    }
    const std::size_t size = std::min(staging_.buffer_size(), bytes - at);
    piece& next = under_way.emplace_back(piece{staged(staging_, memory, size), at, {}});
    next.filled = stream.copy(next.buffer.data(), address + at, size);
    next.buffer.busy_until(next.filled);
  }
  while (!under_way.empty()) empty_oldest();
  counters::add(count_.bytes_to_host, bytes);
  counters::add(count_.bytes_staged, bytes);
}

timepoint engine::copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                       points after) {
  const bool pulls = devices_.at(to).can_access(from);
  const bool pushes = devices_.at(from).can_access(to);
  const route way = choose_route(place::device, place::device, to == from, pulls || pushes);
  if (way != route::peer_staged) {
    device::stream& stream = stream_of(pulls ? to : from, priority::launch);
    wait_all(stream, after);
    if (way == route::peer) counters::add(count_.bytes_peer, bytes);
    return stream.copy(destination, source, bytes);
  }

  device::stream& out = stream_of(from, priority::launch);
  device::stream& in = stream_of(to, priority::launch);
  wait_all(out, after);
  timepoint done;
  for (std::size_t at = 0; at < bytes; at += staging_.buffer_size()) {
    const std::size_t piece = std::min(staging_.buffer_size(), bytes - at);
    staged buffer(staging_, staging_.take(), piece);
    const timepoint filled = out.copy(buffer.data(), source + at, piece);
    buffer.busy_until(filled);
    in.wait(filled);
    done = in.copy(destination + at, buffer.data(), piece);
    buffer.busy_until(done);
  }
  counters::add(count_.bytes_peer, bytes);
  counters::add(count_.bytes_staged, bytes);
  return done;
}

void engine::for_each_stream(unsigned home, const std::function<void(const device::stream&)>& visit) const {
  for (const device::stream* s : streams_[home].by_priority) visit(*s);
}

}  // namespace hpe::transfer
