#include "bench/machine/device_rates.h"

#include <chrono>
#include <cstring>

#include "bench/common/measure.h"
#include "runtime/base/granule.h"

namespace hpe::bench {

namespace {

constexpr std::size_t few_bytes = 64;
constexpr int lanes = 2;  // a device has separate memory for copies to the device and for copies from it

}  // namespace

device_rates::device_rates(const std::string& specification, int devices, std::size_t bytes, unsigned repeats)
    : count_(devices),
      bytes_(round_up(bytes, granule_size)),
      repeats_(repeats),
      space_(0, round_up(lanes * bytes_, std::size_t{1} << 30), static_cast<unsigned>(devices)),
      devices_(device::open_devices(specification, space_.layout())) {
  std::byte* const alias = space_.alias(space_.segment_begin(memory::segment_kind::device, 0));
  devices_->register_host(alias, space_.layout().size(), space_.shadow_file(), 0);
  space_.open_alias(space_.segment_begin(memory::segment_kind::device, 0), space_.layout().size());
  for (int d = 0; d < count_; ++d)
    for (int l = 0; l < lanes; ++l) {
      device::device& one = devices_->at(static_cast<unsigned>(d));
      one.map(memory(d, l), bytes_);
      streams_.push_back(&one.create_stream(device::priority::launch));
      std::memset(pinned_memory(d, l), 1, bytes_);
    }
}

std::byte* device_rates::memory(int device, int lane) const {
  return space_.segment_begin(memory::segment_kind::device, static_cast<unsigned>(device)) +
         static_cast<std::size_t>(lane) * bytes_;
}

std::byte* device_rates::pinned_memory(int device, int lane) const { return space_.alias(memory(device, lane)); }

timepoint device_rates::queue(way which, int device, std::size_t bytes) {
  const int lane = which == way::to_device ? 0 : 1;
  device::stream& stream = *streams_[static_cast<std::size_t>(device) * lanes + static_cast<std::size_t>(lane)];
  std::byte* const there = memory(device, lane);
  std::byte* const here = pinned_memory(device, lane);
  return which == way::to_device ? stream.copy(there, here, bytes) : stream.copy(here, there, bytes);
}

void device_rates::finish(const std::vector<timepoint>& points) {
  for (const timepoint p : points) devices_->wait(p, std::chrono::steady_clock::time_point::max());
}

double device_rates::seconds_of(way which, int devices) {
  return fastest_seconds(repeats_, [&] {
    std::vector<timepoint> queued;
    for (int d = 0; d < devices; ++d) {
      if (which != way::to_host) queued.push_back(queue(way::to_device, d, bytes_));
      if (which != way::to_device) queued.push_back(queue(way::to_host, d, bytes_));
    }
    finish(queued);
  });
}

predict::rate_table device_rates::pinned(way which) {
  std::vector<predict::shared_rate> rows;
  const double bytes = static_cast<double>(bytes_) * (which == way::both ? 2 : 1);
  for (const int devices : numbers_of_devices(count_)) rows.push_back({devices, bytes / seconds_of(which, devices)});
  return predict::rate_table(std::move(rows));
}

double device_rates::latency() {
  return fastest_seconds(repeats_, [&] { finish({queue(way::to_device, 0, few_bytes)}); });
}

double device_rates::seconds_between(int from, int to, std::size_t bytes) {
  device::stream& stream = *streams_[static_cast<std::size_t>(to) * lanes];
  return fastest_seconds(repeats_, [&] { finish({stream.copy(memory(to, 0), memory(from, 1), bytes)}); });
}

std::optional<predict::peer_links> device_rates::peers() {
  predict::peer_links found{0, {}};
  for (int from = 0; from < count_; ++from)
    for (int to = 0; to < count_; ++to) {
      if (from == to || !devices_->at(static_cast<unsigned>(to)).can_access(static_cast<unsigned>(from))) continue;
      if (found.pairs.empty()) found.latency = seconds_between(from, to, few_bytes);
      found.pairs.push_back({from, to, static_cast<double>(bytes_) / seconds_between(from, to, bytes_)});
    }
  if (found.pairs.empty()) return std::nullopt;
  if (static_cast<int>(found.pairs.size()) == count_ * (count_ - 1)) found.together = peers_together();
  return found;
}

predict::rate_table device_rates::peers_together() {
  std::vector<predict::shared_rate> rows;
  for (const int devices : numbers_of_devices(count_)) {
    const double seconds = fastest_seconds(repeats_, [&] {
      std::vector<timepoint> queued;
      for (int to = 0; to < devices; ++to) {
        const int from = devices > 1 ? (to + 1) % devices : 1;
        queued.push_back(streams_[static_cast<std::size_t>(to) * lanes]->copy(memory(to, 0), memory(from, 1), bytes_));
      }
      finish(queued);
    });
    rows.push_back({devices, static_cast<double>(bytes_) / seconds});
  }
  return predict::rate_table(std::move(rows));
}

double fastest_seconds(unsigned repeats, const std::function<void()>& body, const std::function<void()>& prepare) {
  return timed(repeats, prepare, body).fastest;
}

std::vector<int> numbers_of_devices(int all) {
  std::vector<int> numbers;
  for (int n = 1; n < all; n *= 2) numbers.push_back(n);
  numbers.push_back(all);
  return numbers;
}

}  // namespace hpe::bench
