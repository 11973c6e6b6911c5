#pragma once

/// Access of interposed calls of libc and MPI to device memory that a CUDA program got from the driver itself. They
/// use it through buffer_access. In a program into which hpe was preloaded, interpose/cuda implements this
/// interface.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hpe/hpe.h"

namespace hpe::interpose {

/// Names bytes of device memory to other processes of this machine. All members but `offset` are constant for the life
/// of the allocation.
struct peer_bytes {
  std::array<std::uint64_t, 2> process{};  ///< random number of the exporting process
  std::uint64_t allocation = 0;            ///< number of the allocation in that process, never reused
  std::uint64_t base = 0;                  ///< its address in that process
  std::uint64_t offset = 0;                ///< of the first byte, from base
  std::array<std::byte, 64> handle{};      ///< the driver's IPC handle
  std::array<std::byte, 16> device{};      ///< UUID of the device

  friend bool operator==(const peer_bytes&, const peer_bytes&) = default;
};

/// A shape: planes of rows of bytes, with the distances between them on both sides of a copy.
struct copied_rows {
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t planes = 1;
  struct distances {
    std::size_t row = 0;    ///< from one row to the next; any value if there is one row
    std::size_t plane = 0;  ///< from one plane to the next, likewise
  };
  distances to{};
  distances from{};

  [[nodiscard]] bool is_one_run() const noexcept { return rows == 1 && planes == 1; }
  [[nodiscard]] bool has_whole_planes() const noexcept {
    return planes == 1 || (rows != 1 && to.plane % to.row == 0 && from.plane % from.row == 0 &&
                           to.plane >= to.row * rows && from.plane >= from.row * rows);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return width * rows * planes; }
  /// Bytes from the first byte to the end of the last row.
  [[nodiscard]] std::size_t extent(const distances& of) const noexcept {
    return (planes - 1) * of.plane + (rows - 1) * of.row + width;
  }
};

/// Rows at the same offset in a buffer and in the memory that the buffer stands for.
struct copied_piece {
  std::size_t offset = 0;
  copied_rows shape;  ///< its two sides are equal
};

/// Contiguous bytes, at an offset from an address.
struct stretch {
  std::ptrdiff_t offset = 0;
  std::size_t bytes = 0;

  friend bool operator==(const stretch&, const stretch&) = default;
};

/// Elements at equal distances that all consist of the same stretches of bytes.
struct scattered_bytes {
  std::shared_ptr<const std::vector<stretch>> element;  ///< in the order of the data; not empty
  std::size_t element_bytes = 0;
  std::ptrdiff_t extent = 0;  ///< from one element to the next

  [[nodiscard]] bool is_one_run() const noexcept {
    return element->size() == 1 && extent == static_cast<std::ptrdiff_t>(element_bytes);
  }
};

/// An operation on two numbers of one type.
struct reduction {
  enum class operation : std::uint8_t { sum, product, least, greatest };
  enum class number : std::uint8_t { i32, u32, i64, u64, f32, f64 };
  operation what{};
  number type{};

  [[nodiscard]] std::size_t number_bytes() const noexcept {
    return type == number::i32 || type == number::u32 || type == number::f32 ? 4 : 8;
  }
};

/// Copies that devices make one after the other. Thread safe.
class copy_queue {
 public:
  virtual ~copy_queue() = default;
  /// Whether copy `number` and all before it are done. Does not wait. Throws hpe::error if one has failed.
  [[nodiscard]] virtual bool reached(std::uint64_t number) = 0;
  /// Waits for all queued copies, spinning if the program's contexts do. Throws like reached().
  virtual void wait() = 0;
};

/// A copy that devices make in the background.
struct device_copy {
  std::shared_ptr<copy_queue> queue;
  std::uint64_t number = 0;
  /// Without a queue, the copy is done.
  [[nodiscard]] bool done() const { return queue == nullptr || queue->reached(number); }
  void wait() const {
    if (queue != nullptr) queue->wait();
  }
};

/// Thread safe. Functions throw hpe::error unless they are noexcept or say otherwise.
class HPE_API adopted_pointers {
 public:
  virtual ~adopted_pointers() = default;

  /// The bytes from an address on that belong to its allocation; 0 if it is no device memory. Asks the driver.
  [[nodiscard]] virtual std::size_t bytes_from(std::uintptr_t address) noexcept = 0;
  /// Copies bytes of one allocation; waits for all work that the program has queued.
  void read(void* to, std::uintptr_t from, std::size_t bytes) {
    const copied_piece all{0, {.width = bytes}};
    read(to, from, {&all, 1});
  }
  virtual void read(void* to, std::uintptr_t from, std::span<const copied_piece> pieces) = 0;
  /// Writes bytes to device memory; work queued after this call and CPU code see them.
  void write(std::uintptr_t to, const void* from, std::size_t bytes) {
    const copied_piece all{0, {.width = bytes}};
    write(to, from, {&all, 1});
  }
  virtual void write(std::uintptr_t to, const void* from, std::span<const copied_piece> pieces) = 0;

  /// As read() and write() without waiting for the copy, from and to memory of borrow(), which must be left alone until
  /// the copy is done.
  [[nodiscard]] virtual device_copy start_read(std::byte* to, std::uintptr_t from, std::size_t bytes) = 0;
  [[nodiscard]] virtual device_copy start_write(std::uintptr_t to, std::byte* from, std::size_t bytes) = 0;

  /// Borrows host memory that devices copy fast: whole pages. give_back() needs the same number of bytes. Throws
  /// std::bad_alloc.
  [[nodiscard]] virtual std::byte* borrow(std::size_t bytes) = 0;
  virtual void give_back(std::byte* memory, std::size_t bytes) noexcept = 0;

  // ---- messages between processes of one machine

  /// Names the work that the program has queued so far, for share() and pull(); 0 if all of it is done.
  [[nodiscard]] virtual std::uint64_t queued_now() noexcept = 0;
  /// Names bytes of one allocation to other processes, which may then read or overwrite them. Waits until the work that
  /// `queued` names is done. Returns nothing, without waiting, if the driver has no IPC handle for the memory, or if
  /// CPU code uses bytes that are to be overwritten.
  enum class peer_use : std::uint8_t { read, overwrite };
  [[nodiscard]] virtual std::optional<peer_bytes> share(std::uintptr_t address, std::size_t bytes, peer_use use,
                                                        std::uint64_t queued) = 0;
  /// To be called after another process has overwritten shared bytes, or a copy from another process is done. Copies of
  /// the bytes that CPU code has fetched meanwhile become invalid.
  virtual void overwritten(std::uintptr_t address, std::size_t bytes) = 0;
  /// Queues a copy of bytes of another process to memory of any kind, after the work that `queued` names. Returns
  /// nothing if this process cannot access the bytes.
  [[nodiscard]] virtual std::optional<device_copy> pull(void* to, const peer_bytes& from, const copied_rows& shape,
                                                        std::uint64_t queued) = 0;
  /// Begins to copy bytes of one allocation, which were shared, to memory that another process has shared. Empty where
  /// this process cannot reach that.
  [[nodiscard]] virtual std::optional<device_copy> push(const peer_bytes& to, std::uintptr_t from,
                                                        const copied_rows& shape) = 0;

  /// Whether processes take turns on the device of an allocation, because CUDA's multi-process service (MPS) does not
  /// run.
  [[nodiscard]] virtual bool takes_turns(std::uintptr_t address) noexcept = 0;

  // ---- bytes that are not contiguous, or that the driver cannot share

  /// Borrows device memory of hpe on the device of an allocation. Other processes can map it: share() names it. The
  /// last owner must not leave work queued that uses it. Returns nullptr if there is none.
  [[nodiscard]] virtual std::shared_ptr<std::byte> borrow_beside(std::uintptr_t address, std::size_t bytes) = 0;
  /// Queues a copy of the first `bytes` bytes of data of elements, which begin at `from`, to contiguous memory of
  /// borrow_beside(), after the work that `queued` names. scatter() copies the other way.
  virtual device_copy gather(std::byte* to, std::uintptr_t from, const scattered_bytes& which, std::size_t bytes,
                             std::uint64_t queued) = 0;
  virtual device_copy scatter(std::uintptr_t to, const scattered_bytes& which, const std::byte* from, std::size_t bytes,
                              std::uint64_t queued) = 0;

  /// Queues to[i] = to[i] combined with with[i], for `count` numbers at `to` in an allocation, and in memory that
  /// borrow_beside() has lent beside it.
  virtual device_copy reduce(std::uintptr_t to, const std::byte* with, std::size_t count, const reduction& how) = 0;

  /// Whether the process can have adopted memory; if not, no other function needs a call.
  [[nodiscard]] static bool exist() noexcept { return the_instance.load(std::memory_order_relaxed) != nullptr; }
  /// The object of the process, or nullptr.
  [[nodiscard]] static adopted_pointers* instance() noexcept { return the_instance.load(std::memory_order_acquire); }
  /// The object if `address` lies in adopted memory, else nullptr. Costs one load without a CUDA program. With one, a
  /// system call (about 0.1 us) tests whether CPU code can read the address; the driver is asked only if not, or if
  /// may_know(), because the driver's own calls of libc must not lead back into it.
  [[nodiscard]] static adopted_pointers* of(std::uintptr_t address) noexcept {
    return exist() ? find(address) : nullptr;
  }
  [[nodiscard]] static adopted_pointers* of(const void* address) noexcept {
    return of(reinterpret_cast<std::uintptr_t>(address));
  }

 protected:
  /// Registers this object, which must live until the process ends. A child process made by fork has none.
  void start() noexcept;
  /// Whether hpe knows device memory near an address, from calls or touches of CPU code. Safe in signal handlers.
  [[nodiscard]] virtual bool may_know(std::uintptr_t address) const noexcept = 0;

 private:
  static adopted_pointers* find(std::uintptr_t address) noexcept;

  static std::atomic<adopted_pointers*> the_instance;
};

}  // namespace hpe::interpose
