#pragma once

/// Device memory that a CUDA program got from the driver itself, as interposed calls of libc and MPI get at it. They do
/// so through buffer_access; here is what stands behind that in a program which hpe was preloaded into
/// (interpose/cuda).

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hpe/hpe.h"

namespace hpe::interpose {

/// Any thread. What throws, throws hpe::error.
class HPE_API adopted_pointers {
 public:
  virtual ~adopted_pointers() = default;

  /// How many bytes from an address on belong to its allocation, 0 if it is no device memory. Asks the driver.
  [[nodiscard]] virtual std::size_t bytes_from(std::uintptr_t address) noexcept = 0;
  /// Copies bytes of one allocation as they are after all work that the program has queued.
  virtual void read(void* to, std::uintptr_t from, std::size_t bytes) = 0;
  /// Puts bytes in place, so that work queued from now on and CPU code see them.
  virtual void write(std::uintptr_t to, const void* from, std::size_t bytes) = 0;

  /// Whether there can be such memory; if not, nothing else has to be asked.
  [[nodiscard]] static bool exist() noexcept { return the_instance.load(std::memory_order_relaxed) != nullptr; }
  /// nullptr unless `address` is in such memory. Ordinary memory costs a load where there is no CUDA program, else a
  /// look at the address by the kernel (about 0.1 us): the driver is asked only of what CPU code cannot read, or has
  /// used as device memory before. For the driver's own calls of libc must not lead back into it.
  [[nodiscard]] static adopted_pointers* of(std::uintptr_t address) noexcept {
    return exist() ? find(address) : nullptr;
  }
  [[nodiscard]] static adopted_pointers* of(const void* address) noexcept {
    return of(reinterpret_cast<std::uintptr_t>(address));
  }

 protected:
  /// From now on the object, which lives to the end of the process, is asked. Not by children made by fork.
  void start() noexcept;
  /// Whether CPU code may have used memory near an address as device memory. Safe in signal handlers.
  [[nodiscard]] virtual bool may_know(std::uintptr_t address) const noexcept = 0;

 private:
  static adopted_pointers* find(std::uintptr_t address) noexcept;

  static std::atomic<adopted_pointers*> the_instance;
};

}  // namespace hpe::interpose
