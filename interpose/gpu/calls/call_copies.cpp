#include "interpose/gpu/calls/call_copies.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

// hpe records an event after this number of copies, or after about this number of bytes. The event shows when the
// copies before it are done. hpe does not record an event after each copy, because recording an event takes as long as
// queuing a copy. A single copy needs no event, because cuStreamQuery shows whether it is done.
constexpr std::uint64_t copies_of_a_mark = 8;
constexpr std::size_t bytes_of_a_mark = std::size_t{4} << 20;

}  // namespace

// ---- copies -------------------------------------------------------------------------------------------------------

call_queue::call_queue(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts)
    : cu_(cu), parts_(std::move(parts)), lent_(*parts_) {}

call_queue::~call_queue() {
  const entered here(cu_, parts_->context());
  if (!parts_->alive()) return;
  cu_.cuStreamSynchronize(stream());
  for (const mark& m : marks_) cu_.cuEventDestroy(m.event);
  for (const CUevent e : spare_) cu_.cuEventDestroy(e);
}

void call_queue::add_later(const unit_copy& what, const copy_ranges& uses, std::size_t bytes,
                           std::shared_ptr<void> kept, const several& queue_them) {
  constexpr std::size_t worth_a_launch = std::size_t{64} << 10;
  const auto conflicts = [&](const copy_ranges& earlier) {
    return conflict(earlier, uses[0]) || conflict(earlier, uses[1]);
  };
  const lock_guard lock(mutex_);
  if (waiting_ != nullptr &&
      (waiting_->copies.size() == unit_copies::most || std::ranges::any_of(waiting_->uses, conflicts)))
    queue_waiting();
  if (waiting_ == nullptr) {
    auto made = std::make_shared<batch>();
    made->copies.reserve(unit_copies::most);
    made->uses.reserve(unit_copies::most);
    made->kept.reserve(unit_copies::most);
    made->queue_them = queue_them;
    waiting_ = std::move(made);
  }
  waiting_->copies.push_back(what);
  waiting_->uses.push_back(uses);
  waiting_->kept.push_back(std::move(kept));
  waiting_->bytes += bytes;
  if (waiting_->copies.size() == unit_copies::most || waiting_->bytes >= worth_a_launch) try {
      queue_waiting();
    } catch (const std::bad_alloc&) {  // the copies stay in waiting_
    }
}

// If host memory is too short, the copies stay in waiting_.
void call_queue::queue_waiting() {
  const std::shared_ptr<batch> all = std::exchange(waiting_, nullptr);
  if (all == nullptr) return;
  try {
    const entered here(cu_, parts_->context());
    queue(all->bytes, all, [&] { return all->queue_them(all->copies, stream()); });
  } catch (const std::bad_alloc&) {
    waiting_ = all;
    throw;
  } catch (const error& e) {
    refusal_ = e;
  }
}

// The caller of queue(), record() and advance() holds mutex_. No code after the driver's call may throw, because the
// copy is queued by then.
std::uint64_t call_queue::queue(std::size_t bytes, std::shared_ptr<void> kept, function_ref<CUresult()> call) {
  queue_waiting();
  const bool is_kept = kept != nullptr;
  if (is_kept) users_.push_back({queued_ + 1, std::move(kept)});
  if (const CUresult result = call(); result != CUDA_SUCCESS) {
    if (is_kept) users_.pop_back();
    cu_.fail(result, "copying the data of an I/O or MPI call");
  }
  const bool several = done_ < queued_;
  ++queued_;
  unmarked_ += bytes;
  const std::uint64_t marked = marks_.empty() ? done_ : marks_.back().number;
  if (several && (queued_ - marked >= copies_of_a_mark || unmarked_ >= bytes_of_a_mark)) record();
  return queued_;
}

// If the driver cannot record an event, an event after later copies, or the state of the stream, shows when these
// copies are done.
void call_queue::record() noexcept {
  try {
    if (spare_.empty()) {
      spare_.reserve(++events_);
      CUevent made = nullptr;
      if (cu_.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
      spare_.push_back(made);
    }
    marks_.push_back({queued_, spare_.back()});
  } catch (const std::bad_alloc&) {
    return;
  }
  if (cu_.cuEventRecord(spare_.back(), stream()) != CUDA_SUCCESS) return marks_.pop_back();
  spare_.pop_back();
  unmarked_ = 0;
}

std::uint64_t call_queue::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, std::shared_ptr<void> kept) {
  const lock_guard lock(mutex_);
  return queue(bytes, std::move(kept), [&] { return cu_.cuMemcpyAsync(to, from, bytes, stream()); });
}

bool call_queue::has_whole_planes(const box_copy& shape) noexcept {
  const auto are_whole = [&](const box_strides& s) {
    return s.row != 0 && s.plane % s.row == 0 && s.plane >= s.row * shape.extent.rows;
  };
  return shape.extent.planes == 1 || (are_whole(shape.to) && are_whole(shape.from));
}

// If there are few planes, copies each plane by a call of cuMemcpy2D, which the driver handles faster than cuMemcpy3D.
std::uint64_t call_queue::copy_described(CUDA_MEMCPY3D& ends, const box_copy& shape, std::shared_ptr<void> kept) {
  constexpr std::size_t few_planes = 64;
  if (shape.extent.planes > few_planes) return copy_planes(ends, shape, std::move(kept));
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = ends.srcMemoryType;
  rows.srcPitch = shape.from.row;
  rows.dstMemoryType = ends.dstMemoryType;
  rows.dstPitch = shape.to.row;
  rows.WidthInBytes = shape.extent.width;
  rows.Height = shape.extent.rows;
  const lock_guard lock(mutex_);
  for (std::size_t p = 0; p < shape.extent.planes; ++p) {
    rows.srcDevice = ends.srcDevice + p * shape.from.plane;
    rows.srcHost = static_cast<const std::byte*>(ends.srcHost) + p * shape.from.plane;
    rows.dstDevice = ends.dstDevice + p * shape.to.plane;
    rows.dstHost = static_cast<std::byte*>(ends.dstHost) + p * shape.to.plane;
    queue(shape.extent.width * shape.extent.rows, kept, [&] { return cu_.cuMemcpy2DAsync(&rows, stream()); });
  }
  return queued_;
}

std::uint64_t call_queue::copy_planes(CUDA_MEMCPY3D& ends, const box_copy& shape, std::shared_ptr<void> kept) {
  ends.srcPitch = shape.from.row;
  ends.srcHeight = shape.from.plane / shape.from.row;
  ends.dstPitch = shape.to.row;
  ends.dstHeight = shape.to.plane / shape.to.row;
  ends.WidthInBytes = shape.extent.width;
  ends.Height = shape.extent.rows;
  ends.Depth = shape.extent.planes;
  const lock_guard lock(mutex_);
  return queue(shape.bytes(), std::move(kept), [&] { return cu_.cuMemcpy3DAsync(&ends, stream()); });
}

bool call_queue::is_over(CUresult result) const {
  if (result == CUDA_ERROR_NOT_READY) return false;
  cu_.check(result, "copying the data of an I/O or MPI call");
  return true;
}

void call_queue::advance(std::uint64_t number) {
  const entered here(cu_, parts_->context());
  while (!marks_.empty() && is_over(cu_.cuEventQuery(marks_.front().event))) {
    done_ = marks_.front().number;
    spare_.push_back(marks_.front().event);
    marks_.pop_front();
  }
  const bool behind_marks = marks_.empty() || marks_.back().number < number;
  if (done_ >= number || !behind_marks || !is_over(cu_.cuStreamQuery(stream()))) return;
  done_ = queued_;
  for (const mark& m : marks_) spare_.push_back(m.event);
  marks_.clear();
}

bool call_queue::reached(std::uint64_t number) {
  std::vector<user> over;  // destroyed after the mutex is unlocked
  const lock_guard lock(mutex_);
  if (done_ < number) advance(number);
  over = users_until_done();
  return done_ >= number;
}

// Removes the memory of copies that are done from users_, and returns it. If host memory is too short, leaves some of
// it for the next call.
std::vector<call_queue::user> call_queue::users_until_done() noexcept {
  std::vector<user> over;
  try {
    for (; !users_.empty() && users_.front().number <= done_; users_.pop_front())
      over.push_back(std::move(users_.front()));
  } catch (const std::bad_alloc&) {
  }
  return over;
}

void call_queue::wait() {
  std::uint64_t all = 0;
  {
    const lock_guard lock(mutex_);
    queue_waiting();
    all = queued_;
  }
  const entered here(cu_, parts_->context());
  cu_.check(cu_.cuStreamSynchronize(stream()), "copying the data of an I/O or MPI call");
  std::vector<user> over;  // destroyed after the mutex is unlocked
  const lock_guard lock(mutex_);
  done_ = std::max(done_, all);
  over = users_until_done();
  while (!marks_.empty() && marks_.front().number <= done_) {
    spare_.push_back(marks_.front().event);
    marks_.pop_front();
  }
  if (const auto refusal = std::exchange(refusal_, std::nullopt)) throw error(*refusal);
}

// ---- buffers ------------------------------------------------------------------------------------------------------

std::byte* call_buffers::borrow(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, smallest));
  bool pin = false;
  {
    const lock_guard lock(mutex_);
    buffers& of_size = buffers_[size];
    if (!of_size.free.empty()) {
      std::byte* const found = of_size.free.back();
      of_size.free.pop_back();
      kept_ -= size;
      return found;
    }
    of_size.free.reserve(of_size.made + 1);  // so that give_back() never has to allocate
    ++of_size.made;
    pin = size <= largest_pinned && pinned_bytes_ + size <= most_pinned;
    if (pin) pinned_bytes_ += size;
  }
  void* const made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  auto* const memory = static_cast<std::byte*>(made);
  try {
    if (made == MAP_FAILED) throw std::bad_alloc();
    const lock_guard lock(mutex_);
    if (pin) pinned_.insert(memory);
  } catch (const std::bad_alloc&) {
    if (made != MAP_FAILED) ::munmap(made, size);
    const lock_guard lock(mutex_);
    --buffers_.at(size).made;
    if (pin) pinned_bytes_ -= size;
    throw;
  }
  // If pinning fails, the driver copies from and to the pageable memory, more slowly.
  if (pin) cu_.cuMemHostRegister(made, size, CU_MEMHOSTREGISTER_PORTABLE);
  return memory;
}

void call_buffers::give_back(std::byte* memory, std::size_t bytes) noexcept {
  const std::size_t size = std::bit_ceil(std::max(bytes, smallest));
  const lock_guard lock(mutex_);
  const bool pinned = pinned_.contains(memory);
  buffers& of_size = buffers_.at(size);
  if (!pinned && kept_ + size > most_kept) {
    --of_size.made;
    ::munmap(memory, size);
    return;
  }
  auto& free = of_size.free;
  free.insert(pinned ? free.end() : free.begin(), memory);
  kept_ += size;
}

}  // namespace hpe::cuda_hooks
