#pragma once

/// Lets interposed calls of libc and MPI access device memory that a CUDA program allocated through the driver
/// ("adopted memory"). The interposed calls use this interface through buffer_access. interpose/gpu implements the
/// interface in programs into which hpe was preloaded.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/box.h"

namespace hpe::interpose {

/// Describes bytes of device memory to other processes of this machine. All members except `offset` stay the same as
/// long as the allocation exists.
struct peer_bytes {
  std::array<std::uint64_t, 2> process{};  ///< a random number that identifies the exporting process
  std::uint64_t allocation = 0;            ///< the number of the allocation in the exporting process; never reused
  std::uint64_t base = 0;                  ///< the address of the allocation in the exporting process
  std::uint64_t offset = 0;                ///< the distance of the first byte from `base`, in bytes
  std::array<std::byte, 64> handle{};      ///< the driver's IPC handle of the allocation
  std::array<std::byte, 16> device{};      ///< the UUID of the device whose memory contains the allocation

  friend bool operator==(const peer_bytes&, const peer_bytes&) = default;
};

/// A run of contiguous bytes at an offset from an address.
struct stretch {
  std::ptrdiff_t offset = 0;
  std::size_t bytes = 0;

  friend bool operator==(const stretch&, const stretch&) = default;
};

/// A sequence of elements at equal distances. All elements consist of the same stretches of bytes.
struct scattered_bytes {
  std::shared_ptr<const std::vector<stretch>> element;  ///< the stretches in the order of the data; not empty
  std::size_t element_bytes = 0;
  std::ptrdiff_t extent = 0;  ///< the distance in bytes from one element to the next

  [[nodiscard]] bool is_one_run() const noexcept {
    return element->size() == 1 && extent == static_cast<std::ptrdiff_t>(element_bytes);
  }
};

/// An operation that combines two numbers of one type.
struct reduction {
  enum class operation : std::uint8_t { sum, product, least, greatest };
  enum class number : std::uint8_t { i32, u32, i64, u64, f32, f64 };
  operation what{};
  number type{};

  [[nodiscard]] std::size_t number_bytes() const noexcept {
    return type == number::i32 || type == number::u32 || type == number::f32 ? 4 : 8;
  }
};

/// A queue of copies, which devices execute one after another. Thread safe.
class copy_queue {
 public:
  virtual ~copy_queue() = default;
  /// Whether copy `number` and all copies before it are done. Does not wait. Throws hpe::error if one of these copies
  /// has failed.
  [[nodiscard]] virtual bool reached(std::uint64_t number) = 0;
  /// Waits for all queued copies; spins if the program's contexts are set to spin. Throws like reached().
  virtual void wait() = 0;
};

/// A copy that a device executes while the calling thread continues.
struct device_copy {
  std::shared_ptr<copy_queue> queue;
  std::uint64_t number = 0;
  /// Whether the copy is done; a copy without a queue is always done.
  [[nodiscard]] bool done() const { return queue == nullptr || queue->reached(number); }
  void wait() const {
    if (queue != nullptr) queue->wait();
  }
};

/// Access to all adopted memory of the process. Thread safe. Functions that are not noexcept throw hpe::error, unless
/// their description names another exception.
class HPE_API adopted_pointers {
 public:
  virtual ~adopted_pointers() = default;

  /// The number of bytes from an address to the end of its allocation; 0 if the address is not device memory, or if
  /// there is too little host memory for the query. Calls the driver.
  [[nodiscard]] virtual std::size_t bytes_from(std::uintptr_t address) noexcept = 0;
  /// Whether CPU code has touched the allocation that contains an address.
  [[nodiscard]] virtual bool touched(std::uintptr_t address) noexcept = 0;
  /// To be called when the MPI library gets memory for an operation that outlives its call, and transfers the memory
  /// itself. If CPU code touches the allocation at any time, hpe warns once that the bytes may be old.
  virtual void left_to_library(std::uintptr_t address) noexcept = 0;
  /// Waits for the device work that the program has queued, and then copies bytes of one allocation to host memory. A
  /// box has the same offset and strides in host memory as in the allocation.
  void read(void* to, std::uintptr_t from, std::size_t bytes) {
    const placed_box all{0, {{bytes}, {}}};
    read(to, from, {&all, 1});
  }
  virtual void read(void* to, std::uintptr_t from, std::span<const placed_box> boxes) = 0;
  /// Writes bytes to device memory. CPU code, and device work that the program queues after this call, see the new
  /// bytes.
  void write(std::uintptr_t to, const void* from, std::size_t bytes) {
    const placed_box all{0, {{bytes}, {}}};
    write(to, from, {&all, 1});
  }
  virtual void write(std::uintptr_t to, const void* from, std::span<const placed_box> boxes) = 0;

  /// Like read() and write(), but return before the copy is done. The host memory must come from borrow() and must not
  /// be used until the copy is done.
  [[nodiscard]] virtual device_copy start_read(std::byte* to, std::uintptr_t from, std::size_t bytes) = 0;
  [[nodiscard]] virtual device_copy start_write(std::uintptr_t to, std::byte* from, std::size_t bytes) = 0;

  /// Lends whole pages of host memory, which are pinned if possible. The caller returns them with give_back(), with the
  /// same number of bytes. Throws std::bad_alloc.
  [[nodiscard]] virtual std::byte* borrow(std::size_t bytes) = 0;
  virtual void give_back(std::byte* memory, std::size_t bytes) noexcept = 0;

  /// Copies bytes between a pinned buffer and other host memory with several threads; the ranges must not overlap.
  /// Returns false, without effect, if neither range is pinned or no such threads run.
  /// Allocates no memory. The caller must not leave the call by a long jump, and must not fork during it.
  static constexpr std::size_t worth_copy_on_host = std::size_t{32} << 20;  // one thread copies fewer bytes as fast
  [[nodiscard]] virtual bool copy_on_host(void* to, const void* from, std::size_t bytes) noexcept = 0;

  // ---- messages between processes of one machine

  /// Returns a number that identifies the device work that the program has queued so far; share(), pull(), gather() and
  /// scatter() wait for this work. Returns 0 if this work is known to be done, or with HPE_MPI_WAITS=off.
  [[nodiscard]] virtual std::uint64_t queued_now() noexcept = 0;
  /// Describes bytes of one allocation to other processes, which may then read or overwrite the bytes. Waits until the
  /// work that `queued` identifies is done. Returns nullopt if the driver has no IPC handle for the memory, or if
  /// another process would overwrite bytes that CPU code has touched.
  enum class peer_use : std::uint8_t { read, overwrite };
  [[nodiscard]] virtual std::optional<peer_bytes> share(std::uintptr_t address, std::size_t bytes, peer_use use,
                                                        std::uint64_t queued) = 0;
  /// To be called when another process has overwritten shared bytes, or when a copy from another process is done.
  /// Invalidates the copies of these bytes in host memory that page faults of CPU code have caused before this call.
  virtual void overwritten(std::uintptr_t address, std::size_t bytes) = 0;
  /// Queues a copy of another process's bytes to memory of any kind. The copy runs after the work that `queued`
  /// identifies. Returns nullopt if this process cannot access the bytes.
  [[nodiscard]] virtual std::optional<device_copy> pull(void* to, const peer_bytes& from, const box_copy& shape,
                                                        std::uint64_t queued) = 0;
  /// Begins to copy bytes of one allocation to memory that another process has shared. Call share() for the bytes at
  /// `from` first. Returns nullopt if this process cannot access that process's memory.
  [[nodiscard]] virtual std::optional<device_copy> push(const peer_bytes& to, std::uintptr_t from,
                                                        const box_copy& shape) = 0;

  /// Whether processes take turns on the device of an allocation, because CUDA's multi-process service (MPS) is not
  /// running.
  [[nodiscard]] virtual bool takes_turns(std::uintptr_t address) noexcept = 0;

  // ---- bytes that are not contiguous, or that the driver cannot share

  /// Lends device memory that hpe allocates on the device of an allocation. Other processes can map this memory,
  /// because share() can describe it. Before the last owner releases the memory, all work that uses it must be done.
  /// Returns nullptr if hpe cannot allocate the memory.
  [[nodiscard]] virtual std::shared_ptr<std::byte> borrow_beside(std::uintptr_t address, std::size_t bytes) = 0;
  /// Queues a copy of the first `bytes` bytes of scattered data to contiguous memory that borrow_beside() has lent. The
  /// first element is at `from`. The copy runs after the work that `queued` identifies. scatter() copies in the
  /// opposite direction.
  virtual device_copy gather(std::byte* to, std::uintptr_t from, const scattered_bytes& which, std::size_t bytes,
                             std::uint64_t queued) = 0;
  virtual device_copy scatter(std::uintptr_t to, const scattered_bytes& which, const std::byte* from, std::size_t bytes,
                              std::uint64_t queued) = 0;

  /// Like gather() and scatter(), but the contiguous bytes are in an allocation of the program. The copy runs after the
  /// work that the program has queued so far. When the functions return, the copy may still run, but then the program
  /// cannot notice this: its later device work, CPU code and the functions of this class wait for the copy. Both return
  /// false, without effect, if the two allocations have different contexts, or if hpe's kernels are not loaded or
  /// cannot copy so many bytes.
  [[nodiscard]] virtual bool pack(std::uintptr_t to, std::uintptr_t from, const scattered_bytes& which,
                                  std::size_t bytes) = 0;
  [[nodiscard]] virtual bool unpack(std::uintptr_t to, const scattered_bytes& which, std::uintptr_t from,
                                    std::size_t bytes) = 0;

  /// Queues a kernel that combines to[i] and with[i] for each of `count` numbers and stores the result in to[i]. `to`
  /// is in an allocation of the program, and `with` in memory that borrow_beside() has lent for that allocation.
  virtual device_copy reduce(std::uintptr_t to, const std::byte* with, std::size_t count, const reduction& how) = 0;

  /// Whether the process can have adopted memory; if not, calls of the other functions are unnecessary.
  [[nodiscard]] static bool exist() noexcept { return the_instance.load(std::memory_order_relaxed) != nullptr; }
  /// Returns the only object of this class in the process; nullptr if start() has not been called.
  [[nodiscard]] static adopted_pointers* instance() noexcept { return the_instance.load(std::memory_order_acquire); }
  /// Returns the object if `address` is in adopted memory; otherwise nullptr. Costs one load in programs that do not
  /// use CUDA. In CUDA programs, a system call (about 0.1 us) tests whether CPU code can read the address, unless an
  /// earlier call has found its page readable. This function asks the driver only if CPU code cannot read the address
  /// or may_know() is true: the driver itself calls libc, and from such a call hpe must not call the driver again.
  [[nodiscard]] static adopted_pointers* of(std::uintptr_t address) noexcept {
    return exist() ? find(address) : nullptr;
  }
  [[nodiscard]] static adopted_pointers* of(const void* address) noexcept {
    return of(reinterpret_cast<std::uintptr_t>(address));
  }
  /// To be called before a call of the driver passes the program the address of device memory, which may be an address
  /// at which of() has found ordinary memory.
  static void program_gets_memory() noexcept;

 protected:
  /// Makes instance() return this object, which must exist until the process ends. In child processes made by fork,
  /// instance() returns nullptr.
  void start() noexcept;
  /// Whether hpe has a record of device memory near an address, because CPU code or a call of libc or MPI has used that
  /// memory. May be called in signal handlers.
  [[nodiscard]] virtual bool may_know(std::uintptr_t address) const noexcept = 0;

 private:
  static adopted_pointers* find(std::uintptr_t address) noexcept;

  static std::atomic<adopted_pointers*> the_instance;
};

}  // namespace hpe::interpose
