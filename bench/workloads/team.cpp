// Invariants: the pinned buffer of a transfer is the alias of the transfer's source; therefore, two transfers share a
// buffer only if they copy the same bytes to different devices. Streams of copies and streams of launches wait for each
// other only at timepoints whose work is already queued.

#include "bench/workloads/team.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/common/devices.h"
#include "runtime/base/granule.h"

namespace hpe::bench {

namespace {

constexpr auto forever = std::chrono::steady_clock::time_point::max();

std::string as_hpe_has_them() { return (on_gpus() ? "cuda:" : "soft:") + std::to_string(device_count()); }

void wait_unless_none(device::stream& stream, timepoint point) {
  if (!point.none()) stream.wait(point);
}

}  // namespace

const char* name_of(copy_scheme s) {
  switch (s) {
    case copy_scheme::naive: return "naive";
    case copy_scheme::pinned: return "pinned";
    case copy_scheme::double_buffered: return "double-buffered";
    case copy_scheme::peer: return "peer";
  }
  return "";
}

team::team(int devices, std::size_t bytes_each)
    : space_(0, round_up(bytes_each, std::size_t{1} << 30), static_cast<unsigned>(device_count())),
      devices_(device::open_devices(as_hpe_has_them(), space_.layout())) {
  on_gpus_ = devices_->at(0).info().kind == HPE_DEVICE_CUDA;
  devices_->register_host(pinned(space_.segment_begin(memory::segment_kind::device, 0)), space_.layout().size(),
                          space_.shadow_file(), 0);
  space_.open_alias(space_.segment_begin(memory::segment_kind::device, 0), space_.layout().size());
  for (int d = 0; d < devices; ++d) {
    device::device& its = devices_->at(static_cast<unsigned>(d));
    parts_.push_back({&its.create_stream(device::priority::launch),
                      &its.create_stream(device::priority::launch),
                      space_.segment_begin(memory::segment_kind::device, static_cast<unsigned>(d)),
                      {}});
  }
}

void team::use(copy_scheme scheme, bool left_out) {
  finish();
  scheme_ = scheme;
  left_out_ = left_out;
}

std::byte* team::take_bytes(int device, std::size_t bytes) {
  std::byte* const mine = at(device).free;
  const std::size_t room = round_up(std::max<std::size_t>(bytes, 1), granule_size);
  devices_->at(static_cast<unsigned>(device)).map(mine, room);
  at(device).free += room;
  return mine;
}

void team::copy(int device, void* to, const void* from, std::size_t bytes) {
  wait(at(device).work->copy(to, from, bytes));
}

void team::put(int device, void* to, const void* from, std::size_t bytes) {
  std::memcpy(pinned(to), from, bytes);
  wait(at(device).work->copy(to, pinned(to), bytes));
}

void team::get(int device, void* to, const void* from, std::size_t bytes) {
  wait(at(device).work->copy(pinned(from), from, bytes));
  std::memcpy(to, pinned(from), bytes);
}

device::kernel_id team::find(const std::string& module, const std::string& kernel) {
  return devices_->find_kernel(devices_->load_module(module), kernel);
}

timepoint team::launch_bytes(int device, device::kernel_id kernel, const hpeShape& shape,
                             std::span<const std::byte> parameters) {
  return at(device).work->launch(
      kernel, {{shape.grid[0], shape.grid[1], shape.grid[2]}, {shape.block[0], shape.block[1], shape.block[2]}},
      parameters);
}

timepoint team::enqueue(int device, const std::function<int(void*)>& function) {
  return at(device).work->enqueue(function);
}

timepoint team::last(int device) const { return parts_[static_cast<std::size_t>(device)].work->last(); }

void team::wait(timepoint point) {
  // On a GPU, spins until the point is reached, as a synchronous copy of the CUDA driver does.
  while (on_gpus_ && !devices_->reached(point)) __builtin_ia32_pause();
  devices_->wait(point, forever);
}

void team::finish() {
  for (const part& p : parts_) {
    if (!p.work->last().none()) wait(p.work->last());
    if (!p.copies->last().none()) wait(p.copies->last());
  }
}

void team::exchange(const std::vector<transfer>& all) {
  if (left_out_) return;
  if (scheme_ == copy_scheme::naive || scheme_ == copy_scheme::pinned) return through_host(all);
  for (const transfer& t : all) scheme_ == copy_scheme::peer ? peer(t) : double_buffered(t);
  if (scheme_ == copy_scheme::peer) return;
  for (const transfer& t : all) wait(at(t.to).copies->last());
}

void team::peer(const transfer& t) {
  device::stream& copies = *at(t.to).copies;
  wait_unless_none(copies, t.source_ready);
  wait_unless_none(copies, t.target_ready);
  const timepoint there = copies.copy(t.target, t.source, t.bytes);
  at(t.from).work->wait(there);
  at(t.to).work->wait(there);
}

void team::double_buffered(const transfer& t) {
  constexpr std::size_t chunk = std::size_t{2} << 20;
  device::stream &down = *at(t.from).copies, &up = *at(t.to).copies;
  std::byte* const buffer = pinned(t.source);
  wait_unless_none(down, t.source_ready);
  wait_unless_none(up, t.target_ready);
  timepoint emptied[2];
  for (std::size_t begin = 0, i = 0; begin < t.bytes; begin += chunk, ++i) {
    const std::size_t bytes = std::min(chunk, t.bytes - begin);
    std::byte* const half = buffer + (i % 2) * chunk;
    wait_unless_none(down, emptied[i % 2]);
    const timepoint filled = down.copy(half, static_cast<const std::byte*>(t.source) + begin, bytes);
    up.wait(filled);
    emptied[i % 2] = up.copy(static_cast<std::byte*>(t.target) + begin, half, bytes);
  }
  at(t.from).work->wait(down.last());
  at(t.to).work->wait(up.last());
  down.wait(up.last());  // the next transfer may use the same pinned buffer
}

void team::through_host(const std::vector<transfer>& all) {
  const bool pageable = scheme_ == copy_scheme::naive;
  const auto down = [&](const transfer& t) {
    device::stream& copies = *at(t.from).copies;
    wait_unless_none(copies, t.source_ready);
    return copies.copy(pinned(t.source), t.source, t.bytes);
  };
  const auto up = [&](const transfer& t) {
    device::stream& copies = *at(t.to).copies;
    wait_unless_none(copies, t.target_ready);
    return copies.copy(t.target, pinned(t.source), t.bytes);
  };
  if (!pageable) {
    std::vector<timepoint> points;
    for (const transfer& t : all) points.push_back(down(t));
    for (const timepoint p : points) wait(p);
    points.clear();
    for (const transfer& t : all) points.push_back(up(t));
    for (const timepoint p : points) wait(p);
    return;
  }
  // Copies of pageable memory are synchronous: each transfer begins after the previous one has ended. As in the driver,
  // each transfer goes through a pinned buffer.
  for (const transfer& t : all) {
    std::vector<std::byte>& own = at(t.from).pageable;
    if (own.size() < t.bytes) own.resize(t.bytes);
    wait(down(t));
    std::memcpy(own.data(), pinned(t.source), t.bytes);
    std::memcpy(pinned(t.source), own.data(), t.bytes);
    wait(up(t));
  }
}

}  // namespace hpe::bench
