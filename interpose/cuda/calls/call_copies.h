#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/cuda/work/context_parts.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// A stream of a context for the copies of libc and MPI calls, and the number of copies done. Thread safe.
class call_queue final : public interpose::copy_queue {
 public:
  call_queue(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts);
  ~call_queue() override;

  [[nodiscard]] const std::shared_ptr<context_parts>& parts() const noexcept { return parts_; }
  [[nodiscard]] CUstream stream() const noexcept { return lent_.stream(); }

  /// Queues a copy between any two addresses; the context must be current. `kept` lives until the copy is done. Returns
  /// the copy's number. Throws hpe::error if the driver refuses.
  std::uint64_t copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, std::shared_ptr<void> kept = nullptr);
  /// Queues a copy of rows in device memory (CUdeviceptr) or host memory (pointers), under the rules of copy.
  template <class To, class From>
  std::uint64_t copy_rows(To to, From from, const interpose::copied_rows& shape, std::shared_ptr<void> kept = nullptr) {
    if (!shape.has_whole_planes()) {
      std::uint64_t last = 0;
      for_each_plane(shape, [&](const interpose::copied_rows& part, std::size_t to_offset, std::size_t from_offset) {
        last = copy_rows(to + to_offset, from + from_offset, part, kept);
      });
      return last;
    }
    if (shape.is_one_run()) return copy(number_of(to), number_of(from), shape.bytes(), std::move(kept));
    CUDA_MEMCPY3D described{};
    if constexpr (std::is_pointer_v<To>) {
      described.dstMemoryType = CU_MEMORYTYPE_HOST;
      described.dstHost = to;
    } else {
      described.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      described.dstDevice = to;
    }
    if constexpr (std::is_pointer_v<From>) {
      described.srcMemoryType = CU_MEMORYTYPE_HOST;
      described.srcHost = from;
    } else {
      described.srcMemoryType = CU_MEMORYTYPE_DEVICE;
      described.srcDevice = from;
    }
    return copy_described(described, shape, std::move(kept));
  }
  /// Queues a copy by queue_it(stream), which returns the driver's result. The context must be current.
  template <class Queue>
  std::uint64_t add(std::size_t bytes, const std::shared_ptr<void>& kept, Queue queue_it) {
    const lock_guard lock(mutex_);
    return queued(queue_it(stream()), bytes, kept);
  }
  /// How many copies have been queued and are not known to be done.
  [[nodiscard]] std::uint64_t unfinished() {
    const lock_guard lock(mutex_);
    return queued_ - done_;
  }
  [[nodiscard]] bool reached(std::uint64_t number) override;
  void wait() override;

 private:
  // For planes that one 3D copy cannot describe: visits as few parts as possible, each with one plane.
  template <class Visit>
  static void for_each_plane(interpose::copied_rows shape, Visit visit) {
    if (shape.rows < shape.planes) {
      std::swap(shape.rows, shape.planes);
      std::swap(shape.to.row, shape.to.plane);
      std::swap(shape.from.row, shape.from.plane);
    }
    interpose::copied_rows part = shape;
    part.planes = 1;
    for (std::size_t p = 0; p < shape.planes; ++p) visit(part, p * shape.to.plane, p * shape.from.plane);
  }
  static CUdeviceptr number_of(CUdeviceptr address) noexcept { return address; }
  static CUdeviceptr number_of(const void* address) noexcept { return reinterpret_cast<CUdeviceptr>(address); }

  struct mark {
    std::uint64_t number;
    CUevent event;
  };
  struct user {
    std::uint64_t number;
    std::shared_ptr<void> kept;
  };

  std::uint64_t copy_described(CUDA_MEMCPY3D& ends, const interpose::copied_rows& shape, std::shared_ptr<void> kept);
  std::uint64_t copy_planes(CUDA_MEMCPY3D& ends, const interpose::copied_rows& shape, std::shared_ptr<void> kept);
  std::uint64_t queued(CUresult result, std::size_t bytes, std::shared_ptr<void> kept) HPE_REQUIRES(mutex_);
  void record() HPE_REQUIRES(mutex_);
  [[nodiscard]] bool is_over(CUresult result) const;
  void advance(std::uint64_t number) HPE_REQUIRES(mutex_);

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  const lent_stream lent_;
  mutex mutex_;
  std::uint64_t queued_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ HPE_GUARDED_BY(mutex_) = 0;
  std::size_t unmarked_ HPE_GUARDED_BY(mutex_) = 0;  // bytes queued since the last event
  std::deque<mark> marks_ HPE_GUARDED_BY(mutex_);    // events behind some of the unfinished copies
  std::vector<CUevent> spare_ HPE_GUARDED_BY(mutex_);
  std::deque<user> users_ HPE_GUARDED_BY(mutex_);
};

/// Pinned host memory for the copies of libc and MPI calls. The memory belongs to the process: it stays valid, as
/// ordinary memory, when the context ends in which it was pinned. Thread safe.
class call_buffers {
 public:
  explicit call_buffers(const device::cuda::driver& cu) : cu_(cu) {}

  /// Returns whole pages, pinned if they are few and a context is current. Throws std::bad_alloc.
  [[nodiscard]] std::byte* borrow(std::size_t bytes);
  void give_back(std::byte* memory, std::size_t bytes) noexcept;

 private:
  static constexpr std::size_t smallest = std::size_t{64} << 10;
  static constexpr std::size_t largest_pinned = std::size_t{4} << 20;
  static constexpr std::size_t most_pinned = std::size_t{64} << 20;  ///< bytes, including lent buffers
  static constexpr std::size_t most_kept = std::size_t{256} << 20;   ///< bytes, including pinned buffers

  const device::cuda::driver& cu_;
  mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_ HPE_GUARDED_BY(mutex_);  // by size; pinned buffers last
  std::set<std::byte*> pinned_ HPE_GUARDED_BY(mutex_);
  std::size_t kept_ HPE_GUARDED_BY(mutex_) = 0;
  std::size_t pinned_bytes_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::cuda_hooks
