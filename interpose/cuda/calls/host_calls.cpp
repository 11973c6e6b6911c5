#include "interpose/cuda/calls/host_calls.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "interpose/cuda/device_work.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;
using interpose::copied_piece;
using interpose::copied_rows;
using interpose::device_copy;
using interpose::peer_bytes;

namespace {

CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// The range from the first byte of all pieces to the last byte.
used_range range_of(CUdeviceptr base, std::span<const copied_piece> pieces, bool written) {
  std::size_t begin = ~std::size_t{0};
  std::size_t end = 0;
  for (const auto& [offset, shape] : pieces) {
    begin = std::min(begin, offset);
    end = std::max(end, offset + shape.extent(shape.to));
  }
  return {base + begin, end - begin, written};
}

template <class Visit>
void for_each_row(std::span<const copied_piece> pieces, Visit visit) {
  for (const auto& [offset, shape] : pieces)
    for (std::size_t p = 0; p < shape.planes; ++p)
      for (std::size_t r = 0; r < shape.rows; ++r) visit(offset + p * shape.to.plane + r * shape.to.row, shape.width);
}

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
  std::map<CUcontext, context_queues> old;
  std::map<CUcontext, std::shared_ptr<copy_kernels>> old_kernels;
  const std::lock_guard lock(mutex_);
  old.swap(queues_);
  old_kernels.swap(kernels_);
}

std::shared_ptr<call_queue> host_calls::queue_of(CUcontext context) { return queue_of(context, 0); }

std::shared_ptr<call_queue> host_calls::queue_of(CUcontext context, std::size_t bytes) {
  constexpr std::size_t overlapped = std::size_t{256} << 10;
  const std::lock_guard lock(mutex_);
  context_queues& queues = queues_[context];
  std::shared_ptr<call_queue>* chosen = queues.data();
  if (bytes >= overlapped)
    chosen = std::min_element(queues.begin(), queues.end(), [](const auto& a, const auto& b) {
      return (a != nullptr ? a->unfinished() : 0) < (b != nullptr ? b->unfinished() : 0);
    });
  if (*chosen == nullptr) *chosen = std::make_shared<call_queue>(cu_, parts_.of(context));
  return *chosen;
}

std::shared_ptr<copy_kernels> host_calls::kernels_of(CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = kernels_.try_emplace(context);
  if (is_new) {
    try {
      found->second = std::make_shared<copy_kernels>(cu_, parts_.of(context));
    } catch (const error& e) {
      log(log_level::info, "messages of rows are copied by copy engines: {}", e.what());
    }
  }
  return found->second;
}

std::uint64_t host_calls::copy_rows(call_queue& queue, CUdeviceptr to, CUdeviceptr from, const copied_rows& shape,
                                    std::shared_ptr<void> kept) {
  const auto kernels = copy_kernels::suit(shape) ? kernels_of(queue.parts()->context()) : nullptr;
  if (kernels == nullptr) return queue.copy_rows(to, from, shape, std::move(kept));
  return queue.add(shape.bytes(), std::move(kept),
                   [&](CUstream stream) { return kernels->copy(to, from, shape, stream); });
}

// A queue for copies to host memory, which any context can make. nullptr if the program has no context yet.
std::shared_ptr<call_queue> host_calls::some_queue() {
  {
    const std::lock_guard lock(mutex_);
    if (!queues_.empty() && queues_.begin()->second[0] != nullptr) return queues_.begin()->second[0];
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
  const CUresult result = program_.wait_for_all(also);
  // Captured work does not run, and the driver refuses waits during a capture.
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return;
  cu_.check(result, "waiting for the work that may use the memory of a call");
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

void host_calls::copy(CUdeviceptr device, std::byte* host, std::span<const copied_piece> pieces, bool to_device) {
  const CUcontext context = require(device).context;
  const auto queue = queue_of(context);
  wait_for_program(context);
  device_work work(queue->stream(), {range_of(device, pieces, to_device)});
  work.needs_no_wait();
  cu_.check(work.result(), "taking what CPU code has written to the device");
  const entered here(cu_, context);
  constexpr const char* what = "copying the bytes of a call";
  for (const auto& [offset, shape] : pieces) {
    std::optional<CUresult> done;
    if (shape.is_one_run())
      done = to_device ? copies_.upload(device + offset, host + offset, shape.bytes(), queue->stream(), true)
                       : copies_.download(host + offset, device + offset, shape.bytes(), queue->stream());
    if (done) {
      cu_.check(*done, what);
    } else if (to_device) {
      queue->copy_rows(device + offset, host + offset, shape);
    } else {
      queue->copy_rows(host + offset, device + offset, shape);
    }
  }
  queue->wait();
}

void host_calls::read(void* to, std::uintptr_t from, std::span<const copied_piece> pieces) {
  auto* const host = static_cast<std::byte*>(to);
  const used_range all = range_of(from, pieces, false);
  if (!adopted_.has_touched(all.address, all.address + all.bytes)) return copy(from, host, pieces, false);
  for_each_row(pieces, [&](std::size_t at, std::size_t bytes) { adopted_.read(host + at, from + at, bytes); });
}

void host_calls::write(std::uintptr_t to, const void* from, std::span<const copied_piece> pieces) {
  const auto* const host = static_cast<const std::byte*>(from);
  const used_range all = range_of(to, pieces, true);
  if (!adopted_.has_touched(all.address, all.address + all.bytes))
    return copy(to, const_cast<std::byte*>(host), pieces, true);
  for_each_row(pieces, [&](std::size_t at, std::size_t bytes) { adopted_.write(to + at, host + at, bytes); });
}

std::byte* host_calls::borrow(std::size_t bytes) {
  const auto queue = some_queue();
  if (queue == nullptr) return buffers_.borrow(bytes);
  const entered here(cu_, queue->parts()->context());
  return buffers_.borrow(bytes);
}

// ---- messages -----------------------------------------------------------------------------------------------------

std::optional<peer_bytes> host_calls::share(std::uintptr_t address, std::size_t bytes, peer_use use,
                                            std::uint64_t queued) {
  const auto found = known_.shared_at(address);
  if (!found || address + bytes > found->what.base + found->what.bytes) return std::nullopt;
  wait_for_program(found->what.context, queued);
  if (adopted_memory::any()) {
    // The other process copies later. CPU code of this process may fetch a page before that copy, and keep old bytes.
    if (use == peer_use::overwrite && adopted_.has_touched(address, address + bytes)) return std::nullopt;
    device_work release({{address, bytes, use == peer_use::overwrite}});
    release.needs_no_wait();
    cu_.check(release.result(), "taking what CPU code has written to the device");
  }
  peer_bytes result{process_, found->number, found->what.base, address - found->what.base, {}, {}};
  static_assert(sizeof result.handle == sizeof found->handle);
  std::memcpy(result.handle.data(), &found->handle, sizeof result.handle);
  static_assert(sizeof result.device == sizeof found->device);
  std::memcpy(result.device.data(), &found->device, sizeof result.device);
  return result;
}

// Another process has written the memory: bytes that CPU code has fetched since share() are out of date.
void host_calls::overwritten(std::uintptr_t address, std::size_t bytes) {
  if (!adopted_memory::any()) return;
  device_work release({{address, bytes, true}});
  release.needs_no_wait();
  cu_.check(release.result(), "giving up what CPU code has fetched of memory that another process has written");
}

std::optional<device_copy> host_calls::pull(void* to, const peer_bytes& from, const copied_rows& shape,
                                            std::uint64_t queued) {
  const CUdeviceptr target = number_of(to);
  const auto place = may_know(target) ? known_.at(target) : std::nullopt;
  const bool on_device = place.has_value() || adopted_pointers::of(target) != nullptr;
  const auto queue =
      on_device ? queue_of(place ? place->context : require(target).context, shape.bytes()) : some_queue();
  if (queue == nullptr) return std::nullopt;
  const auto memory = peers_.open(from, queue->parts());
  if (memory == nullptr) return std::nullopt;
  wait_for_program(queue->parts()->context(), queued);
  const entered here(cu_, queue->parts()->context());
  const CUdeviceptr source = memory->base() + from.offset;
  if (!on_device) {
    if (shape.is_one_run())
      if (const auto done = copies_.download(to, source, shape.bytes(), queue->stream())) {
        cu_.check(*done, "copying the bytes of a message");
        return device_copy{queue, 0};
      }
    return device_copy{queue, queue->copy_rows(static_cast<std::byte*>(to), source, shape, memory)};
  }
  device_work work(queue->stream(), {{target, shape.extent(shape.to), true}});
  work.needs_no_wait();
  cu_.check(work.result(), "taking what CPU code has written to the device");
  return device_copy{queue, copy_rows(*queue, target, source, shape, memory)};
}

std::optional<device_copy> host_calls::push(const peer_bytes& to, std::uintptr_t from, const copied_rows& shape) {
  const auto queue = queue_of(require(from).context);
  const auto memory = peers_.open(to, queue->parts());
  if (memory == nullptr) return std::nullopt;
  const entered here(cu_, queue->parts()->context());
  return device_copy{queue, copy_rows(*queue, memory->base() + to.offset, from, shape, memory)};
}

}  // namespace hpe::cuda_hooks
