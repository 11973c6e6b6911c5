// When a task is queued, cudart_stream::push collects the points for which the task waits, with the device's mutex
// locked. So a task waits only for work that was queued before, and streams cannot wait for each other in a circle.

#include "interpose/soft/cudart/stream/cudart_stream.h"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/per_thread.h"

namespace hpe::cudart {
namespace {

thread_local bool host_function = false;

/// While an object of this class exists, threads that the calling thread creates block all signals except those for
/// faults. Host functions in these threads may touch memory whose view is closed, so the signals for faults must not be
/// blocked.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

/// Starts a detached thread. If the operating system cannot create the thread, logs the reason and returns false.
bool start_thread(std::function<void()> run) {
  const signals_blocked inherited_by_it;
  try {
    std::thread(std::move(run)).detach();
    return true;
  } catch (const std::system_error& caught) {
    log(log_level::warn,
        "the thread of a stream cannot be made: pthread_create: {}; limits are RLIMIT_NPROC (ulimit -u), RLIMIT_AS "
        "(ulimit -v) and pids.max of the control group",
        caught.what());
    return false;
  }
}

std::uint64_t next_stream_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// The calling thread's default streams, closed when the thread ends.
struct thread_streams {
  std::vector<std::shared_ptr<cudart_stream>> streams;

  thread_streams() = default;
  thread_streams(const thread_streams&) = delete;
  thread_streams& operator=(const thread_streams&) = delete;
  ~thread_streams() {
    for (const auto& each : streams) each->close();
  }
};

void wait_all(const std::vector<point>& points) {
  for (const point& each : points) each.wait();
}

/// A task and its announcement. The announcement ends after the destruction of the objects that the task owns, because
/// their destructors may free memory that work behind the task uses.
template <class Task>
struct announced_task {
  void begin() const {
    if (told) told->begin();
  }

  std::shared_ptr<announced_work> told;
  Task run;
};

}  // namespace

struct device_order {
  explicit device_order(announce_work tell) : announce(std::move(tell)) {}

  const announce_work announce;
  hpe::mutex mutex;
  // Includes the legacy stream, and destroyed streams with unfinished work.
  std::vector<std::weak_ptr<cudart_stream>> streams HPE_GUARDED_BY(mutex);
  std::atomic<cudaError_t> fault{cudaSuccess};
  std::atomic<int> capturing{0};  // the number of streams that are being captured

  // The lines of the legacy stream and of the blocking streams, for the checker. Lines remain after their streams have
  // been destroyed, until the program has waited for their work.
  std::vector<std::uint32_t> checked_legacy HPE_GUARDED_BY(mutex), checked_blocking HPE_GUARDED_BY(mutex);

  // Returns the lines after whose last work new work of such a stream begins.
  const std::vector<std::uint32_t>& checked_lines_before(stream_kind kind) HPE_REQUIRES(mutex) {
    static const std::vector<std::uint32_t> none;
    if (kind == stream_kind::non_blocking) return none;
    if (kind == stream_kind::blocking) return checked_legacy;
    std::erase_if(checked_blocking, [](std::uint32_t line) { return checker()->is_settled(line); });
    return checked_blocking;
  }

  std::shared_ptr<announced_work> tell(const task_memory_uses& uses) const {
    return announce ? announce(uses) : nullptr;
  }

  void fail(cudaError_t error) {
    cudaError_t none = cudaSuccess;
    fault.compare_exchange_strong(none, error);
  }

  /// Returns the points that end the queued work of all streams for which choice(stream) is true, without points that
  /// are already reached.
  template <class Choice>
  std::vector<point> ends(const Choice& choice) HPE_REQUIRES(mutex) {
    std::vector<point> result;
    std::erase_if(streams, [](const auto& each) { return each.expired(); });
    for (const auto& each : streams) {
      const auto other = each.lock();
      if (!other || !choice(*other)) continue;
      const lock_guard lock(other->mutex_);
      point end{other->line_, other->queued_};
      if (!end.reached()) result.push_back(std::move(end));
    }
    return result;
  }

  /// Returns the captures of all streams for which choice(stream) is true.
  template <class Choice>
  std::vector<std::shared_ptr<capture>> captures(const Choice& choice) {
    std::vector<std::shared_ptr<capture>> result;
    if (capturing == 0) return result;
    const lock_guard lock(mutex);
    for (const auto& each : streams) {
      const auto other = each.lock();
      if (!other || !choice(*other)) continue;
      if (auto active = other->capturing()) result.push_back(std::move(active));
    }
    return result;
  }

  /// Returns the points of other streams for which new work on a stream must wait.
  std::vector<point> before(const cudart_stream& self) HPE_REQUIRES(mutex) {
    switch (self.kind_) {
      case stream_kind::legacy:
        return ends([](const cudart_stream& other) { return other.kind_ == stream_kind::blocking; });
      case stream_kind::blocking:
        return ends([](const cudart_stream& other) { return other.kind_ == stream_kind::legacy; });
      case stream_kind::non_blocking: break;
    }
    return {};
  }
};

cudart_stream::cudart_stream(std::shared_ptr<device_order> order, stream_kind kind, int device, unsigned flags,
                             int priority)
    : order_(std::move(order)),
      kind_(kind),
      device_(device),
      flags_(flags),
      priority_(priority),
      id_(next_stream_id()),
      checked_line_(checker() != nullptr ? checker()->add_line(device) : 0) {}

cudart_stream::~cudart_stream() {
  if (checker() != nullptr) checker()->end_line(checked_line_);
}

cudaError_t cudart_stream::push(std::function<void()> run, std::vector<point> after, point* end,
                                const task_memory_uses& uses, std::shared_ptr<const check::call_place> place) {
  if (place == nullptr) place = place_of_call();
  const lock_guard order(order_->mutex);
  std::shared_ptr<const check::checked_work> checked;
  if (checker() != nullptr) {
    std::vector<check::past_ptr> pasts = uses.follows;
    for (const point& each : after) pasts.push_back(each.past);
    checked = checker()->queue(checked_line_, id_, pasts, order_->checked_lines_before(kind_),
                               {(uses.kernels_on != 0 || !uses.ranges.empty()) && !uses.is_memset,
                                uses.waits_for_unknown, uses.waits_for_values},
                               std::move(place));
    tell_queued(uses, checked->when);
  }
  for (point& each : order_->before(*this)) after.push_back(std::move(each));
  const lock_guard lock(mutex_);
  if (!running_ && !start_thread([self = shared_from_this()] { self->run_queue(); })) return cudaErrorOperatingSystem;
  running_ = true;
  queue_.push_back({std::move(after), std::move(run), checked});
  ++queued_;
  if (end != nullptr) *end = {line_, queued_, checked != nullptr ? checked->when : nullptr};
  changed_.notify_one();
  return cudaSuccess;
}

cudaError_t cudart_stream::enqueue(stream_task task, std::vector<point> after, point* end,
                                   std::shared_ptr<const check::call_place> place) {
  if (const cudaError_t error = order_->fault; error != cudaSuccess) return error;
  if (in_host_function()) return cudaErrorNotPermitted;
  const task_memory_uses uses = checker() != nullptr ? task.uses() : task_memory_uses{};
  announced_task<stream_task> announced{order_->tell(task.uses()), std::move(task)};
  auto run = [order = order_, announced = std::move(announced)] {
    announced.begin();
    if (order->fault != cudaSuccess) return;
    if (const cudaError_t error = announced.run(); error != cudaSuccess) order->fail(error);
  };
  return push(std::move(run), std::move(after), end, uses, std::move(place));
}

cudaError_t cudart_stream::enqueue_always(std::function<void(cudaError_t)> task) {
  if (in_host_function()) return cudaErrorNotPermitted;
  announced_task<std::function<void(cudaError_t)>> announced{order_->tell({}), std::move(task)};
  auto run = [order = order_, announced = std::move(announced)] {
    announced.begin();
    announced.run(order->fault);
  };
  return push(std::move(run), {}, nullptr, {}, nullptr);
}

void cudart_stream::run_queue() {
  unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() HPE_REQUIRES(mutex_) { return !queue_.empty() || closed_; });
    if (queue_.empty()) break;
    {
      const queued_task task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      wait_all(task.after);
      const work_in_progress work(task.checked);
      task.run();
    }  // the end of this block destroys the objects that the task owns, before the work counts as finished
    line_->advance();
    lock.lock();
  }
  running_ = false;
}

std::vector<point> cudart_stream::last_points() {
  const lock_guard order(order_->mutex);
  return order_->ends([this](const cudart_stream& other) {
    return &other == this || (kind_ == stream_kind::legacy && other.kind_ == stream_kind::blocking);
  });
}

std::vector<check::past_ptr> cudart_stream::pasts_to_wait_for() {
  if (checker() == nullptr) return {};
  const lock_guard order(order_->mutex);
  std::vector<std::uint32_t> lines{checked_line_};
  if (kind_ == stream_kind::legacy)
    for (const std::uint32_t each : order_->checked_lines_before(kind_)) lines.push_back(each);
  return checker()->last_of(lines);
}

check::past_ptr cudart_stream::last_past() const {
  return checker() != nullptr ? checker()->last(checked_line_) : nullptr;
}

std::shared_ptr<const check::checked_work> cudart_stream::queue_without_task() {
  const lock_guard order(order_->mutex);
  return checker()->queue(checked_line_, id_, {}, order_->checked_lines_before(kind_), {}, place_of_call());
}

cudaError_t cudart_stream::synchronize() {
  if (in_host_function()) return cudaErrorNotPermitted;
  const std::vector<check::past_ptr> ending = pasts_to_wait_for();
  wait_all(last_points());
  for (const check::past_ptr& each : ending) tell_wait(each);
  return order_->fault;
}

cudaError_t cudart_stream::finish() {
  if (in_host_function()) return cudaErrorNotPermitted;
  wait_all(last_points());
  return order_->fault;
}

cudaError_t cudart_stream::query() {
  if (in_host_function()) return cudaErrorNotPermitted;
  const std::vector<check::past_ptr> ending = pasts_to_wait_for();
  const bool idle = last_points().empty();
  if (idle)
    for (const check::past_ptr& each : ending) tell_wait(each);
  if (const cudaError_t error = order_->fault; error != cudaSuccess) return error;
  return idle ? cudaSuccess : cudaErrorNotReady;
}

void cudart_stream::close() {
  const lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

cudaError_t cudart_stream::fault() const { return order_->fault; }

bool cudart_stream::closed() const {
  const lock_guard lock(mutex_);
  return closed_;
}

std::shared_ptr<capture> cudart_stream::capturing() const {
  const lock_guard lock(mutex_);
  return capture_;
}

void cudart_stream::set_capturing(std::shared_ptr<capture> value) {
  const lock_guard lock(mutex_);
  order_->capturing += (value ? 1 : 0) - (capture_ ? 1 : 0);
  capture_.swap(value);
}

std::vector<std::shared_ptr<capture>> cudart_stream::captures_in_the_way() {
  if (kind_ != stream_kind::legacy) return {};
  return order_->captures([](const cudart_stream& other) { return other.kind_ == stream_kind::blocking; });
}

device_streams::device_streams(int device, announce_work announce)
    : device_(device),
      order_(std::make_shared<device_order>(std::move(announce))),
      legacy_(std::make_shared<cudart_stream>(order_, stream_kind::legacy, device, cudaStreamDefault, 0)) {
  const lock_guard lock(order_->mutex);
  order_->streams.push_back(legacy_);
  order_->checked_legacy.push_back(legacy_->checked_line_);
}

device_streams::~device_streams() {
  const lock_guard lock(order_->mutex);
  for (const auto& each : order_->streams) {
    if (const auto open = each.lock()) open->close();
  }
}

std::shared_ptr<cudart_stream> device_streams::per_thread() {
  thread_streams& mine = hpe::per_thread<thread_streams>::get();
  for (const auto& each : mine.streams) {
    if (each->order_ == order_) return each;
  }
  std::erase_if(mine.streams, [](const auto& each) { return each->closed(); });  // cudaDeviceReset closes streams
  mine.streams.push_back(create(cudaStreamDefault, 0));
  return mine.streams.back();
}

std::shared_ptr<cudart_stream> device_streams::create(unsigned flags, int priority) {
  const auto kind = (flags & cudaStreamNonBlocking) != 0 ? stream_kind::non_blocking : stream_kind::blocking;
  auto made = std::make_shared<cudart_stream>(order_, kind, device_, flags, priority);
  const lock_guard lock(order_->mutex);
  order_->streams.push_back(made);
  if (checker() != nullptr && kind == stream_kind::blocking) order_->checked_blocking.push_back(made->checked_line_);
  return made;
}

cudaError_t device_streams::synchronize() {
  if (in_host_function()) return cudaErrorNotPermitted;
  std::vector<check::past_ptr> ending;
  if (checker() != nullptr) ending = checker()->last_of_device(device_);
  finish();
  for (const check::past_ptr& each : ending) tell_wait(each);
  return order_->fault;
}

void device_streams::finish() {
  std::vector<point> ends;
  {
    const lock_guard lock(order_->mutex);
    ends = order_->ends([](const cudart_stream&) { return true; });
  }
  wait_all(ends);
}

std::vector<std::shared_ptr<capture>> device_streams::captures() {
  return order_->captures([](const cudart_stream&) { return true; });
}

cudaError_t device_streams::fault() const { return order_->fault; }
void device_streams::fail(cudaError_t error) { order_->fail(error); }

host_function_scope::host_function_scope() {
  host_function = true;
  tell_host_function(true);
}
host_function_scope::~host_function_scope() {
  tell_host_function(false);
  host_function = false;
}
bool in_host_function() { return host_function; }

}  // namespace hpe::cudart
