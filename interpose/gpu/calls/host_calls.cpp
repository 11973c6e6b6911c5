#include "interpose/gpu/calls/host_calls.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>

#include "interpose/gpu/work/enqueue_guard.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/check/host_watch.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;
using interpose::device_copy;
using interpose::peer_bytes;
using interpose::scattered_bytes;

namespace {

CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// The smallest range that contains all boxes.
used_range range_of(CUdeviceptr base, std::span<const placed_box> boxes, bool written) {
  std::size_t begin = ~std::size_t{0};
  std::size_t end = 0;
  for (const auto& [offset, shape] : boxes) {
    const auto first = static_cast<std::size_t>(offset);
    begin = std::min(begin, first);
    end = std::max(end, saturated_sum(first, shape.span()));
  }
  return {base + begin, end - begin, written};
}

template <class Visit>
void for_each_row(std::span<const placed_box> boxes, Visit visit) {
  for (const placed_box& each : boxes)
    each.shape.for_each_row(
        [&](std::size_t at) { visit(static_cast<std::size_t>(each.offset) + at, each.shape.extent.width); });
}

// Exists while hpe itself uses memory of the program on a device; the program need not wait for this use. The
// constructor uploads the bytes of the used memory that CPU code has written. Throws hpe::error if the upload fails.
class own_use {
 public:
  /// after: see enqueue_guard.
  own_use(const device::cuda::driver& cu, CUstream stream, std::initializer_list<used_range> ranges,
          const interpose::copy_queue* after = nullptr,
          const char* what = "uploading the data that CPU code has written")
      : guard_(stream, ranges, after) {
    guard_.needs_no_wait();
    cu.check(guard_.result(), what);
  }

 private:
  enqueue_guard guard_;
};

std::array<std::uint64_t, 2> random_name() {
  std::array<std::uint64_t, 2> name{};
  if (::getrandom(name.data(), sizeof name, 0) != sizeof name) throw_system_error("getrandom");
  return name;
}

}  // namespace

host_calls::host_calls(const device::cuda::driver& cu, contexts& parts, program_contexts& program,
                       pageable_copy& copies, adopted_memory& adopted, queued_uses& queued, deferred_copies& deferred,
                       bool by_parameters)
    : cu_(cu),
      parts_(parts),
      program_(program),
      copies_(copies),
      adopted_(adopted),
      deferred_(deferred),
      process_(random_name()),
      waits_(cu, program, queued, by_parameters),
      known_(cu, program),
      peers_(cu),
      buffers_(cu) {
  start();
}

// ---- the program's memory -----------------------------------------------------------------------------------------

std::size_t host_calls::bytes_from(std::uintptr_t address) noexcept {
  // CPU code may not be able to read pinned memory that work uses.
  if (const check::host_watch* const watch = check::host_watch::of_process())
    if (watch->is_in_use(address, address + 1)) return 0;
  try {
    const auto found = known_.at(address);
    return found ? found->base + found->bytes - address : 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

bool host_calls::touched(std::uintptr_t address) noexcept { return adopted_.has_touched(address, address + 1); }

void host_calls::left_to_library(std::uintptr_t address) noexcept {
  deferred_.finish_or_tell("the MPI library uses their memory");
  adopted_.left_to_library(address);
}

known_allocation host_calls::require(CUdeviceptr address) {
  const auto found = known_.at(address);
  HPE_REQUIRE(found, HPE_ERROR_NOT_A_REGION, "there is no device memory at {:#x}", address);
  return *found;
}

void host_calls::forget_contexts() noexcept {
  known_.forget_all();
  peers_.clear();
  std::map<CUcontext, context_queues> old;
  std::map<CUcontext, std::shared_ptr<call_kernels>> old_kernels;
  const lock_guard lock(mutex_);
  old.swap(queues_);
  old_kernels.swap(kernels_);
}

std::shared_ptr<call_queue> host_calls::queue_of(CUcontext context, std::size_t from_peer) {
  constexpr std::size_t overlapped = std::size_t{256} << 10;
  const lock_guard lock(mutex_);
  context_queues& queues = queues_[context];
  std::shared_ptr<call_queue>* chosen = queues.data();
  if (from_peer >= overlapped)
    chosen = std::min_element(queues.begin(), queues.end(), [](const auto& a, const auto& b) {
      return (a != nullptr ? a->unfinished() : 0) < (b != nullptr ? b->unfinished() : 0);
    });
  if (*chosen == nullptr) *chosen = std::make_shared<call_queue>(cu_, parts_.of(context));
  return *chosen;
}

std::shared_ptr<call_kernels> host_calls::kernels_of(CUcontext context) {
  const lock_guard lock(mutex_);
  if (const auto found = kernels_.find(context); found != kernels_.end()) return found->second;
  std::shared_ptr<call_kernels> made;
  try {
    made = std::make_shared<call_kernels>(cu_, parts_.of(context),
                                          [this](CUdeviceptr address, std::size_t bytes) { forget(address, bytes); });
  } catch (const error& e) {
    log(log_level::info, "copy engines, not kernels, copy messages that consist of rows: {}", e.what());
  }
  return kernels_.emplace(context, std::move(made)).first->second;
}

std::shared_ptr<call_kernels> host_calls::require_kernels(CUcontext context) {
  auto kernels = kernels_of(context);
  HPE_REQUIRE(kernels != nullptr, HPE_ERROR_SYSTEM, "hpe's kernels for messages are not loaded");
  return kernels;
}

std::uint64_t host_calls::copy_rows(call_queue& queue, CUdeviceptr to, CUdeviceptr from, const box_copy& shape,
                                    std::shared_ptr<void> kept) {
  const auto kernels = call_kernels::suit(shape) ? kernels_of(queue.parts()->context()) : nullptr;
  if (kernels == nullptr) return queue.copy_rows(to, from, shape, std::move(kept));
  return queue.add(shape.bytes(), kept, [&](CUstream stream) { return kernels->copy(to, from, shape, stream); });
}

// Returns a queue of any context, for copies to host memory, which work in all contexts; nullptr if the program has no
// context yet.
std::shared_ptr<call_queue> host_calls::some_queue() {
  {
    const lock_guard lock(mutex_);
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

// ---- reads and writes for libc and MPI calls ----------------------------------------------------------------------

void host_calls::copy(CUdeviceptr device, std::byte* host, std::span<const placed_box> boxes, bool to_device) {
  const auto memory = require(device);
  const CUcontext context = memory.context;
  const auto queue = queue_of(context);
  waits_.for_users_of(memory);
  const own_use work(cu_, queue->stream(), {range_of(device, boxes, to_device)});
  const entered here(cu_, context);
  if (copy_together(device, host, boxes, to_device, *queue)) return;
  constexpr const char* what = "copying the data of an I/O or MPI call";
  for (const auto& [offset, shape] : boxes) {
    const box_copy alike{shape.extent, shape.strides, shape.strides};
    std::optional<CUresult> done;
    if (shape.extent.is_one_row())
      done = to_device ? copies_.upload(device + offset, host + offset, shape.bytes(), queue->stream(), true)
                       : copies_.download(host + offset, device + offset, shape.bytes(), queue->stream());
    if (done) {
      cu_.check(*done, what);
    } else if (to_device) {
      queue->copy_rows(device + offset, host + offset, alike);
    } else {
      queue->copy_rows(host + offset, device + offset, alike);
    }
  }
  queue->wait();
}

// Copies many small boxes by one transfer of contiguous bytes, which a kernel on the device gathers from the boxes or
// scatters to the boxes. Returns false, without effect, if there are few boxes, if the boxes are large, or if hpe
// cannot allocate device memory for the contiguous bytes.
bool host_calls::copy_together(CUdeviceptr device, std::byte* host, std::span<const placed_box> boxes, bool to_device,
                               call_queue& queue) {
  constexpr std::size_t few = 16;
  constexpr std::size_t large = std::size_t{64} << 10;
  if (boxes.size() <= few) return false;
  auto all = std::make_shared<std::vector<interpose::stretch>>();
  std::size_t bytes = 0;
  for_each_row(boxes, [&](std::size_t at, std::size_t width) {
    all->push_back({static_cast<std::ptrdiff_t>(at), width});
    bytes += width;
  });
  if (bytes / all->size() >= large) return false;
  const auto row = borrow_beside(device, bytes);
  if (row == nullptr) return false;
  const scattered_bytes which{all, bytes, static_cast<std::ptrdiff_t>(bytes)};
  const auto kernels = require_kernels(queue.parts()->context());
  const auto table = kernels->make_table(which);
  const unit_copy between = call_kernels::describe(number_of(row.get()), device, which, table.get(), bytes, to_device);
  const std::unique_ptr<std::byte, std::function<void(std::byte*)>> packed(
      buffers_.borrow(bytes), [&](std::byte* memory) { buffers_.give_back(memory, bytes); });
  std::byte* at = packed.get();
  if (to_device) {
    for (const auto& [offset, width] : *all) at = std::copy_n(host + offset, width, at);
    queue.copy(number_of(row.get()), number_of(packed.get()), bytes);
    kernels->copy_scattered(queue, between, table, bytes);
    queue.wait();
  } else {
    kernels->copy_scattered(queue, between, table, bytes);
    queue.copy(number_of(packed.get()), number_of(row.get()), bytes);
    queue.wait();
    for (const auto& [offset, width] : *all) {
      std::memcpy(host + offset, at, width);
      at += width;
    }
  }
  return true;
}

// Queues one copy between device memory and host memory that the caller borrowed.
device_copy host_calls::begin_copy(CUdeviceptr device, std::byte* host, std::size_t bytes, bool to_device) {
  const auto memory = require(device);
  const CUcontext context = memory.context;
  const auto queue = queue_of(context);
  waits_.for_users_of(memory);
  const own_use work(cu_, queue->stream(), {{device, bytes, to_device}});
  const entered here(cu_, context);
  return {queue, to_device ? queue->copy(device, number_of(host), bytes) : queue->copy(number_of(host), device, bytes)};
}

device_copy host_calls::start_read(std::byte* to, std::uintptr_t from, std::size_t bytes) {
  if (!adopted_.has_touched(from, from + bytes)) return begin_copy(from, to, bytes, false);
  adopted_.read(to, from, bytes);
  return {};
}

device_copy host_calls::start_write(std::uintptr_t to, std::byte* from, std::size_t bytes) {
  if (!adopted_.has_touched(to, to + bytes)) return begin_copy(to, from, bytes, true);
  adopted_.write(to, from, bytes);
  return {};
}

void host_calls::read(void* to, std::uintptr_t from, std::span<const placed_box> boxes) {
  auto* const host = static_cast<std::byte*>(to);
  const used_range all = range_of(from, boxes, false);
  if (!adopted_.has_touched(all.address, all.end())) return copy(from, host, boxes, false);
  for_each_row(boxes, [&](std::size_t at, std::size_t bytes) { adopted_.read(host + at, from + at, bytes); });
}

void host_calls::write(std::uintptr_t to, const void* from, std::span<const placed_box> boxes) {
  const auto* const host = static_cast<const std::byte*>(from);
  const used_range all = range_of(to, boxes, true);
  if (!adopted_.has_touched(all.address, all.end())) return copy(to, const_cast<std::byte*>(host), boxes, true);
  for_each_row(boxes, [&](std::size_t at, std::size_t bytes) { adopted_.write(to + at, host + at, bytes); });
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
  if (!waits_.is_over(queued)) waits_.for_users_of(found->what);
  deferred_.finish_before({address, bytes, use == peer_use::overwrite});
  if (adopted_memory::any()) {
    // The other process overwrites the memory later. If CPU code of this process touched the memory before that, it
    // would fetch the old bytes. So memory that CPU code has touched is not shared for overwriting.
    if (use == peer_use::overwrite && adopted_.has_touched(address, address + bytes)) return std::nullopt;
    const own_use release(cu_, unknown_stream(), {{address, bytes, use == peer_use::overwrite}});
  }
  peer_bytes result{process_, found->number, found->what.base, address - found->what.base, {}, {}};
  static_assert(sizeof result.handle == sizeof found->handle);
  std::memcpy(result.handle.data(), &found->handle, sizeof result.handle);
  static_assert(sizeof result.device == sizeof found->device);
  std::memcpy(result.device.data(), &found->device, sizeof result.device);
  return result;
}

// Called when another process has written the memory: discards the bytes that CPU code has fetched since share(),
// because they are out of date.
void host_calls::overwritten(std::uintptr_t address, std::size_t bytes) {
  if (!adopted_memory::any()) return;
  const own_use release(cu_, unknown_stream(), {{address, bytes, true}}, nullptr,
                        "discarding the host's copy of memory that another process has written");
}

std::optional<host_calls::reached> host_calls::reach(const peer_bytes& which, const call_queue& queue) {
  if (which.process == process_) {
    const CUdeviceptr address = which.base + which.offset;
    const auto found = known_.at(address);
    if (!found || found->context != queue.parts()->context()) return std::nullopt;
    return reached{address, nullptr};
  }
  const auto memory = peers_.open(which, queue.parts());
  if (memory == nullptr) return std::nullopt;
  return reached{memory->base() + which.offset, memory};
}

std::optional<device_copy> host_calls::pull(void* to, const peer_bytes& from, const box_copy& shape,
                                            std::uint64_t queued) {
  const CUdeviceptr target = number_of(to);
  const auto place = may_know(target) ? known_.at(target) : std::nullopt;
  const bool on_device = place.has_value() || adopted_pointers::of(target) != nullptr;
  const auto memory = on_device ? std::optional(place ? *place : require(target)) : std::nullopt;
  const auto queue = memory ? queue_of(memory->context, shape.bytes()) : some_queue();
  if (queue == nullptr) return std::nullopt;
  const auto source = reach(from, *queue);
  if (!source) return std::nullopt;
  if (!waits_.is_over(queued)) memory ? waits_.for_users_of(*memory) : waits_.for_all(queue->parts()->context());
  const entered here(cu_, queue->parts()->context());
  if (!on_device) {
    if (shape.extent.is_one_row())
      if (const auto done = copies_.download(to, source->address, shape.bytes(), queue->stream())) {
        cu_.check(*done, "copying the bytes of a message");
        return device_copy{queue, 0};
      }
    return device_copy{queue, queue->copy_rows(static_cast<std::byte*>(to), source->address, shape, source->mapped)};
  }
  const own_use work(cu_, queue->stream(), {{target, shape.written().span(), true}});
  return device_copy{queue, copy_rows(*queue, target, source->address, shape, source->mapped)};
}

std::optional<device_copy> host_calls::push(const peer_bytes& to, std::uintptr_t from, const box_copy& shape) {
  const auto queue = queue_of(require(from).context);
  const auto target = reach(to, *queue);
  if (!target) return std::nullopt;
  const entered here(cu_, queue->parts()->context());
  return device_copy{queue, copy_rows(*queue, target->address, from, shape, target->mapped)};
}

// Drivers before CUDA 12.4 do not have the attribute MPS_ENABLED; then the result is false.
bool host_calls::takes_turns(std::uintptr_t address) noexcept {
  int ordinal = 0;
  int has_service = 0;
  return cu_.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS &&
         cu_.cuDeviceGetAttribute(&has_service, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, ordinal) == CUDA_SUCCESS &&
         has_service == 0;
}

std::shared_ptr<std::byte> host_calls::borrow_beside(std::uintptr_t address, std::size_t bytes) {
  const auto place = known_.at(address);
  const auto kernels = place && bytes <= scratch_memory::most ? kernels_of(place->context) : nullptr;
  if (kernels == nullptr) return nullptr;
  try {
    return kernels->memory().borrow(bytes);
  } catch (const error& e) {
    log(log_level::info, "messages of MPI that need a buffer in device memory are staged in host memory: {}", e.what());
    return nullptr;
  }
}

device_copy host_calls::copy_scattered(std::uintptr_t address, const scattered_bytes& which, CUdeviceptr contiguous,
                                       bool is_of_program, std::size_t bytes, std::uint64_t queued, bool scatters) {
  const std::ptrdiff_t first = which.element->front().offset;
  // The address itself may be outside of the allocation that contains the bytes.
  const CUdeviceptr at = address + static_cast<std::uintptr_t>(first);
  const auto memory = require(at);
  const auto of_contiguous = is_of_program ? std::optional(require(contiguous)) : std::nullopt;
  const CUcontext context = memory.context;
  const auto kernels = require_kernels(context);
  const auto queue = queue_of(context);
  const auto table = which.is_one_run() ? nullptr : kernels->table_of(which);
  if (!waits_.is_over(queued)) {
    waits_.for_users_of(memory);
    if (of_contiguous) waits_.for_users_of(*of_contiguous);
  }
  const auto last = static_cast<std::ptrdiff_t>((bytes - 1) / which.element_bytes) * which.extent;
  const auto begin = table == nullptr ? first : table->begin + std::min<std::ptrdiff_t>(last, 0);
  const auto end =
      table == nullptr ? first + static_cast<std::ptrdiff_t>(bytes) : table->end + std::max<std::ptrdiff_t>(last, 0);
  const used_range scattered{address + static_cast<std::uintptr_t>(begin), static_cast<std::size_t>(end - begin),
                             scatters};
  const used_range packed{is_of_program ? contiguous : 0, is_of_program ? bytes : 0, !scatters};
  const own_use work(cu_, queue->stream(), {scattered, packed}, is_of_program ? queue.get() : nullptr);
  const entered here(cu_, context);
  if (!is_of_program && table == nullptr)
    return {queue, scatters ? queue->copy(at, contiguous, bytes) : queue->copy(contiguous, at, bytes)};
  const unit_copy what = call_kernels::describe(contiguous, address, which, table.get(), bytes, scatters);
  if (!of_contiguous) return {queue, kernels->copy_scattered(*queue, what, table, bytes)};
  queue->add_later(
      what, {scattered, packed}, bytes, std::const_pointer_cast<call_kernels::table>(table),
      [kernels](std::span<const unit_copy> copies, CUstream stream) { return kernels->copy_several(copies, stream); });
  if (!may_defer_copy(memory, *of_contiguous)) {
    queue->wait();
  } else {
    // Another thread may have queued work before this copy was deferred. While no copy was deferred, another thread may
    // also have begun to queue work without a look for deferred copies. Such work does not wait for this copy.
    const bool is_first = deferred_.add(queue, {scattered, packed});
    if (waits_.queued_now() != 0 || (is_first && queuing_threads::others_queue())) deferred_.finish();
  }
  return {};
}

// Mapped memory may have a second mapping, and the kernels' code contains the addresses of module variables.
bool host_calls::may_defer_copy(const known_allocation& one, const known_allocation& other) noexcept {
  return !call_watch::has(call_watch::kinds | call_watch::observers | call_watch::touched) &&
         deferred_copies::are_allowed() && one.is_allocated && other.is_allocated && waits_.queued_now() == 0;
}

device_copy host_calls::gather(std::byte* to, std::uintptr_t from, const scattered_bytes& which, std::size_t bytes,
                               std::uint64_t queued) {
  return copy_scattered(from, which, number_of(to), false, bytes, queued, false);
}

device_copy host_calls::scatter(std::uintptr_t to, const scattered_bytes& which, const std::byte* from,
                                std::size_t bytes, std::uint64_t queued) {
  return copy_scattered(to, which, number_of(from), false, bytes, queued, true);
}

bool host_calls::are_together(std::uintptr_t one, std::uintptr_t other, std::size_t bytes) {
  const CUcontext context = require(one).context;
  return bytes <= scratch_memory::most && require(other).context == context && kernels_of(context) != nullptr;
}

bool host_calls::pack(std::uintptr_t to, std::uintptr_t from, const scattered_bytes& which, std::size_t bytes) {
  if (!are_together(to, from, bytes)) return false;
  copy_scattered(from, which, to, true, bytes, queued_now(), false);
  return true;
}

bool host_calls::unpack(std::uintptr_t to, const scattered_bytes& which, std::uintptr_t from, std::size_t bytes) {
  if (!are_together(to, from, bytes)) return false;
  copy_scattered(to, which, from, true, bytes, queued_now(), true);
  return true;
}

device_copy host_calls::reduce(std::uintptr_t to, const std::byte* with, std::size_t count,
                               const interpose::reduction& how) {
  const CUcontext context = require(to).context;
  const auto kernels = require_kernels(context);
  const auto queue = queue_of(context);
  const std::size_t bytes = count * how.number_bytes();
  const own_use work(cu_, queue->stream(), {{to, bytes, true}});
  const entered here(cu_, context);
  return {queue, queue->add(bytes, kernels,
                            [&](CUstream stream) { return kernels->reduce(to, number_of(with), count, how, stream); })};
}

}  // namespace hpe::cuda_hooks
