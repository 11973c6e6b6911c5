#include "runtime/device/soft/owner/soft_device.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/base/demangled.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/device/checks.h"
#include "runtime/device/observer.h"
#include "runtime/device/soft/owner/soft_set.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

soft_device::soft_device(soft_set& set, unsigned index, softd_process& process, const options& wanted, int numa_node)
    : set_(set),
      index_(index),
      process_(process),
      memory_(capacity::limited(wanted.soft_memory, wanted.device_memory),
              node::device_share::join(wanted.share, fmt::format("soft{}", index),
                                       capacity::limited(wanted.soft_memory, wanted.device_memory),
                                       std::chrono::seconds(wanted.share_timeout))) {
  const fabric_configuration& shared = set.configuration();
  const topology& shape = shared.shape;
  properties_.kind = HPE_DEVICE_SOFT;
  properties_.name = shape.switches == 1 ? fmt::format("soft device {}", index)
                                         : fmt::format("soft device {} on switch {}", index, shape.switch_of(index));
  properties_.memory_bytes = memory_.total();
  properties_.compute_units = shared.threads;
  properties_.peer_rate = static_cast<double>(shared.peer_limit.bytes_per_second);
  properties_.host_rate = static_cast<double>(shared.host_limit.bytes_per_second);
  properties_.numa_node = numa_node;
}

memory_usage soft_device::memory() const { return {memory_.total(), memory_.free()}; }

bool soft_device::can_access(unsigned peer) const noexcept {
  return peer < set_.size() && set_.configuration().shape.peers(index_, peer);
}

// `first` is ignored, because new pages of the memory file always contain zeros. The memory of each mapping of kind
// backing_kind::common is host memory of its own.
void soft_device::map(void* address, std::size_t bytes, contents /*first*/, backing_kind where) {
  require_granules(set_.configuration().layout, address, bytes);
  require_alive();
  control_request what;
  what.what = control_request::kind::map;
  what.device = index_;
  what.address = reinterpret_cast<std::uintptr_t>(address);
  what.bytes = bytes;
  what.zero_copy = where != backing_kind::device;
  control_request undo = what;
  undo.what = control_request::kind::unmap;

  const std::size_t taken = what.zero_copy ? 0 : bytes;
  memory_.take(index_, taken);
  try {
    set_.addresses().insert(what.address, bytes, {static_cast<int>(index_), 0, what.zero_copy});
    try {
      set_.ask([&](unsigned d) { return can_access(d); }, what, {}, &undo);
    } catch (...) {
      set_.addresses().erase(what.address, bytes, static_cast<int>(index_));
      throw;
    }
  } catch (...) {
    memory_.give(taken);
    throw;
  }
}

void soft_device::unmap(void* address, std::size_t bytes) noexcept {
  log_failure_of("unmapping device memory", [&] {
    require_granules(set_.configuration().layout, address, bytes);
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    control_request what;
    what.what = control_request::kind::unmap;
    what.device = index_;
    what.address = begin;
    what.bytes = bytes;
    memory_.give(set_.addresses().erase(begin, bytes, static_cast<int>(index_)));
    set_.ask([&](unsigned d) { return can_access(d); }, what);
    os::discard(set_.memory_file(index_), begin - set_.configuration().layout.base, bytes);
  });
}

// The bytes of a soft device's zero-copy memory are in the same file as its device memory, so nothing is copied.
class soft_device::soft_moves final : public group_of_moves {
 public:
  explicit soft_moves(soft_device& of) noexcept : of_(of) {}
  soft_moves(const soft_moves&) = delete;
  soft_moves& operator=(const soft_moves&) = delete;
  ~soft_moves() override {
    for (const range& r : ranges_)
      if (r.is_done == r.to_host) of_.memory_.give(r.bytes);
  }
  void add(void* address, std::size_t bytes, backing_kind to, bool /*on_standby*/) override {
    require_granules(of_.set_.configuration().layout, address, bytes);
    of_.require_alive();
    ranges_.reserve(ranges_.size() + 1);
    const bool to_host = to == backing_kind::zero_copy;
    if (!to_host) of_.memory_.take(of_.index_, bytes);
    ranges_.push_back({reinterpret_cast<std::uintptr_t>(address), bytes, to_host});
  }
  void wait() override {}
  std::vector<std::optional<error>> finish() override {
    std::vector<std::optional<error>> failures(ranges_.size());
    for (std::size_t n = 0; n < ranges_.size(); ++n) try {
        move(ranges_[n]);
      } catch (const error& e) {
        if (e.status() == HPE_ERROR_DEVICE_LOST) throw;
        failures[n] = e;
      }
    return failures;
  }

 private:
  struct range {
    std::uintptr_t address;
    std::size_t bytes;
    bool to_host;
    bool is_done = false;
  };

  void move(range& r) {
    control_request what;
    what.what = control_request::kind::move;
    what.device = of_.index_;
    what.address = r.address;
    what.bytes = r.bytes;
    what.zero_copy = r.to_host;
    control_request undo = what;
    undo.zero_copy = !r.to_host;
    const int device = static_cast<int>(of_.index_);
    of_.set_.addresses().set_zero_copy(r.address, r.bytes, device, r.to_host);
    try {
      of_.set_.ask([&](unsigned d) { return of_.can_access(d); }, what, {}, &undo);
    } catch (...) {
      of_.set_.addresses().set_zero_copy(r.address, r.bytes, device, !r.to_host);
      throw;
    }
    r.is_done = true;
  }

  soft_device& of_;
  std::vector<range> ranges_;
};

std::unique_ptr<group_of_moves> soft_device::begin_moves() { return std::make_unique<soft_moves>(*this); }

stream& soft_device::create_stream(priority level) {
  const lock_guard lock(mutex_);
  if (lost()) throw error(HPE_ERROR_DEVICE_LOST, how_lost_);
  control_request what;
  what.what = control_request::kind::start_stream;
  what.id = set_.shared().create_stream(index_, level);
  set_.ask([&](unsigned d) { return d == index_; }, what);
  soft_stream& made = *streams_.emplace_back(std::make_unique<soft_stream>(set_, *this, what.id));
  if (set_.observer() != nullptr) set_.observer()->stream_created(index_, made.number(), level);
  return made;
}

void soft_device::refuse_work_of_program() const {
  HPE_THROW(HPE_ERROR_NOT_SUPPORTED,
            "device {} is a soft device, which runs kernels of modules only (hpeLaunch, <hpe/kernel.h>); work that a "
            "program queues itself needs a CUDA device, or a program that `hpe run --cuda soft` has started",
            index_);
}

void soft_device::await_room(const stream* /*next*/) {
  if (crowds_ == 0) return;
  std::vector<timepoint> awaited;
  {
    const lock_guard lock(mutex_);
    for (const auto& stream : streams_)
      if (const timepoint point = stream->end_of_crowd(); !point.none()) awaited.push_back(point);
  }
  for (const timepoint point : awaited) set_.wait(point, std::chrono::steady_clock::time_point::max());
}

void soft_device::require_alive() const {
  if (lost()) throw loss();
}

error soft_device::loss() const {
  const lock_guard lock(mutex_);
  return {HPE_ERROR_DEVICE_LOST, how_lost_};
}

void soft_device::condemn(const std::string& reason) {
  {
    const lock_guard lock(reason_mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  process_.kill();
}

void soft_device::look_for_hanging(std::chrono::steady_clock::time_point now, std::chrono::seconds limit) {
  if (lost()) return;
  std::optional<std::string> reason;
  {
    const lock_guard lock(mutex_);
    for (const auto& stream : streams_)
      if (!reason) reason = stream->overdue(now, limit);
  }
  if (reason) condemn(*reason);
}

std::string soft_device::words_of_loss(std::string_view how) {
  std::string reason;
  {
    const lock_guard lock(reason_mutex_);
    const std::array<char, 256>& words = set_.shared().status(index_).last_words;
    reason = reason_.empty() ? std::string(words.data(), ::strnlen(words.data(), words.size())) : reason_;
  }
  if (!reason.empty()) reason += ", and ";
  return fmt::format("device {} is lost: {}its process {} {}", index_, reason, process_.pid(), how);
}

void soft_device::lose(std::string_view how) {
  if (ending_) return;
  fabric& shared = set_.shared();
  std::string words = "device is lost";  // the text if host memory for a longer text cannot be allocated
  try {
    words = words_of_loss(how);
  } catch (const std::bad_alloc&) {
  }
  const lock_guard lock(mutex_);
  how_lost_ = std::move(words);
  loss_order_ = shared.common().failure_order.fetch_add(1);
  lost_ = true;
  // Mark the device as lost before its streams complete their commands: other devices that wait for these commands must
  // find out first that the commands did not succeed.
  shared.configuration().lost.fetch_or(1U << index_);
  for (const auto& stream : streams_) stream->lose();
  shared.common().trouble.wake_all();
  log(log_level::warn, "{}", how_lost_);
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
  const lock_guard lock(mutex_);
  soft_stream* stream = stream_with_oldest_failure();
  return std::min(loss_order_, stream == nullptr ? no_failure : stream->oldest_failure());
}

error soft_device::take_oldest_failure() {
  const lock_guard lock(mutex_);
  soft_stream* stream = stream_with_oldest_failure();
  if (stream != nullptr && stream->oldest_failure() < loss_order_) return stream->take_oldest_failure();
  loss_order_ = no_failure;
  return {HPE_ERROR_DEVICE_LOST, how_lost_};
}

std::string soft_device::words_for(const command& what) const {
  return what.what == command::kind::launch
             ? fmt::format("kernel \"{}\"", demangled(set_.name_of_function(what.function)))
             : fmt::format("a {} of {} bytes",
                           what.what == command::kind::copy   ? "copy"
                           : what.what == command::kind::fill ? "fill"
                                                              : "fingerprint",
                           what.bytes);
}

std::optional<command> soft_device::current_of(std::uint32_t timeline) const {
  const lock_guard lock(mutex_);
  const auto its =
      std::find_if(streams_.begin(), streams_.end(), [&](const auto& stream) { return stream->number() == timeline; });
  return its != streams_.end() ? (*its)->current() : std::nullopt;
}

std::string soft_device::words_for_running(const command& what) const {
  std::string words = fmt::format("{} on device {}", words_for(what), index_);
  const std::uint64_t crowd = set_.shared().status(index_).crowd.load();
  if (what.what == command::kind::launch && crowd != 0)
    words += fmt::format(
        ": {} of its blocks have begun and not ended, and there is no room for further blocks beside them; blocks that "
        "wait for each other must fit on the device at once, and it holds 32 for each of its {} threads "
        "(HPE_SOFT_THREADS)",
        crowd, set_.configuration().threads);
  return words;
}

std::string soft_device::work_before(timepoint point) const {
  // Follows the chain of streams that wait for each other. Each step leads to a command that was queued earlier.
  // Streams may complete and begin commands during the search, so the number of steps is limited.
  constexpr int most_steps = 100;
  for (int step = 0; step < most_steps && !set_.reached(point); ++step) {
    const soft_device& its = set_.device_of(point);
    const std::optional<command> current = its.current_of(point.timeline);
    if (!current) break;
    if (current->what != command::kind::wait) return its.words_for_running(*current);
    point = {current->timeline, current->point};
  }
  return "work that has just ended";
}

void soft_device::leave_out_failure(timepoint point) {
  const lock_guard lock(mutex_);
  for (const auto& stream : streams_)
    if (stream->number() == point.timeline) {
      if (stream->is_lost(point.value)) loss_order_ = no_failure;
      stream->leave_out_failure(point.value);
    }
}

}  // namespace hpe::device::soft
