#include "bench/copies/bare_copies.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/base/granule.h"

namespace hpe::bench {

namespace {

constexpr unsigned most_devices = 2;

}  // namespace

bare_copies::bare_copies(const std::string& specification, std::size_t largest)
    : largest_(round_up(largest, granule_size)),
      space_(0, round_up(2 * largest_, std::size_t{1} << 30), most_devices),
      devices_(device::open_devices(specification, space_.layout())) {
  spins_ = devices_->at(0).info().kind == HPE_DEVICE_CUDA;
  std::byte* const alias = space_.alias(space_.segment_begin(memory::segment_kind::device, 0));
  devices_->register_host(alias, space_.layout().size(), space_.shadow_file(), 0);
  space_.open_alias(space_.segment_begin(memory::segment_kind::device, 0), space_.layout().size());
  for (unsigned d = 0; d < std::min(devices(), most_devices); ++d) {
    for (int l = 0; l < lanes; ++l) {
      devices_->at(d).map(memory(static_cast<int>(d), l), largest_);
      streams_.push_back(&devices_->at(d).create_stream(device::priority::launch));
    }
  }
  for (int l = 0; l < lanes; ++l) std::memset(pinned(l), 1, largest_);
}

bool bare_copies::direct(direction way) const {
  return way.from == direction::host || way.to == direction::host ||
         devices_->at(static_cast<unsigned>(way.to)).can_access(static_cast<unsigned>(way.from));
}

std::byte* bare_copies::memory(int device, int lane) const {
  return space_.segment_begin(memory::segment_kind::device, static_cast<unsigned>(device)) +
         static_cast<std::size_t>(lane) * largest_;
}

std::byte* bare_copies::pinned(int lane) const { return space_.alias(memory(0, lane)); }

device::stream& bare_copies::stream(int device, int lane) const {
  return *streams_[static_cast<std::size_t>(device) * lanes + static_cast<std::size_t>(lane)];
}

void bare_copies::finish(timepoint point) const {
  // On a GPU, spins until the copy is done, as a synchronous copy of the CUDA driver does.
  while (spins_ && !devices_->reached(point)) __builtin_ia32_pause();
  devices_->wait(point, std::chrono::steady_clock::time_point::max());
}

timepoint bare_copies::queue(direction way, int lane, std::size_t at, std::byte* pinned, std::size_t bytes) const {
  if (way.from == direction::host) return stream(way.to, lane).copy(memory(way.to, lane) + at, pinned, bytes);
  return stream(way.from, lane).copy(pinned, memory(way.from, lane) + at, bytes);
}

void bare_copies::plain(direction way, int lane, std::size_t bytes) {
  const auto place = [&](int where) { return where == direction::host ? pinned(lane) : memory(where, lane); };
  finish(stream(way.to == direction::host ? way.from : way.to, lane).copy(place(way.to), place(way.from), bytes));
}

void bare_copies::staged(direction way, int lane, std::byte* pageable, std::size_t bytes) {
  if (way.from == direction::host)
    std::memcpy(pinned(lane), pageable, bytes);
  else
    plain({way.from, direction::host}, lane, bytes);
  if (way.to == direction::host)
    std::memcpy(pageable, pinned(lane), bytes);
  else
    plain({direction::host, way.to}, lane, bytes);
}

void bare_copies::double_buffered(direction way, int lane, std::byte* pageable, std::size_t bytes) {
  std::byte* const buffers[2] = {pinned(lane), pinned(lane) + chunk};
  timepoint filled[2], emptied[2];
  const std::size_t chunks = (bytes + chunk - 1) / chunk;
  // Fills a buffer with chunk i while the other buffer is emptied of chunk i - 1.
  for (std::size_t i = 0; i <= chunks; ++i) {
    if (i < chunks) {
      const std::size_t at = i * chunk, size = std::min(chunk, bytes - at), b = i % 2;
      if (way.from == direction::host) {
        finish(emptied[b]);
        std::memcpy(buffers[b], pageable + at, size);
      } else {
        if (!emptied[b].none()) stream(way.from, lane).wait(emptied[b]);
        filled[b] = queue({way.from, direction::host}, lane, at, buffers[b], size);
      }
    }
    if (i > 0) {
      const std::size_t at = (i - 1) * chunk, size = std::min(chunk, bytes - at), b = (i - 1) % 2;
      if (way.to == direction::host) {
        finish(filled[b]);
        std::memcpy(pageable + at, buffers[b], size);
      } else {
        if (!filled[b].none()) stream(way.to, lane).wait(filled[b]);
        emptied[b] = queue({direction::host, way.to}, lane, at, buffers[b], size);
      }
    }
  }
  for (const timepoint p : emptied) finish(p);
}

}  // namespace hpe::bench
