#pragma once

/// Device memory that a CUDA program got from the driver itself, as interposed calls of libc and MPI get at it. They do
/// so through buffer_access; here is what stands behind that in a program which hpe was preloaded into
/// (interpose/cuda).

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

/// Names bytes of device memory to other processes of this machine. Constant for the life of the allocation, but for
/// `offset`.
struct peer_bytes {
  std::array<std::uint64_t, 2> process{};  ///< random
  std::uint64_t allocation = 0;            ///< of the process: no other one ever has the number
  std::uint64_t base = 0;                  ///< its address there
  std::uint64_t offset = 0;                ///< of the first byte
  std::array<std::byte, 64> handle{};      ///< the driver's
  std::array<std::byte, 16> device{};      ///< its UUID
};

/// Rows of bytes, and planes of such rows, at equal distances on either side.
struct copied_rows {
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t planes = 1;
  struct distances {
    std::size_t row = 0;    ///< from one to the next; any if there is one
    std::size_t plane = 0;  ///< likewise
  };
  distances to{};
  distances from{};

  [[nodiscard]] bool is_one_run() const noexcept { return rows == 1 && planes == 1; }
  [[nodiscard]] bool has_whole_planes() const noexcept {
    return planes == 1 || (rows != 1 && to.plane % to.row == 0 && from.plane % from.row == 0 &&
                           to.plane >= to.row * rows && from.plane >= from.row * rows);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return width * rows * planes; }
  /// From the first byte to behind the last one.
  [[nodiscard]] std::size_t extent(const distances& of) const noexcept {
    return (planes - 1) * of.plane + (rows - 1) * of.row + width;
  }
};

/// Rows at the same place in a buffer and in what stands for it.
struct copied_piece {
  std::size_t offset = 0;
  copied_rows shape;  ///< both sides alike
};

/// Bytes that lie together.
struct stretch {
  std::ptrdiff_t offset = 0;
  std::size_t bytes = 0;

  friend bool operator==(const stretch&, const stretch&) = default;
};

/// Elements at equal distances, all of the same stretches.
struct scattered_bytes {
  std::shared_ptr<const std::vector<stretch>> element;  ///< in the order of the data; not empty
  std::size_t element_bytes = 0;
  std::ptrdiff_t extent = 0;  ///< from one element to the next
};

/// Copies that devices make one after the other. Any thread.
class copy_queue {
 public:
  virtual ~copy_queue() = default;
  /// Whether the copy with a number, and all before it, are done. Does not wait. Throws hpe::error if one has failed.
  [[nodiscard]] virtual bool reached(std::uint64_t number) = 0;
  /// Waits for all copies that are queued, awake where the program's contexts wait awake. Throws likewise.
  virtual void wait() = 0;
};

/// A copy that devices make in the background.
struct device_copy {
  std::shared_ptr<copy_queue> queue;
  std::uint64_t number = 0;
  [[nodiscard]] bool done() const { return queue->reached(number); }
  void wait() const { queue->wait(); }
};

/// Any thread. What throws, throws hpe::error.
class HPE_API adopted_pointers {
 public:
  virtual ~adopted_pointers() = default;

  /// How many bytes from an address on belong to its allocation, 0 if it is no device memory. Asks the driver.
  [[nodiscard]] virtual std::size_t bytes_from(std::uintptr_t address) noexcept = 0;
  /// Copies bytes of one allocation as they are after all work that the program has queued.
  void read(void* to, std::uintptr_t from, std::size_t bytes) {
    const copied_piece all{0, {.width = bytes}};
    read(to, from, {&all, 1});
  }
  virtual void read(void* to, std::uintptr_t from, std::span<const copied_piece> pieces) = 0;
  /// Puts bytes in place, so that work queued from now on and CPU code see them.
  void write(std::uintptr_t to, const void* from, std::size_t bytes) {
    const copied_piece all{0, {.width = bytes}};
    write(to, from, {&all, 1});
  }
  virtual void write(std::uintptr_t to, const void* from, std::span<const copied_piece> pieces) = 0;

  /// Memory of the host that devices copy fast: whole pages, to be given back with the same number of bytes. Throws
  /// std::bad_alloc.
  [[nodiscard]] virtual std::byte* borrow(std::size_t bytes) = 0;
  virtual void give_back(std::byte* memory, std::size_t bytes) noexcept = 0;

  // ---- messages between processes of one machine

  /// Stands for the work that the program has queued so far; 0: it is all done.
  [[nodiscard]] virtual std::uint64_t queued_now() noexcept = 0;
  /// Names bytes of one allocation to other processes, which may read or overwrite them as they are after the work that
  /// `queued` stands for; waits for that. Empty where the driver has no handle for the memory, and nothing is waited
  /// for then; also where bytes are to be overwritten that CPU code has in its hands.
  enum class peer_use : std::uint8_t { read, overwrite };
  [[nodiscard]] virtual std::optional<peer_bytes> share(std::uintptr_t address, std::size_t bytes, peer_use use,
                                                        std::uint64_t queued) = 0;
  /// That, or a copy from another process, is done: what CPU code has fetched meanwhile is old.
  virtual void overwritten(std::uintptr_t address, std::size_t bytes) = 0;
  /// Begins to copy bytes of another process to memory of any kind, behind the work that `queued` stands for. They are
  /// there when the copy is done. Empty where this process cannot reach them.
  [[nodiscard]] virtual std::optional<device_copy> pull(void* to, const peer_bytes& from, const copied_rows& shape,
                                                        std::uint64_t queued) = 0;
  /// Begins to copy bytes of one allocation, which were shared, to memory that another process has shared. Empty where
  /// this process cannot reach that.
  [[nodiscard]] virtual std::optional<device_copy> push(const peer_bytes& to, std::uintptr_t from,
                                                        const copied_rows& shape) = 0;

  /// Device memory of hpe's own, to be shared like an allocation of the program, in whose context it is. Empty where
  /// there is none.
  [[nodiscard]] virtual std::shared_ptr<std::byte> borrow_beside(std::uintptr_t address, std::size_t bytes) = 0;
  /// Begins to copy the first `bytes` bytes of data to a row of such memory, or from there, behind the work that
  /// `queued` stands for.
  virtual device_copy gather(std::byte* to, std::uintptr_t from, const scattered_bytes& which, std::size_t bytes,
                             std::uint64_t queued) = 0;
  virtual device_copy scatter(std::uintptr_t to, const scattered_bytes& which, const std::byte* from, std::size_t bytes,
                              std::uint64_t queued) = 0;

  /// Whether there can be such memory; if not, nothing else has to be asked.
  [[nodiscard]] static bool exist() noexcept { return the_instance.load(std::memory_order_relaxed) != nullptr; }
  /// nullptr if not.
  [[nodiscard]] static adopted_pointers* instance() noexcept { return the_instance.load(std::memory_order_acquire); }
  /// nullptr unless `address` is in such memory. Ordinary memory costs a load where there is no CUDA program, else a
  /// look at the address by the kernel (about 0.1 us): the driver is asked only of what CPU code cannot read, or is
  /// known to be device memory. For the driver's own calls of libc must not lead back into it.
  [[nodiscard]] static adopted_pointers* of(std::uintptr_t address) noexcept {
    return exist() ? find(address) : nullptr;
  }
  [[nodiscard]] static adopted_pointers* of(const void* address) noexcept {
    return of(reinterpret_cast<std::uintptr_t>(address));
  }

 protected:
  /// From now on the object, which lives to the end of the process, is asked. Not by children made by fork.
  void start() noexcept;
  /// Whether calls may have used memory near an address as device memory, or CPU code has. Safe in signal handlers.
  [[nodiscard]] virtual bool may_know(std::uintptr_t address) const noexcept = 0;

 private:
  static adopted_pointers* find(std::uintptr_t address) noexcept;

  static std::atomic<adopted_pointers*> the_instance;
};

}  // namespace hpe::interpose
