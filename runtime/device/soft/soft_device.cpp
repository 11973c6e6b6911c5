#include "runtime/device/soft/soft_device.h"

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/device/soft/soft_set.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

soft_device::soft_device(soft_set& set, unsigned index, softd_process& process, std::size_t memory_bytes, int numa_node)
    : set_(set), index_(index), process_(process) {
  const topology& shape = set.state().shape;
  properties_.kind = HPE_DEVICE_SOFT;
  properties_.name = shape.switches == 1 ? fmt::format("soft device {}", index)
                                         : fmt::format("soft device {} on switch {}", index, shape.switch_of(index));
  properties_.memory_bytes = memory_bytes;
  properties_.compute_units = set.state().threads;
  properties_.numa_node = numa_node;
}

memory_usage soft_device::memory() const {
  const std::size_t total = properties_.memory_bytes;
  return {total, total - used_.load()};
}

bool soft_device::can_access(unsigned peer) const noexcept {
  return peer < set_.size() && set_.state().shape.peers(index_, peer);
}

void soft_device::check_range(const void* address, std::size_t bytes) const {
  const uvas_layout& layout = set_.state().layout;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  HPE_REQUIRE(
      bytes != 0 && bytes % granule_size == 0 && begin % granule_size == 0 && layout.contains(address) &&
          bytes <= layout.base + layout.size() - begin,
      HPE_ERROR_INVALID_ARGUMENT,
      "{} bytes at {} cannot be backed by a device: possible are multiples of {} bytes inside the shared address space",
      bytes, address, granule_size);
}

void soft_device::take_capacity(std::size_t bytes) {
  std::size_t used = used_.load();
  do {
    const std::size_t free = properties_.memory_bytes - used;
    HPE_REQUIRE(
        bytes <= free, HPE_ERROR_OUT_OF_MEMORY,
        "device {} has {} bytes of memory left of {}; {} were asked for (HPE_SOFT_MEMORY sets how much there is)",
        index_, free, properties_.memory_bytes, bytes);
  } while (!used_.compare_exchange_weak(used, used + bytes));
}

void soft_device::map(void* address, std::size_t bytes) {
  check_range(address, bytes);
  require_alive();
  request what;
  what.what = request::kind::map;
  what.device = index_;
  what.address = reinterpret_cast<std::uintptr_t>(address);
  what.bytes = bytes;
  request undo = what;
  undo.what = request::kind::unmap;

  take_capacity(bytes);
  try {
    set_.addresses().insert(what.address, bytes, {static_cast<int>(index_), 0});
    try {
      set_.ask([&](unsigned d) { return can_access(d); }, what, {}, &undo);
    } catch (...) {
      set_.addresses().erase(what.address, bytes, static_cast<int>(index_));
      throw;
    }
  } catch (...) {
    used_ -= bytes;
    throw;
  }
}

void soft_device::unmap(void* address, std::size_t bytes) {
  check_range(address, bytes);
  request what;
  what.what = request::kind::unmap;
  what.device = index_;
  what.address = reinterpret_cast<std::uintptr_t>(address);
  what.bytes = bytes;
  set_.addresses().erase(what.address, bytes, static_cast<int>(index_));
  used_ -= bytes;
  set_.ask([&](unsigned d) { return can_access(d); }, what);
  os::discard(set_.memory_file(index_), what.address - set_.state().layout.base, bytes);
}

stream& soft_device::create_stream(priority level) {
  const std::lock_guard lock(mutex_);
  if (lost()) throw error(HPE_ERROR_DEVICE_LOST, how_lost_);
  request what;
  what.what = request::kind::start_stream;
  what.id = set_.shared().create_stream(index_, level);
  set_.ask([&](unsigned d) { return d == index_; }, what);
  return *streams_.emplace_back(std::make_unique<soft_stream>(set_, *this, what.id));
}

void soft_device::require_alive() const {
  if (lost()) throw loss();
}

error soft_device::loss() const {
  const std::lock_guard lock(mutex_);
  return {HPE_ERROR_DEVICE_LOST, how_lost_};
}

void soft_device::lose(const std::string& how) {
  if (ending_) return;
  {
    const std::lock_guard lock(mutex_);
    how_lost_ = fmt::format("device {} is lost: its process {} {}", index_, process_.pid(), how);
    loss_order_ = set_.state().failure_order.fetch_add(1);
    lost_ = true;
  }
  for (unsigned s = 0; s < max_streams; ++s)
    if (stream_block* stream = set_.shared().find_stream(index_, s)) stream->line.lose(set_.state().gates);
  log(log_level::warn, "{}", loss().what());
}

soft_stream* soft_device::stream_with_oldest_failure() {
  soft_stream* oldest = nullptr;
  for (const auto& stream : streams_)
    if (stream->oldest_failure() != no_failure &&
        (oldest == nullptr || stream->oldest_failure() < oldest->oldest_failure()))
      oldest = stream.get();
  return oldest;
}

std::uint64_t soft_device::oldest_failure() {
  const std::lock_guard lock(mutex_);
  soft_stream* stream = stream_with_oldest_failure();
  return std::min(loss_order_, stream == nullptr ? no_failure : stream->oldest_failure());
}

error soft_device::take_oldest_failure() {
  const std::lock_guard lock(mutex_);
  soft_stream* stream = stream_with_oldest_failure();
  if (stream != nullptr && stream->oldest_failure() < loss_order_) return stream->take_oldest_failure();
  loss_order_ = no_failure;
  return {HPE_ERROR_DEVICE_LOST, how_lost_};
}

void soft_device::leave_out_failure(timepoint point) {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_)
    if (stream->number() == point.timeline) {
      if (stream->is_lost(point.value)) loss_order_ = no_failure;
      stream->leave_out_failure(point.value);
    }
}

}  // namespace hpe::device::soft
