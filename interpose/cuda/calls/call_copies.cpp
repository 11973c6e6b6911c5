#include "interpose/cuda/calls/call_copies.h"

#include <sys/mman.h>

#include <bit>
#include <new>

namespace hpe::cuda_hooks {

using device::cuda::entered;

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

std::uint64_t call_queue::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, std::shared_ptr<void> kept) {
  const std::lock_guard lock(mutex_);
  cu_.check(cu_.cuMemcpyAsync(to, from, bytes, stream()), "copying the bytes of a call");
  ++queued_;
  if (kept != nullptr) users_.push_back({queued_, std::move(kept)});
  return queued_;
}

bool call_queue::is_over(CUresult result) const {
  if (result == CUDA_ERROR_NOT_READY) return false;
  cu_.check(result, "copying the bytes of a call");
  return true;
}

// An event costs as much as a copy's launch, so one stands for all copies since the last.
void call_queue::advance() {
  const entered here(cu_, parts_->context());
  if (is_over(cu_.cuStreamQuery(stream()))) {
    done_ = queued_;
    for (const mark& m : marks_) spare_.push_back(m.event);
    marks_.clear();
    return;
  }
  while (!marks_.empty() && is_over(cu_.cuEventQuery(marks_.front().event))) {
    done_ = marks_.front().number;
    spare_.push_back(marks_.front().event);
    marks_.pop_front();
  }
  if (!marks_.empty() && marks_.back().number == queued_) return;
  if (spare_.empty()) {
    CUevent made = nullptr;
    cu_.check(cu_.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), "creating an event");
    spare_.push_back(made);
  }
  cu_.check(cu_.cuEventRecord(spare_.back(), stream()), "recording an event");
  marks_.push_back({queued_, spare_.back()});
  spare_.pop_back();
}

bool call_queue::reached(std::uint64_t number) {
  std::deque<user> over;  // let go of after the lock
  const std::lock_guard lock(mutex_);
  if (done_ < number) advance();
  while (!users_.empty() && users_.front().number <= done_) {
    over.push_back(std::move(users_.front()));
    users_.pop_front();
  }
  return done_ >= number;
}

void call_queue::wait() {
  const entered here(cu_, parts_->context());
  cu_.check(cu_.cuStreamSynchronize(stream()), "copying the bytes of a call");
}

// ---- buffers ------------------------------------------------------------------------------------------------------

std::byte* call_buffers::borrow(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, smallest));
  if (size <= largest) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[size];
    if (!free.empty()) {
      std::byte* const found = free.back();
      free.pop_back();
      kept_ -= size;
      return found;
    }
  }
  const std::size_t mapped = size <= largest ? size : bytes;
  void* const made = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) throw std::bad_alloc();
  // Where it cannot be pinned the driver copies it all the same.
  if (size <= largest) cu_.cuMemHostRegister(made, size, CU_MEMHOSTREGISTER_PORTABLE);
  return static_cast<std::byte*>(made);
}

void call_buffers::give_back(std::byte* memory, std::size_t bytes) noexcept {
  const std::size_t size = std::bit_ceil(std::max(bytes, smallest));
  if (size <= largest) {
    const std::lock_guard lock(mutex_);
    if (kept_ + size <= kept_bytes) {
      free_[size].push_back(memory);
      kept_ += size;
      return;
    }
    cu_.cuMemHostUnregister(memory);
  }
  ::munmap(memory, size <= largest ? size : bytes);
}

}  // namespace hpe::cuda_hooks
