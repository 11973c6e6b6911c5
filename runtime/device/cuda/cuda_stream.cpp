// Lock order: queue_ of one stream, then pending_mutex_ of the same or another stream. A thread never holds two pending
// mutexes.
//
// Invariant: values in pending_ ascend. Only the last command may lack an event: this is the open command, or the
// command that the thread that holds queue_ is queuing. A thread that ends an open command locks queue_ of its stream,
// so no thread asks for a timepoint that may belong to an open command while it holds a queue_.
#include "runtime/device/cuda/cuda_stream.h"

#include <algorithm>
#include <utility>

#include "runtime/base/demangled.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_set.h"
#include "runtime/device/cuda/fingerprint_kernel.h"

namespace hpe::device::cuda {

namespace {

constexpr std::chrono::nanoseconds query_time{1000};

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Queues a kernel on `stream`. Throws HPE_ERROR_NOT_SUPPORTED if the launch is cooperative, or if the launch asks for
// clusters and the driver is too old for clusters.
CUresult launch_kernel(const driver& cu, const kernel_table::kernel_on_device& kernel, const shape& shape,
                       void** parameters, CUstream stream) {
  const auto at_least_one = [](std::uint32_t n) { return std::max(n, 1U); };
  CUlaunchConfig how{};
  how.gridDimX = at_least_one(shape.grid[0]);
  how.gridDimY = at_least_one(shape.grid[1]);
  how.gridDimZ = at_least_one(shape.grid[2]);
  how.blockDimX = at_least_one(shape.block[0]);
  how.blockDimY = at_least_one(shape.block[1]);
  how.blockDimZ = at_least_one(shape.block[2]);
  how.sharedMemBytes = kernel.shared_bytes + shape.shared_bytes;
  how.hStream = stream;
  HPE_REQUIRE(!shape.cooperative, HPE_ERROR_NOT_SUPPORTED,
              "hpe queues no cooperative launches on GPUs; use CUDA directly for such launches");
  if (!shape.asks_for_cluster())
    return cu.cuLaunchKernel(kernel.function, how.gridDimX, how.gridDimY, how.gridDimZ, how.blockDimX, how.blockDimY,
                             how.blockDimZ, how.sharedMemBytes, stream, nullptr, parameters);
  HPE_REQUIRE(
      cu.cuLaunchKernelEx != nullptr, HPE_ERROR_NOT_SUPPORTED,
      "a launch in clusters of {} x {} x {} blocks needs cuLaunchKernelEx, which the CUDA driver of this machine "
      "does not have",
      shape.cluster[0], shape.cluster[1], shape.cluster[2]);
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {shape.cluster[0], shape.cluster[1], shape.cluster[2]};
  how.attrs = &cluster;
  how.numAttrs = 1;
  return cu.cuLaunchKernelEx(&how, kernel.function, nullptr, parameters);
}

/// The error of a command that was queued only in part. The first stream creates this object, because there may be no
/// host memory when a command fails. Copies of the object allocate no memory.
const error& no_memory() {
  static const auto& made = *new error(HPE_ERROR_OUT_OF_MEMORY, "the host has no memory left for a command");
  return made;
}

}  // namespace

cuda_stream::cuda_stream(cuda_set& set, cuda_device& device, std::uint32_t number, priority level)
    : set_(set), device_(device), cu_(set.driver_table()), number_(number), level_(level) {
  if (device_.context_if_started() != nullptr) {
    const entered here(cu_, device_.context());
    make();
  }
  failures_.reserve(kept_failures);
  static_cast<void>(no_memory());
}

void cuda_stream::make() {
  if (stream_ != nullptr) return;
  int least = 0;
  int greatest = 0;
  cu_.check(cu_.cuCtxGetStreamPriorityRange(&least, &greatest), "querying the priorities of streams");
  // In CUDA, a lower number means a higher priority.
  const int wished = std::clamp(greatest + static_cast<int>(level_), greatest, least);
  cu_.check(cu_.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, wished), "creating a stream");
}

cuda_stream::~cuda_stream() {
  if (stream_ == nullptr) return;
  const entered here(cu_, device_.context());
  cu_.cuStreamSynchronize(stream_);
  if (open_done_ != nullptr) cu_.cuEventDestroy(open_done_);
  for (const command& c : pending_)
    if (c.done != nullptr) cu_.cuEventDestroy(c.done);
  for (const CUevent e : unused_) cu_.cuEventDestroy(e);
  cu_.cuStreamDestroy(stream_);
}

void cuda_stream::check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  if (kills_context(result)) {
    device_.lose(result);
    throw device_.loss();
  }
  cu_.fail(result, what);
}

CUevent cuda_stream::announce(std::uint32_t kernel) {
  std::unique_lock lock(pending_mutex_);
  if (unused_.empty()) {
    unused_.reserve(events_made_ + 1);
    lock.unlock();  // check() may call lose(), which locks this mutex
    CUevent made = nullptr;
    check(cu_.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), "creating an event");
    lock.lock();
    ++events_made_;
    unused_.push_back(made);
  }
  pending_.push_back({submitted_.load(std::memory_order_relaxed) + 1, nullptr, kernel});
  const CUevent done = unused_.back();
  unused_.pop_back();
  return done;
}

void cuda_stream::withdraw(CUevent done) noexcept {
  const std::lock_guard lock(pending_mutex_);
  pending_.pop_back();
  unused_.push_back(done);
}

void cuda_stream::drain() noexcept {
  if (const CUresult result = cu_.cuStreamSynchronize(stream_); result != CUDA_SUCCESS) device_.lose(result);
}

bool cuda_stream::record(CUevent done, CUstream end) noexcept {
  const bool followed = cu_.cuEventRecord(done, end) == CUDA_SUCCESS;
  if (!followed && end != stream_) cu_.cuStreamSynchronize(end);
  if (!followed) drain();
  return followed;
}

timepoint cuda_stream::queued(CUevent done, const std::optional<error>& failure) {
  CUstream const end = std::exchange(end_, nullptr);
  const bool stays_open = !failure && end != nullptr && openness_ != openness::none && set_.observer() == nullptr;
  bool followed = false;
  if (failure) {
    if (end != nullptr) cu_.cuStreamSynchronize(end);
    drain();
  } else if (!stays_open) {
    followed = record(done, end != nullptr ? end : stream_);
  }
  const std::lock_guard lock(pending_mutex_);
  const std::uint64_t value = pending_.back().value;
  if (failure) {
    if (failures_.size() == kept_failures) failures_.erase(failures_.begin());
    failures_.emplace_back(value, *failure);
  }
  if (stays_open) {
    open_end_ = end;
    open_done_ = done;
    lasts_.store(openness_ == openness::lasting);
    divided_.store(false);
    open_.store(value);
    open_by_ = std::this_thread::get_id();
    joined_ = 0;
  } else {
    settle(done, followed);
  }
  submitted_.store(value);
  return {number_, value};
}

// If `followed` is false, all commands up to the last one have finished.
void cuda_stream::settle(CUevent done, bool followed) noexcept {
  const std::uint64_t value = pending_.back().value;
  const std::uint64_t entries = entries_.fetch_add(entries_of_command) + entries_of_command;
  if (followed) {
    pending_.back().done = done;
    pending_.back().entries = entries;
    return;
  }
  for (const command& c : pending_) unused_.push_back(c.done == nullptr ? done : c.done);
  pending_.clear();
  completed_.store(std::max(completed_.load(), value));
  completed_entries_.store(entries);
}

void cuda_stream::close(progress of_work) noexcept {
  if (open_.load(std::memory_order_relaxed) == 0) return;
  const entered here(cu_, device_.context());
  CUevent const done = std::exchange(open_done_, nullptr);
  const bool is_done =
      of_work == progress::done || (of_work == progress::perhaps_done && cu_.cuStreamQuery(open_end_) == CUDA_SUCCESS);
  const bool followed = !is_done && record(done, open_end_);
  const std::lock_guard lock(pending_mutex_);
  settle(done, followed);
  open_.store(0);
}

void cuda_stream::end_open(std::uint64_t value, opening now) noexcept {
  if (const std::uint64_t open = open_.load(); now != opening::awaited && (open == 0 || open > value)) return;
  const std::lock_guard lock(queue_);
  close();
}

void cuda_stream::divide(division where) noexcept {
  if (open_.load() == 0) return;
  // The open command's event would follow what the stream waits for.
  const bool ends_lasting = where == division::before_wait;
  if (lasts_.load() && !ends_lasting) return divided_.store(true);
  const std::lock_guard lock(queue_);
  if (lasts_.load(std::memory_order_relaxed) && !ends_lasting) return;
  // Another thread may have queued work while this thread waited.
  const bool is_own = where == division::waited && open_by_ == std::this_thread::get_id();
  const bool may_be_done = where == division::waited || where == division::perhaps_idle;
  close(is_own ? progress::done : may_be_done ? progress::perhaps_done : progress::unknown);
}

bool cuda_stream::join(std::uint64_t value, function_ref<void()> queue) {
  const std::lock_guard lock(queue_);
  if (open_.load(std::memory_order_relaxed) != value || ++joined_ > most_joined) return false;
  entries_.fetch_add(1, std::memory_order_relaxed);
  note_thread();
  queue();
  return true;
}

template <class Queue>
timepoint cuda_stream::submit(const observed_command& what, const Queue& queue) {
  using clock = std::chrono::steady_clock;
  command_observer* const told = set_.observer();
  const clock::time_point asked = told != nullptr ? clock::now() : clock::time_point{};
  device_.require_alive();
  const entered here(cu_, device_.context());
  const std::lock_guard lock(queue_);
  make();
  const bool is_divided = divided_.load();
  if (what.what != observed_command::kind::enqueue || ++joined_ > most_joined || is_divided)
    close(is_divided ? progress::perhaps_done : progress::unknown);
  const std::uint64_t joined = open_.load(std::memory_order_relaxed);
  CUevent const done =
      joined != 0 ? nullptr : announce(what.what == observed_command::kind::launch ? what.function + 1 : 0);
  std::size_t commands = 0;
  std::optional<error> failure;
  end_ = nullptr;
  openness_ = openness::none;
  try {
    queue(commands);
  } catch (const std::exception& e) {
    if (commands == 0) {
      if (done != nullptr) withdraw(done);
      throw;
    }
    const auto* const known = dynamic_cast<const error*>(&e);
    failure = known != nullptr ? *known : no_memory();
  }
  if (joined != 0) {
    entries_.fetch_add(1, std::memory_order_relaxed);
    note_thread();
    if (openness_ == openness::none)
      close();
    else if (openness_ == openness::until_divided)
      lasts_.store(false);
    return {number_, joined};
  }
  const timepoint point = queued(done, failure);
  if (told != nullptr) told->queued(what, point, asked);
  if (failure) set_.failed(device_.index(), *failure);
  return point;
}

cuda_stream::side cuda_stream::check_range(const void* address, std::size_t bytes, const char* role) const {
  const std::uintptr_t begin = number_of(address);
  side result = side::host;
  for (std::uintptr_t at = begin; at < begin + bytes;) {
    if (const auto end = set_.host().find(at)) {
      at = *end;
      continue;
    }
    const auto mapping = set_.memory().find(at);
    HPE_REQUIRE(mapping || set_.layout().contains(address), HPE_ERROR_INVALID_ARGUMENT,
                "the {} of a command, {} bytes at {}, is host memory that was not registered, at {:#x}", role, bytes,
                address, at);
    HPE_REQUIRE(mapping, HPE_ERROR_INVALID_ARGUMENT,
                "the {} of a command, {} bytes at {}, has no memory behind it at {:#x}", role, bytes, address, at);
    HPE_REQUIRE(mapping->device == device_memory::foreign || device_.can_access(mapping->device),
                HPE_ERROR_INVALID_ARGUMENT,
                "the {} of a command on device {} is memory of device {}, which the command's device cannot access",
                role, device_.index(), mapping->device);
    result = side::device;
    at = mapping->end;
  }
  return result;
}

cuda_stream::checked_copy cuda_stream::check_copy(void* destination, const void* source, std::size_t bytes) const {
  const checked_copy what{number_of(destination), number_of(source), check_range(destination, bytes, "destination"),
                          check_range(source, bytes, "source")};
  HPE_REQUIRE(bytes == 0 || what.to_side == side::device || what.from_side == side::device, HPE_ERROR_NOT_SUPPORTED,
              "one side of a device copy must be memory of the device or of a peer, but both {} and {} are host memory",
              destination, source);
  return what;
}

template <class Queue>
timepoint cuda_stream::submit_with_host_memory(const observed_command& what, const Queue& queue) {
  std::vector<cuda_pinned_memory::pinned_use> uses;
  try {
    const timepoint point = submit(what, [&](std::size_t& commands) { queue(commands, uses); });
    set_.host().done(uses, point);
    return point;
  } catch (...) {
    set_.host().done(uses, {});
    throw;
  }
}

std::size_t cuda_stream::bytes_of_command(const checked_copy& what, std::size_t bytes,
                                          std::vector<cuda_pinned_memory::pinned_use>& uses) {
  const auto limit = [&](std::uintptr_t address, side which) {
    if (which == side::host) {
      // Reserved before begin(), so that push_back() cannot throw: each use that begin() returns must reach done().
      uses.reserve(uses.size() + 1);
      uses.push_back(set_.host().begin(address, bytes));
      bytes = uses.back().end - address;
    } else if (const auto mapping = set_.memory().find(address)) {
      bytes = std::min(bytes, mapping->end - address);
    }
  };
  // The device's side limits the size of the part first, so that hpe pins no more host memory than the part uses.
  what.from_side == side::device ? limit(what.from, what.from_side) : limit(what.to, what.to_side);
  what.from_side == side::device ? limit(what.to, what.to_side) : limit(what.from, what.from_side);
  return bytes;
}

void cuda_stream::queue_bytes(const checked_copy& what, std::size_t bytes, std::size_t& commands,
                              std::vector<cuda_pinned_memory::pinned_use>& uses) {
  for (std::size_t at = 0; at < bytes; ++commands) {
    const checked_copy part = what.at(at);
    const std::size_t size = bytes_of_command(part, bytes - at, uses);
    check(cu_.cuMemcpyAsync(part.to, part.from, size, stream_), "queuing a copy");
    at += size;
  }
}

timepoint cuda_stream::copy(void* destination, const void* source, std::size_t bytes) {
  const checked_copy what = check_copy(destination, source, bytes);
  const auto queue = [&](std::size_t& commands, std::vector<cuda_pinned_memory::pinned_use>& uses) {
    queue_bytes(what, bytes, commands, uses);
  };
  return submit_with_host_memory({observed_command::kind::copy, what.to, what.from, bytes}, queue);
}

timepoint cuda_stream::copy_rows(void* destination, const void* source, const box& rows) {
  const checked_copy what = check_copy(destination, source, rows.span());
  const std::size_t width = rows.extent.width, stride = rows.strides.row;
  const auto queue = [&](std::size_t& commands, std::vector<cuda_pinned_memory::pinned_use>& uses) {
    for (std::size_t row = 0; row < rows.extent.rows;) {
      const checked_copy rest = what.at(row * stride);
      const std::size_t size = bytes_of_command(rest, rows.span() - row * stride, uses);
      // A single row has no distance.
      const bool is_last = row + 1 == rows.extent.rows;
      const std::size_t whole = is_last || size < width ? 1 : (size - width) / stride + 1;
      constexpr std::size_t largest_stride = 0x7fffffff;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices
      if (whole < 2 || stride > largest_stride || cu_.cuMemcpy2DAsync == nullptr) {
        queue_bytes(rest, width, commands, uses);
        ++row;
        continue;
      }
      CUDA_MEMCPY2D part{};
      part.srcMemoryType = rest.from_side == side::host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
      part.dstMemoryType = rest.to_side == side::host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
      part.srcHost = reinterpret_cast<const void*>(rest.from);  // NOLINT(performance-no-int-to-ptr)
      part.dstHost = reinterpret_cast<void*>(rest.to);          // NOLINT(performance-no-int-to-ptr)
      part.srcDevice = rest.from;
      part.dstDevice = rest.to;
      part.srcPitch = part.dstPitch = stride;
      part.WidthInBytes = width;
      part.Height = whole;
      check(cu_.cuMemcpy2DAsync(&part, stream_), "queuing a copy of rows");
      ++commands;
      row += whole;
    }
  };
  return submit_with_host_memory({observed_command::kind::copy, what.to, what.from, rows.bytes()}, queue);
}

timepoint cuda_stream::fill(void* destination, std::uint8_t value, std::size_t bytes) {
  const side to = check_range(destination, bytes, "destination");
  HPE_REQUIRE(bytes == 0 || to == side::device, HPE_ERROR_NOT_SUPPORTED,
              "a device fills device memory only, but {} is host memory", destination);
  const observed_command what{observed_command::kind::fill, number_of(destination), 0, bytes};
  return submit(what, [&](std::size_t& commands) {
    const std::uintptr_t end = number_of(destination) + bytes;
    for (std::uintptr_t at = number_of(destination); at < end; ++commands) {
      const auto mapping = set_.memory().find(at);
      const std::uintptr_t stop = mapping ? std::min(mapping->end, end) : end;
      check(cu_.cuMemsetD8Async(at, value, stop - at, stream_), "queuing a fill");
      at = stop;
    }
  });
}

timepoint cuda_stream::take_fingerprint(fingerprint* result, const void* source, std::size_t bytes) {
  HPE_INVARIANT(bytes % fingerprint_unit == 0);
  HPE_REQUIRE(check_range(source, bytes, "source") == side::device, HPE_ERROR_NOT_SUPPORTED,
              "{} is host memory, of which hpe takes no fingerprint", source);
  static_cast<void>(check_range(result, sizeof *result, "destination"));
  device_.require_alive();
  const cuda_set::fingerprint_code& code = set_.code_of_fingerprints(device_.index());
  const kernel_table::kernel_on_device kernel = set_.kernels().at(code.kernel, device_.index());
  const fingerprint_key& key = fingerprint_key::own();
  fingerprint_parameters parameters{number_of(source), bytes / fingerprint_unit, key.first, key.second};
  std::size_t size = sizeof parameters;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  struct shape how;
  how.block[0] = fingerprint_threads;
  constexpr unsigned blocks_of_a_unit = 4;
  how.grid[0] = device_.info().compute_units * blocks_of_a_unit;
  const auto queue = [&](std::size_t& commands, std::vector<cuda_pinned_memory::pinned_use>& uses) {
    check(cu_.cuMemsetD8Async(code.sums, 0, sizeof *result, stream_), "queuing a fill");
    ++commands;
    check(launch_kernel(cu_, kernel, how, extra, stream_), "launching a kernel");
    ++commands;
    queue_bytes({number_of(result), code.sums, side::host, side::device}, sizeof *result, commands, uses);
  };
  return submit_with_host_memory({observed_command::kind::launch, 0, 0, 0, code.kernel.function}, queue);
}

timepoint cuda_stream::launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) {
  HPE_REQUIRE(parameters.size() <= most_parameters, HPE_ERROR_INVALID_ARGUMENT,
              "{} bytes of parameters are too many for a launch; at most {} are possible", parameters.size(),
              most_parameters);
  device_.require_alive();
  const kernel_table::kernel_on_device found = set_.kernels().at(kernel, device_.index());
  std::size_t size = parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(parameters.data()),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  return submit({observed_command::kind::launch, 0, 0, 0, kernel.function}, [&](std::size_t& /*commands*/) {
    if (shape.shared_bytes != 0)
      set_.kernels().allow_shared_memory(kernel, device_.index(), found.shared_bytes + shape.shared_bytes);
    const CUresult result = launch_kernel(cu_, found, shape, size == 0 ? nullptr : extra, stream_);
    if (result != CUDA_SUCCESS && !kills_context(result))
      HPE_THROW(HPE_ERROR_INVALID_ARGUMENT,
                "the CUDA driver did not launch kernel \"{}\": {} (grid {} x {} x {}, block {} x {} x {}, {} bytes of "
                "parameters)",
                demangled(set_.kernels().name(kernel.function)), cu_.words_for(result), shape.grid[0], shape.grid[1],
                shape.grid[2], shape.block[0], shape.block[1], shape.block[2], size);
    check(result, "launching a kernel");
  });
}

timepoint cuda_stream::launch(CUgraphExec graph) {
  return submit({observed_command::kind::enqueue},
                [&](std::size_t& /*commands*/) { check(cu_.cuGraphLaunch(graph, stream_), "launching a graph"); });
}

timepoint cuda_stream::enqueue(const std::function<int(void*)>& function) {
  return submit({observed_command::kind::enqueue}, [&](std::size_t& /*commands*/) {
    int result = 0;
    try {
      // `function` may make another context current.
      const entered for_function(cu_, device_.context(), entered::what_follows_may_replace_it);
      result = function(stream_);
    } catch (...) {
      drain();
      throw;
    }
    if (result == 0) return;
    drain();
    device_.require_alive();
    HPE_THROW(HPE_ERROR_LAUNCH_FAILED, "the function that was to queue work on device {} returned {} instead of 0",
              device_.index(), result);
  });
}

void cuda_stream::wait(timepoint point) {
  if (point.timeline == number_) return;
  cuda_stream* const other = set_.find_stream(point);
  // A query whether the point is reached takes ten times as long as queuing the wait, so this function does not query
  // the driver.
  if (other == nullptr || other->known_reached(point.value)) return;
  other->end_open(point.value);
  device_.require_alive();
  const entered here(cu_, device_.context());
  const std::lock_guard lock(queue_);
  make();
  other->hold(stream_, point.value);
  if (set_.observer() != nullptr) set_.observer()->waits(number_, point);
}

void cuda_stream::hold(CUstream follower, std::uint64_t value) {
  const std::lock_guard lock(pending_mutex_);
  const auto found = std::lower_bound(pending_.begin(), pending_.end(), value, is_before);
  if (found == pending_.end() || found->value != value) return;  // the command has finished in the meantime
  const CUresult result = cu_.cuStreamWaitEvent(follower, found->done, 0);
  // An error that makes the context unusable is ignored here, because no stream needs to wait for work of a lost
  // device.
  if (result != CUDA_SUCCESS && !kills_context(result)) cu_.fail(result, "waiting for an event");
}

timepoint cuda_stream::last() const {
  const std::uint64_t value = submitted_.load();
  return value == 0 ? timepoint{} : timepoint{number_, value};
}

bool cuda_stream::is_crowded() const noexcept {
  const std::uint64_t completed = completed_entries_.load();  // before entries_, which is never smaller
  return entries_.load() - completed > long_queue;
}

timepoint cuda_stream::end_of_crowd() const noexcept {
  if (!is_crowded()) return {};
  const std::lock_guard lock(pending_mutex_);
  // The entries of the last command are not known yet if it is open or being queued; then it has few entries.
  const bool is_last_known = pending_.empty() || pending_.back().done != nullptr;
  const auto known_end = is_last_known ? pending_.end() : std::prev(pending_.end());
  if (known_end == pending_.begin()) return {};
  const std::uint64_t entries = entries_.load();
  const auto found =
      std::lower_bound(pending_.begin(), std::prev(known_end), entries - std::min(entries, long_queue / 2),
                       [](const command& c, std::uint64_t least) { return c.entries < least; });
  return {number_, found->value};
}

std::optional<error> cuda_stream::failure_of(std::uint64_t value) const {
  const std::lock_guard lock(pending_mutex_);
  const auto found = std::ranges::find(failures_, value, [](const auto& failure) { return failure.first; });
  return found == failures_.end() ? std::nullopt : std::optional<error>(found->second);
}

bool cuda_stream::reached(std::uint64_t value) noexcept {
  if (completed_.load() >= value) return true;
  end_open(value);
  CUresult result = CUDA_SUCCESS;
  {
    const std::lock_guard lock(pending_mutex_);
    // A query of an event takes 1.2 us, so this function queries again only when query_time has passed since an event
    // was last seen unfinished.
    const auto now = std::chrono::steady_clock::now();
    if (now < asked_ + query_time) return completed_.load() >= value;
    const uncaptured here(cu_);
    const auto has_finished = [&](const command& c) {
      if (c.done != nullptr) result = cu_.cuEventQuery(c.done);
      return c.done != nullptr && result == CUDA_SUCCESS;
    };
    const auto finish = [&](const std::deque<command>::iterator& last) {
      completed_.store(last->value);
      completed_entries_.store(last->entries);
      std::for_each(pending_.begin(), last + 1, [&](const command& c) { unused_.push_back(c.done); });
      pending_.erase(pending_.begin(), last + 1);
    };
    // Commands finish in order. If the oldest command has finished, the command with this number often has too, and one
    // query shows this for all commands between them.
    for (bool is_first = true; !pending_.empty() && completed_.load() < value && has_finished(pending_.front());) {
      finish(pending_.begin());
      if (!std::exchange(is_first, false)) continue;
      const auto asked = std::lower_bound(pending_.begin(), pending_.end(), value, is_before);
      if (asked != pending_.end() && has_finished(*asked)) finish(asked);
    }
    if (result == CUDA_ERROR_NOT_READY) asked_ = std::chrono::steady_clock::now();
  }
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) device_.lose(result);
  return completed_.load() >= value;
}

void cuda_stream::lose() noexcept {
  const std::lock_guard lock(pending_mutex_);
  lost_after_.store(completed_.load());
  completed_.store(all);
  lost_kernel_ = pending_.empty() ? 0 : pending_.front().kernel;
}

std::string cuda_stream::lost_kernel() const {
  const std::lock_guard lock(pending_mutex_);
  return lost_kernel_ == 0 ? std::string{} : set_.kernels().name(lost_kernel_ - 1);
}

}  // namespace hpe::device::cuda
