#pragma once

#include <array>
#include <map>

#include "interpose/gpu/adopted/adopted_memory.h"
#include "interpose/gpu/calls/call_copies.h"
#include "interpose/gpu/calls/call_kernels.h"
#include "interpose/gpu/calls/call_waits.h"
#include "interpose/gpu/calls/known_memory.h"
#include "interpose/gpu/calls/peer_memory.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Lets interposed calls of libc and MPI use the program's device memory. If CPU code has touched the memory, these
/// calls access it through adopted_memory, which may have a copy of the data in host memory. hpe copies the data of all
/// other device memory directly from and to the device and keeps no copy in host memory, so the hooks of launches can
/// ignore this memory.
class host_calls final : public interpose::adopted_pointers {
 public:
  host_calls(const device::cuda::driver& cu, contexts& parts, program_contexts& program, pageable_copy& copies,
             adopted_memory& adopted, queued_uses& queued, deferred_copies& deferred, bool by_parameters);

  [[nodiscard]] std::size_t bytes_from(std::uintptr_t address) noexcept override;
  bool copy_on_host(void* to, const void* from, std::size_t bytes) noexcept override {
    return copies_.copy_on_host(to, from, bytes);
  }
  [[nodiscard]] bool touched(std::uintptr_t address) noexcept override;
  void left_to_library(std::uintptr_t address) noexcept override;
  using adopted_pointers::read;
  using adopted_pointers::write;
  void read(void* to, std::uintptr_t from, std::span<const placed_box> boxes) override;
  void write(std::uintptr_t to, const void* from, std::span<const placed_box> boxes) override;
  [[nodiscard]] interpose::device_copy start_read(std::byte* to, std::uintptr_t from, std::size_t bytes) override;
  [[nodiscard]] interpose::device_copy start_write(std::uintptr_t to, std::byte* from, std::size_t bytes) override;
  [[nodiscard]] std::byte* borrow(std::size_t bytes) override;
  void give_back(std::byte* memory, std::size_t bytes) noexcept override { buffers_.give_back(memory, bytes); }

  [[nodiscard]] std::uint64_t queued_now() noexcept override { return messages_wait ? waits_.queued_now() : 0; }
  [[nodiscard]] std::optional<interpose::peer_bytes> share(std::uintptr_t address, std::size_t bytes, peer_use use,
                                                           std::uint64_t queued) override;
  void overwritten(std::uintptr_t address, std::size_t bytes) override;
  [[nodiscard]] std::optional<interpose::device_copy> pull(void* to, const interpose::peer_bytes& from,
                                                           const box_copy& shape, std::uint64_t queued) override;
  [[nodiscard]] std::optional<interpose::device_copy> push(const interpose::peer_bytes& to, std::uintptr_t from,
                                                           const box_copy& shape) override;
  [[nodiscard]] bool takes_turns(std::uintptr_t address) noexcept override;
  [[nodiscard]] std::shared_ptr<std::byte> borrow_beside(std::uintptr_t address, std::size_t bytes) override;
  interpose::device_copy gather(std::byte* to, std::uintptr_t from, const interpose::scattered_bytes& which,
                                std::size_t bytes, std::uint64_t queued) override;
  interpose::device_copy scatter(std::uintptr_t to, const interpose::scattered_bytes& which, const std::byte* from,
                                 std::size_t bytes, std::uint64_t queued) override;
  [[nodiscard]] bool pack(std::uintptr_t to, std::uintptr_t from, const interpose::scattered_bytes& which,
                          std::size_t bytes) override;
  [[nodiscard]] bool unpack(std::uintptr_t to, const interpose::scattered_bytes& which, std::uintptr_t from,
                            std::size_t bytes) override;

  interpose::device_copy reduce(std::uintptr_t to, const std::byte* with, std::size_t count,
                                const interpose::reduction& how) override;

  /// Whether messages between processes wait for the device work that the program has queued. Must be set before the
  /// first call.
  inline static constinit bool messages_wait = true;

  /// To be called when the program frees memory. Removes the memory from the cache of known allocations.
  void forget(CUdeviceptr address, std::size_t bytes) noexcept { known_.forget(address, address + bytes); }
  [[nodiscard]] bool knows_any() const noexcept { return known_.any(); }
  /// To be called before a CUDA context may be destroyed. Discards everything that was recorded for any context.
  void forget_contexts() noexcept;

  /// Whether a libc or MPI call has used an allocation in the 2 MiB granule that contains an address.
  [[nodiscard]] bool knows(CUdeviceptr address) const noexcept { return known_.marks().has(address); }

 protected:
  [[nodiscard]] bool may_know(std::uintptr_t address) const noexcept override {
    return knows(address) || adopted_.marks().has(address);
  }

 private:
  [[nodiscard]] known_allocation require(CUdeviceptr address);
  /// Returns the queue of a context for a copy. `from_peer`: the size in bytes of a copy from another process; 0 for
  /// all other copies. A large copy from another process gets the queue with the fewest unfinished copies, because
  /// several reads from another device can run at the same time.
  [[nodiscard]] std::shared_ptr<call_queue> queue_of(CUcontext context, std::size_t from_peer = 0);
  [[nodiscard]] std::shared_ptr<call_queue> some_queue();
  /// Bytes that a process of this machine has shared. `address` is the address at which the queue's context can access
  /// the bytes. If the bytes belong to another process, `mapped` owns their mapping in this process. reach() returns
  /// nullopt if the queue's context cannot access the bytes.
  struct reached {
    CUdeviceptr address;
    std::shared_ptr<void> mapped;
  };
  [[nodiscard]] std::optional<reached> reach(const interpose::peer_bytes& which, const call_queue& queue);
  /// Returns hpe's kernels, loaded into a context; nullptr if the driver refuses to load them. After a failure, which
  /// hpe logs once, later calls for this context return nullptr at once.
  [[nodiscard]] std::shared_ptr<call_kernels> kernels_of(CUcontext context);
  /// Like kernels_of, but throws if the kernels cannot be loaded.
  [[nodiscard]] std::shared_ptr<call_kernels> require_kernels(CUcontext context);
  /// Queues a copy between two addresses that kernels in the queue's context can access. That context must be current.
  std::uint64_t copy_rows(call_queue& queue, CUdeviceptr to, CUdeviceptr from, const box_copy& shape,
                          std::shared_ptr<void> kept);
  /// Queues a copy of the first `bytes` bytes of scattered data, whose first element is at `address`, to contiguous
  /// memory, or, if `scatters` is true, from contiguous memory. is_of_program: whether the contiguous memory is in an
  /// allocation of the program, and not memory that borrow_beside() has returned; then the copy becomes one of
  /// deferred_copies, or is done when the function returns. The copy runs after the work that `queued` identifies.
  interpose::device_copy copy_scattered(std::uintptr_t address, const interpose::scattered_bytes& which,
                                        CUdeviceptr contiguous, bool is_of_program, std::size_t bytes,
                                        std::uint64_t queued, bool scatters);
  /// Whether a call of the program may return before the copy between these allocations that it has asked for is done:
  /// no work of the program may be running that could use the memory, and hpe must notice all later uses.
  [[nodiscard]] bool may_defer_copy(const known_allocation& one, const known_allocation& other) noexcept;
  /// Whether one kernel can copy `bytes` bytes between the allocations that contain two addresses.
  [[nodiscard]] bool are_together(std::uintptr_t one, std::uintptr_t other, std::size_t bytes);
  void copy(CUdeviceptr device, std::byte* host, std::span<const placed_box> boxes, bool to_device);
  [[nodiscard]] bool copy_together(CUdeviceptr device, std::byte* host, std::span<const placed_box> boxes,
                                   bool to_device, call_queue& queue);
  [[nodiscard]] interpose::device_copy begin_copy(CUdeviceptr device, std::byte* host, std::size_t bytes,
                                                  bool to_device);
  const device::cuda::driver& cu_;
  contexts& parts_;
  program_contexts& program_;
  pageable_copy& copies_;
  adopted_memory& adopted_;
  deferred_copies& deferred_;
  const std::array<std::uint64_t, 2> process_;
  call_waits waits_;
  known_memory known_;
  peer_memory peers_;
  call_buffers buffers_;
  mutex mutex_;
  using context_queues = std::array<std::shared_ptr<call_queue>, 4>;
  std::map<CUcontext, context_queues> queues_ HPE_GUARDED_BY(mutex_);
  std::map<CUcontext, std::shared_ptr<call_kernels>> kernels_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks
