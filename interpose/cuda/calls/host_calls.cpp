#include "interpose/cuda/calls/host_calls.h"

#include <sys/random.h>

#include <cstring>

#include "interpose/cuda/device_work.h"
#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;
using interpose::copied_rows;
using interpose::device_copy;
using interpose::peer_bytes;

namespace {

CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

std::array<std::uint64_t, 2> random_name() {
  std::array<std::uint64_t, 2> name{};
  if (::getrandom(name.data(), sizeof name, 0) != sizeof name) throw_system_error("getrandom");
  return name;
}

}  // namespace

host_calls::host_calls(const device::cuda::driver& cu, contexts& parts, program_contexts& program,
                       pageable_copy& copies, adopted_memory& adopted)
    : cu_(cu),
      parts_(parts),
      program_(program),
      copies_(copies),
      adopted_(adopted),
      process_(random_name()),
      known_(cu, program),
      peers_(cu),
      buffers_(cu) {
  start();
}

// ---- the program's memory -----------------------------------------------------------------------------------------

std::size_t host_calls::bytes_from(std::uintptr_t address) noexcept {
  const auto found = known_.at(address);
  return found ? found->base + found->bytes - address : 0;
}

known_memory::allocation host_calls::require(CUdeviceptr address) {
  const auto found = known_.at(address);
  HPE_REQUIRE(found, HPE_ERROR_NOT_A_REGION, "there is no device memory at {:#x}", address);
  return *found;
}

void host_calls::forget_contexts() noexcept {
  known_.forget_all();
  peers_.clear();
  std::map<CUcontext, std::shared_ptr<call_queue>> old;
  const std::lock_guard lock(mutex_);
  old.swap(queues_);
}

std::shared_ptr<call_queue> host_calls::queue_of(CUcontext context) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<call_queue>& queue = queues_[context];
  if (queue == nullptr) queue = std::make_shared<call_queue>(cu_, parts_.of(context));
  return queue;
}

// For copies to host memory, which any context can make. Empty if the program has none yet.
std::shared_ptr<call_queue> host_calls::some_queue() {
  {
    const std::lock_guard lock(mutex_);
    if (!queues_.empty()) return queues_.begin()->second;
  }
  CUcontext found = nullptr;
  cu_.cuCtxGetCurrent(&found);
  if (found == nullptr)
    program_.for_each_primary([&](int, CUcontext context) {
      if (found == nullptr) found = context;
    });
  return found != nullptr ? queue_of(found) : nullptr;
}

// ---- waiting ------------------------------------------------------------------------------------------------------

void host_calls::wait_for_program(CUcontext also) {
  queuing_threads::watch();
  if (queuing_threads::all_done()) return;
  const std::uint64_t number = ++waits_begun_;
  const queuing_threads::queued_so_far queued;
  cu_.check(program_.wait_for_all(also), "waiting for the work that may use the memory of a call");
  queued.done();
  std::uint64_t before = waits_over_.load();
  while (before < number && !waits_over_.compare_exchange_weak(before, number)) {
  }
}

std::uint64_t host_calls::queued_now() noexcept {
  queuing_threads::watch();
  return queuing_threads::all_done() ? 0 : waits_begun_.load() + 1;
}

// ---- calls of the host --------------------------------------------------------------------------------------------

void host_calls::copy(const known_memory::allocation& in, CUdeviceptr device, void* host, std::size_t bytes,
                      bool to_device) {
  const auto queue = queue_of(in.context);
  wait_for_program(in.context);
  device_work work(queue->stream(), {{device, bytes, to_device}});
  work.is_of_hpe();
  cu_.check(work.result(), "taking what CPU code has written to the device");
  const entered here(cu_, in.context);
  const auto done = to_device ? copies_.upload(device, host, bytes, queue->stream(), true)
                              : copies_.download(host, device, bytes, queue->stream());
  if (done) return cu_.check(*done, "copying the bytes of a call");
  queue->copy(to_device ? device : number_of(host), to_device ? number_of(host) : device, bytes);
  queue->wait();
}

void host_calls::read(void* to, std::uintptr_t from, std::size_t bytes) {
  if (adopted_.has_touched(from, from + bytes)) return adopted_.read(to, from, bytes);
  copy(require(from), from, to, bytes, false);
}

void host_calls::write(std::uintptr_t to, const void* from, std::size_t bytes) {
  if (adopted_.has_touched(to, to + bytes)) return adopted_.write(to, from, bytes);
  copy(require(to), to, const_cast<void*>(from), bytes, true);
}

std::byte* host_calls::borrow(std::size_t bytes) {
  const auto queue = some_queue();
  if (queue == nullptr) return buffers_.borrow(bytes);
  const entered here(cu_, queue->parts()->context());
  return buffers_.borrow(bytes);
}

// ---- messages -----------------------------------------------------------------------------------------------------

std::optional<peer_bytes> host_calls::share(std::uintptr_t from, std::size_t bytes) {
  const auto found = known_.shared_at(from);
  if (!found || from + bytes > found->what.base + found->what.bytes) return std::nullopt;
  wait_for_program(found->what.context);
  if (adopted_memory::any()) {
    device_work release({{from, bytes, false}});
    release.is_of_hpe();
    cu_.check(release.result(), "taking what CPU code has written to the device");
  }
  peer_bytes result{process_, found->number, found->what.base, from - found->what.base, {}};
  static_assert(sizeof result.handle == sizeof found->handle);
  std::memcpy(result.handle.data(), &found->handle, sizeof result.handle);
  return result;
}

std::optional<device_copy> host_calls::pull(void* to, const peer_bytes& from, const copied_rows& shape,
                                            std::uint64_t queued) {
  const CUdeviceptr target = number_of(to);
  const bool on_device = adopted_pointers::of(target) != nullptr;
  const auto queue = on_device ? queue_of(require(target).context) : some_queue();
  if (queue == nullptr) return std::nullopt;
  const auto memory = peers_.open(from, queue->parts());
  if (memory == nullptr) return std::nullopt;
  if (queued > waits_over_.load()) wait_for_program(queue->parts()->context());
  const entered here(cu_, queue->parts()->context());
  const CUdeviceptr source = memory->base() + from.offset;
  if (!on_device) {
    if (shape.is_one_run())
      if (const auto done = copies_.download(to, source, shape.bytes(), queue->stream())) {
        cu_.check(*done, "copying the bytes of a message");
        return device_copy{queue, 0};
      }
    return device_copy{queue, queue->copy_rows(to, source, shape, memory)};
  }
  device_work work(queue->stream(), {{target, shape.extent(shape.to), true}});
  work.is_of_hpe();
  cu_.check(work.result(), "taking what CPU code has written to the device");
  return device_copy{queue, queue->copy_rows(target, source, shape, memory)};
}

}  // namespace hpe::cuda_hooks
