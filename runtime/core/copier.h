#pragma once

#include "runtime/core/allocator.h"
#include "runtime/core/device_work.h"

namespace hpe::core {

/// hpeMemcpy, hpeMemset and hpePrefetch: finds out where the bytes are good and has the transfer engine move them.
/// Any thread.
class copier {
 public:
  copier(const environment& env, allocator& memory) : env_(env), memory_(memory) {}

  void copy(void* destination, const void* source, std::size_t bytes);
  void fill(void* destination, std::uint8_t value, std::size_t bytes);

  /// The same when the program itself asks for it: after work that it has announced.
  void copy_for_program(void* destination, const void* source, std::size_t bytes);
  void fill_for_program(void* destination, std::uint8_t value, std::size_t bytes);
  /// Waits for such work before the program reads or writes a range, which may be ordinary memory.
  void wait_for_announced(const void* p, std::size_t bytes, bool write) const;

  /// where is a device, or HPE_HOST. bytes 0: to the end of the allocation.
  void prefetch(const void* p, std::size_t bytes, int where);

 private:
  /// A range of one region.
  struct span {
    coherence::region* region = nullptr;
    coherence::byte_range range;
  };

  /// The next bytes of a range that are good in the shadow, or that one copy can bring from their home.
  struct stretch {
    coherence::byte_range range;
    bool on_host = false;
  };

  [[nodiscard]] span resolve(const void* p, std::size_t bytes) const;
  void copy_in(const span& to, const std::byte* source);
  /// Queues what a staging buffer holds, for a range of a region.
  void queue_in(coherence::region& r, coherence::byte_range range, transfer::staged buffer);
  void copy_out(std::byte* destination, const span& from);
  void copy_across(const span& to, const span& from);
  /// Waits for device work on host memory that the host is about to read or write.
  void wait_for_users(const span& what, bool before_write) const;
  /// From a home at most `most` bytes. Under the region's mutex.
  [[nodiscard]] stretch good_stretch(const coherence::region& r, coherence::byte_range wanted,
                                     std::uint64_t most) const;
  /// No home of the range is lost.
  void require_homes(const span& what) const;
  static void require_alive(const span& what);
  [[nodiscard]] std::byte* alias(const span& what) const;

  environment env_;
  allocator& memory_;
};

}  // namespace hpe::core
