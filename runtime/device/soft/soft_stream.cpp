#include "runtime/device/soft/soft_stream.h"

#include <cstring>

#include "runtime/base/error.h"
#include "runtime/device/soft/soft_device.h"
#include "runtime/device/soft/soft_set.h"

namespace hpe::device::soft {

soft_stream::soft_stream(soft_set& set, soft_device& device, unsigned index)
    : set_(set),
      device_(device),
      block_(*set.shared().find_stream(device.index(), index)),
      number_(fabric::timeline_number(device.index(), index)) {}

timepoint soft_stream::submit(const command& what, std::span<const std::byte> parameters) {
  const std::lock_guard lock(mutex_);
  timeline& line = block_.line;
  const std::uint64_t value = line.submitted.load(std::memory_order_relaxed) + 1;
  if (value > ring_slots) line.wait(value - ring_slots, doorbell::deadline::max());
  device_.require_alive();
  set_.shared().slot(block_, value) = what;
  if (!parameters.empty())
    std::memcpy(set_.shared().parameters(block_, value).bytes, parameters.data(), parameters.size());
  line.submitted.store(value);
  line.work.ring();
  return {number_, value};
}

soft_stream::side soft_stream::check(const void* address, std::size_t bytes, const char* role) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const bool shared = set_.state().layout.contains(address);
  side result = side::host;
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    const auto piece = set_.addresses().find(at);
    HPE_REQUIRE(piece || shared, HPE_ERROR_INVALID_ARGUMENT,
                "the {} of a copy, {} bytes at {}, is host memory that was not registered, at {:#x}", role, bytes,
                address, at);
    HPE_REQUIRE(piece, HPE_ERROR_INVALID_ARGUMENT, "the {} of a copy, {} bytes at {}, has no memory behind it at {:#x}",
                role, bytes, address, at);
    if (piece->what.device != host_location) {
      result = side::device;
      HPE_REQUIRE(
          piece->what.device == foreign_location || device_.can_access(static_cast<unsigned>(piece->what.device)),
          HPE_ERROR_INVALID_ARGUMENT, "the {} of a copy on device {} is memory of device {}, which it cannot access",
          role, device_.index(), piece->what.device);
    }
    at = piece->end;
  }
  return result;
}

timepoint soft_stream::copy(void* destination, const void* source, std::size_t bytes) {
  device_.require_alive();
  const side to = check(destination, bytes, "destination");
  const side from = check(source, bytes, "source");
  HPE_REQUIRE(bytes == 0 || to == side::device || from == side::device, HPE_ERROR_NOT_SUPPORTED,
              "a device copies from or to its own or a peer's memory; both {} and {} are host memory", destination,
              source);
  command what;
  what.what = command::kind::copy;
  what.destination = reinterpret_cast<std::uintptr_t>(destination);
  what.source = reinterpret_cast<std::uintptr_t>(source);
  what.bytes = bytes;
  return submit(what);
}

timepoint soft_stream::fill(void* destination, std::uint8_t value, std::size_t bytes) {
  device_.require_alive();
  const side to = check(destination, bytes, "destination");
  HPE_REQUIRE(bytes == 0 || to == side::device, HPE_ERROR_NOT_SUPPORTED,
              "a device fills device memory; {} is host memory", destination);
  command what;
  what.what = command::kind::fill;
  what.destination = reinterpret_cast<std::uintptr_t>(destination);
  what.value = value;
  what.bytes = bytes;
  return submit(what);
}

timepoint soft_stream::launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) {
  HPE_REQUIRE(parameters.size() <= most_parameters, HPE_ERROR_INVALID_ARGUMENT,
              "{} bytes of parameters are too many for a launch; {} are possible", parameters.size(), most_parameters);
  command what;
  what.what = command::kind::launch;
  what.function = kernel.function;
  what.parameter_size = static_cast<std::uint32_t>(parameters.size());
  for (int i = 0; i < 3; ++i) {
    what.grid[i] = std::max(1U, shape.grid[i]);
    what.block[i] = std::max(1U, shape.block[i]);
    what.cluster[i] = shape.cluster[i];
  }
  what.shared_bytes = shape.shared_bytes;
  what.cooperative = shape.cooperative;
  what.number = set_.next_launch();
  return submit(what, parameters);
}

timepoint soft_stream::enqueue(const std::function<int(void*)>& /*function*/) {
  HPE_THROW(HPE_ERROR_NOT_SUPPORTED,
            "device {} is a soft device, which runs kernels of modules only (hpeLaunch, <hpe/kernel.h>); work that a "
            "program queues itself needs a CUDA device",
            device_.index());
}

void soft_stream::wait(timepoint point) {
  if (point.timeline == number_ || set_.reached(point)) return;
  command what;
  what.what = command::kind::wait;
  what.timeline = point.timeline;
  what.point = point.value;
  submit(what);
}

timepoint soft_stream::last() const {
  const std::uint64_t value = block_.line.submitted.load();
  return value == 0 ? timepoint{} : timepoint{number_, value};
}

std::uint64_t soft_stream::oldest_failure() {
  const failure_log& log = block_.line.failures;
  for (; failures_taken_ < log.count(); ++failures_taken_)
    if (const auto found = log.at(failures_taken_); found && left_out_.erase(found->value) == 0) return found->order;
  left_out_.clear();
  return no_failure;
}

void soft_stream::leave_out_failure(std::uint64_t value) {
  const failure_log& log = block_.line.failures;
  for (std::uint64_t n = failures_taken_; n < log.count(); ++n)
    if (const auto found = log.at(n); found && found->value == value) left_out_.insert(value);
}

error soft_stream::take_oldest_failure() {
  const auto found = block_.line.failures.at(failures_taken_++);
  return found ? error(found->status, found->sentence)
               : error(HPE_ERROR_LAUNCH_FAILED,
                       "a command failed, and so many after it that its reason is no longer kept");
}

}  // namespace hpe::device::soft
