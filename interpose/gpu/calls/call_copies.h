#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/gpu/calls/byte_places.h"
#include "interpose/gpu/work/context_parts.h"
#include "interpose/gpu/work/device_range.h"
#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// A stream of hpe in one context, on which hpe queues the copies for libc and MPI calls. Also records how many of
/// these copies are done. Thread safe.
class call_queue final : public interpose::copy_queue {
 public:
  call_queue(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts);
  ~call_queue() override;

  [[nodiscard]] const std::shared_ptr<context_parts>& parts() const noexcept { return parts_; }
  [[nodiscard]] CUstream stream() const noexcept { return lent_.stream(); }

  /// Queues a copy between any two addresses; the queue's context must be current. The queue owns `kept` until the copy
  /// is done. Returns the number of the copy. Throws hpe::error if the driver refuses.
  std::uint64_t copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, std::shared_ptr<void> kept = nullptr);
  /// Like copy, for a box of rows. To and From are CUdeviceptr for device memory, and pointers for host memory.
  template <class To, class From>
  std::uint64_t copy_rows(To to, From from, const box_copy& given, std::shared_ptr<void> kept = nullptr) {
    const box_copy shape = given.joined();
    if (!has_whole_planes(shape)) {
      std::uint64_t last = 0;
      for_each_plane(shape, [&](const box_copy& part, std::size_t to_offset, std::size_t from_offset) {
        last = copy_rows(to + to_offset, from + from_offset, part, kept);
      });
      return last;
    }
    if (shape.extent.is_one_row()) return copy(number_of(to), number_of(from), shape.bytes(), std::move(kept));
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
  /// Queues a copy of `bytes` bytes by calling queue_it(stream), which must return the driver's result. Returns the
  /// number of the copy. The queue's context must be current.
  template <class Queue>
  std::uint64_t add(std::size_t bytes, const std::shared_ptr<void>& kept, Queue queue_it) {
    const lock_guard lock(mutex_);
    return queue(bytes, kept, [&] { return queue_it(stream()); });
  }
  /// Adds a copy that the driver gets later, together with similar copies: at the latest when another function adds a
  /// copy, or a thread waits for the queue. The copy runs after the copies added before. queue_them(copies,
  /// stream) must queue at most unit_copies::most copies, which may run at the same time, and return the driver's
  /// result; all calls must pass the same function. If the driver refuses the copies, the next wait() throws. The queue
  /// owns `kept` until the copy is done.
  using several = std::function<CUresult(std::span<const unit_copy>, CUstream)>;
  void add_later(const unit_copy& what, const copy_ranges& uses, std::size_t bytes, std::shared_ptr<void> kept,
                 const several& queue_them);
  /// Returns the number of queued copies that are not known to be done.
  [[nodiscard]] std::uint64_t unfinished() {
    const lock_guard lock(mutex_);
    return queued_ - done_;
  }
  [[nodiscard]] bool reached(std::uint64_t number) override;
  void wait() override;

 private:
  // Whether the distance between planes is a whole number of rows, so that one 3D copy of the driver can describe the
  // box.
  [[nodiscard]] static bool has_whole_planes(const box_copy& shape) noexcept;
  // Divides a box that one 3D copy cannot describe into as few boxes of one plane as possible, and calls visit() for
  // each of these boxes.
  template <class Visit>
  static void for_each_plane(box_copy shape, Visit visit) {
    if (shape.extent.rows < shape.extent.planes) {
      std::swap(shape.extent.rows, shape.extent.planes);
      std::swap(shape.to.row, shape.to.plane);
      std::swap(shape.from.row, shape.from.plane);
    }
    box_copy part = shape;
    part.extent.planes = 1;
    for (std::size_t p = 0; p < shape.extent.planes; ++p) visit(part, p * shape.to.plane, p * shape.from.plane);
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

  std::uint64_t copy_described(CUDA_MEMCPY3D& ends, const box_copy& shape, std::shared_ptr<void> kept);
  std::uint64_t copy_planes(CUDA_MEMCPY3D& ends, const box_copy& shape, std::shared_ptr<void> kept);
  void queue_waiting() HPE_REQUIRES(mutex_);
  [[nodiscard]] std::vector<user> users_until_done() noexcept HPE_REQUIRES(mutex_);
  // Queues a copy by call(), which calls the driver. Returns the number of the copy.
  std::uint64_t queue(std::size_t bytes, std::shared_ptr<void> kept, function_ref<CUresult()> call)
      HPE_REQUIRES(mutex_);
  void record() noexcept HPE_REQUIRES(mutex_);
  [[nodiscard]] bool is_over(CUresult result) const;
  void advance(std::uint64_t number) HPE_REQUIRES(mutex_);

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  const lent_stream lent_;
  mutex mutex_;
  std::uint64_t queued_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ HPE_GUARDED_BY(mutex_) = 0;
  std::size_t unmarked_ HPE_GUARDED_BY(mutex_) = 0;    // the number of bytes queued since the last event
  std::deque<mark> marks_ HPE_GUARDED_BY(mutex_);      // events that are recorded after copies not known to be done
  std::vector<CUevent> spare_ HPE_GUARDED_BY(mutex_);  // unused events; the capacity suffices for all events
  std::size_t events_ HPE_GUARDED_BY(mutex_) = 0;
  std::deque<user> users_ HPE_GUARDED_BY(mutex_);
  // Copies of add_later() that the driver does not have yet. They may run at the same time, so none of them uses bytes
  // that another one writes. The vectors have room for unit_copies::most elements.
  struct batch {
    std::vector<unit_copy> copies;
    std::vector<copy_ranges> uses;
    std::vector<std::shared_ptr<void>> kept;
    std::size_t bytes = 0;
    several queue_them;
  };
  std::shared_ptr<batch> waiting_ HPE_GUARDED_BY(mutex_);  // null: none
  std::optional<error> refusal_ HPE_GUARDED_BY(mutex_);    // of copies of add_later(), for the next wait()
};

/// Owns host memory, pinned if possible, for the copies of libc and MPI calls. The memory does not belong to a context:
/// when the context in which it was pinned ends, the memory stays valid as ordinary memory. Thread safe.
class call_buffers {
 public:
  explicit call_buffers(const device::cuda::driver& cu) : cu_(cu) {}

  /// Lends whole pages, which the caller must return by give_back() with the same `bytes`. The pages are pinned if
  /// `bytes` is at most largest_pinned, at most most_pinned bytes are pinned in total, and a context is current. Throws
  /// std::bad_alloc.
  [[nodiscard]] std::byte* borrow(std::size_t bytes);
  void give_back(std::byte* memory, std::size_t bytes) noexcept;

 private:
  static constexpr std::size_t smallest = std::size_t{64} << 10;
  static constexpr std::size_t largest_pinned = std::size_t{4} << 20;
  static constexpr std::size_t most_pinned = std::size_t{64} << 20;  ///< limit of pinned bytes, including lent buffers
  static constexpr std::size_t most_kept = std::size_t{256} << 20;   ///< limit of unused bytes, pinned and not pinned

  const device::cuda::driver& cu_;
  mutex mutex_;
  struct buffers {
    std::vector<std::byte*> free;  // unused buffers, the pinned ones last; the capacity suffices for all buffers
    std::size_t made = 0;
  };
  std::map<std::size_t, buffers> buffers_ HPE_GUARDED_BY(mutex_);  // the key is the size of the buffers
  std::set<std::byte*> pinned_ HPE_GUARDED_BY(mutex_);
  std::size_t kept_ HPE_GUARDED_BY(mutex_) = 0;
  std::size_t pinned_bytes_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::cuda_hooks
