#include "runtime/device/soft/owner/soft_stream.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/device/soft/owner/soft_device.h"
#include "runtime/device/soft/owner/soft_set.h"

namespace hpe::device::soft {

soft_stream::soft_stream(soft_set& set, soft_device& device, unsigned index)
    : set_(set),
      device_(device),
      line_(set.shared().status(device.index()).timelines[index]),
      ring_(set.shared().ring(device.index(), index)),
      number_(fabric::timeline_number(device.index(), index)) {}

// Returns the number of completed commands. The result is never larger than the number of submitted commands, because a
// faulty device process may have written any value to the timeline.
std::uint64_t soft_stream::completed() const noexcept { return std::min(line_.completed.load(), in_ring_); }

timepoint soft_stream::submit(const command& what, std::span<const std::byte> parameters) {
  using clock = std::chrono::steady_clock;
  command_observer* const told = set_.observer();
  const clock::time_point asked = told != nullptr ? clock::now() : clock::time_point{};
  std::uint64_t value = 0;
  bool waits = false;
  {
    unique_lock lock(mutex_);
    if (device_.lost()) {
      lock.unlock();  // loss() locks the device's mutex, which must be locked before a stream's mutex
      throw device_.loss();
    }
    waits = !feed_locked() || !has_room();
    if (waits)
      waiting_.push_back({what, {parameters.begin(), parameters.end()}});
    else
      put(what, parameters);
    look_at_crowd();
    value = issued_.load(std::memory_order_relaxed) + 1;
    issued_.store(value);
    if (told != nullptr) tell(*told, what, {number_, value}, asked);
  }
  if (waits) set_.feed(*this);
  return {number_, value};
}

void soft_stream::tell(command_observer& to, const command& what, timepoint point,
                       std::chrono::steady_clock::time_point asked) const {
  using kind = observed_command::kind;
  switch (what.what) {
    case command::kind::copy:
      return to.queued({kind::copy, what.destination, what.source, what.bytes * what.rows}, point, asked);
    case command::kind::fill: return to.queued({kind::fill, what.destination, 0, what.bytes}, point, asked);
    case command::kind::launch: return to.queued({kind::launch, 0, 0, 0, what.function}, point, asked);
    case command::kind::fingerprint: return to.queued({kind::enqueue, 0, what.source, what.bytes}, point, asked);
    case command::kind::wait: return to.waits(number_, {what.timeline, what.point});
  }
}

void soft_stream::put(const command& what, std::span<const std::byte> parameters) {
  const std::uint64_t value = ++in_ring_;
  ring_.slot(value) = what;
  if (!parameters.empty()) std::memcpy(ring_.parameters_of(value), parameters.data(), parameters.size());
  line_.submitted.store(value);
  line_.work.wake_all();
}

bool soft_stream::feed_locked() {
  while (!waiting_.empty() && has_room()) {
    put(waiting_.front().what, waiting_.front().parameters);
    waiting_.pop_front();
  }
  look_at_crowd();
  return waiting_.empty();
}

void soft_stream::lose() {
  const lock_guard lock(mutex_);
  line_.lost_after.store(completed());
  waiting_.clear();
  look_at_crowd();
  set_.shared().complete(number_, timeline::all);
}

bool soft_stream::feed() {
  const lock_guard lock(mutex_);
  return feed_locked();
}

timepoint soft_stream::point_of_room() const {
  const lock_guard lock(mutex_);
  return {number_, in_ring_ - ring_slots / 2};
}

timepoint soft_stream::end_of_crowd() const {
  const lock_guard lock(mutex_);
  return crowded_ ? timepoint{number_, issued_.load() - ring_slots - long_queue / 2} : timepoint{};
}

void soft_stream::look_at_crowd() {
  const bool crowded = waiting_.size() > (crowded_ ? long_queue / 2 : long_queue);
  if (crowded != crowded_) device_.count_crowds(crowded ? 1 : -1);
  crowded_ = crowded;
}

std::optional<std::string> soft_stream::overdue(std::chrono::steady_clock::time_point now, std::chrono::seconds limit) {
  const lock_guard lock(mutex_);
  const std::uint64_t done = completed();
  const command& current = ring_.slot(done + 1);
  if (done != seen_completed_ || done == in_ring_ || current.what == command::kind::wait) {
    seen_completed_ = done;
    seen_at_ = now;
  }
  if (now - seen_at_ <= limit) return std::nullopt;
  return fmt::format("{} ran for more than {} s (HPE_DEVICE_TIMEOUT)", device_.words_for(current), limit.count());
}

std::optional<command> soft_stream::current() const {
  const lock_guard lock(mutex_);
  const std::uint64_t done = completed();
  if (done >= in_ring_) return std::nullopt;
  return ring_.slot(done + 1);
}

soft_stream::side soft_stream::check(const void* address, std::size_t bytes, const char* role) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const bool shared = set_.configuration().layout.contains(address);
  side result = side::host;
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    const auto range = set_.addresses().find(at);
    HPE_REQUIRE(range || shared, HPE_ERROR_INVALID_ARGUMENT,
                "the {} of a copy, {} bytes at {}, is host memory that was not registered, at {:#x}", role, bytes,
                address, at);
    HPE_REQUIRE(range, HPE_ERROR_INVALID_ARGUMENT, "the {} of a copy, {} bytes at {}, has no memory behind it at {:#x}",
                role, bytes, address, at);
    if (range->where.device != host_location) {
      result = side::device;
      HPE_REQUIRE(
          range->where.device == foreign_location || device_.can_access(static_cast<unsigned>(range->where.device)),
          HPE_ERROR_INVALID_ARGUMENT,
          "the {} of a copy on device {} is memory of device {}, which the copy's device cannot access", role,
          device_.index(), range->where.device);
    }
    at = range->end;
  }
  return result;
}

timepoint soft_stream::copy_rows(void* destination, const void* source, const box& rows) {
  device_.require_alive();
  const std::size_t bytes = rows.span();
  const side to = check(destination, bytes, "destination");
  const side from = check(source, bytes, "source");
  HPE_REQUIRE(bytes == 0 || to == side::device || from == side::device, HPE_ERROR_NOT_SUPPORTED,
              "one side of a device copy must be memory of the device or of a peer, but both {} and {} are host memory",
              destination, source);
  command what;
  what.what = command::kind::copy;
  what.destination = reinterpret_cast<std::uintptr_t>(destination);
  what.source = reinterpret_cast<std::uintptr_t>(source);
  what.bytes = rows.extent.width;
  what.rows = rows.extent.rows;
  what.stride = rows.strides.row;
  return submit(what);
}

timepoint soft_stream::fill(void* destination, std::uint8_t value, std::size_t bytes) {
  device_.require_alive();
  const side to = check(destination, bytes, "destination");
  HPE_REQUIRE(bytes == 0 || to == side::device, HPE_ERROR_NOT_SUPPORTED,
              "a device fills device memory only, but {} is host memory", destination);
  command what;
  what.what = command::kind::fill;
  what.destination = reinterpret_cast<std::uintptr_t>(destination);
  what.value = value;
  what.bytes = bytes;
  return submit(what);
}

timepoint soft_stream::take_fingerprint(fingerprint* result, const void* source, std::size_t bytes) {
  HPE_INVARIANT(bytes % fingerprint_unit == 0);
  device_.require_alive();
  HPE_REQUIRE(check(source, bytes, "source") == side::device, HPE_ERROR_NOT_SUPPORTED,
              "{} is host memory, of which hpe takes no fingerprint", source);
  static_cast<void>(check(result, sizeof *result, "destination"));
  command what;
  what.what = command::kind::fingerprint;
  what.destination = reinterpret_cast<std::uintptr_t>(result);
  what.source = reinterpret_cast<std::uintptr_t>(source);
  what.bytes = bytes;
  what.key = fingerprint_key::own();
  return submit(what);
}

timepoint soft_stream::launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) {
  HPE_REQUIRE(parameters.size() <= most_parameters, HPE_ERROR_INVALID_ARGUMENT,
              "{} bytes of parameters are too many for a launch; at most {} are possible", parameters.size(),
              most_parameters);
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
  what.team = shape.team;
  what.number = set_.next_launch();
  return submit(what, parameters);
}

timepoint soft_stream::enqueue(const std::function<int(void*)>& /*function*/) { device_.refuse_work_of_program(); }

void soft_stream::wait(timepoint point) {
  if (point.timeline == number_ || set_.reached(point)) return;
  command what;
  what.what = command::kind::wait;
  what.timeline = point.timeline;
  what.point = point.value;
  submit(what);
}

timepoint soft_stream::last() const {
  const std::uint64_t value = issued_.load();
  return value == 0 ? timepoint{} : timepoint{number_, value};
}

std::uint64_t soft_stream::oldest_failure() {
  const failure_log& log = line_.failures;
  const std::uint64_t end = failures();
  for (failures_taken_ = std::min(std::max(failures_taken_, log.first_kept()), end); failures_taken_ < end;
       ++failures_taken_)
    if (const auto found = log.at(failures_taken_); found && left_out_.erase(found->value) == 0) return found->order;
  left_out_.clear();
  return no_failure;
}

void soft_stream::leave_out_failure(std::uint64_t value) {
  const failure_log& log = line_.failures;
  for (std::uint64_t n = std::max(failures_taken_, log.first_kept()); n < failures(); ++n)
    if (const auto found = log.at(n); found && found->value == value) left_out_.insert(value);
}

// Returns the number of failed commands. The result is never larger than the number of commands, because a faulty
// device process may have written any value.
std::uint64_t soft_stream::failures() const noexcept { return std::min(line_.failures.count(), issued_.load()); }

error soft_stream::take_oldest_failure() {
  const auto found = line_.failures.at(failures_taken_++);
  return found ? error(found->status, found->sentence)
               : error(HPE_ERROR_LAUNCH_FAILED, "a command failed; the reasons of later failures overwrote its reason");
}

}  // namespace hpe::device::soft
