#pragma once

/// The one place where address space is reserved, mapped and protected. Addresses and sizes are multiples of the page
/// size everywhere; the callers keep to that. Functions throw hpe::error (HPE_ERROR_SYSTEM with the call and errno's
/// words) unless they say otherwise.

#include <cstddef>
#include <cstdint>

#include "runtime/os/file_descriptor.h"

namespace hpe::os {

[[nodiscard]] std::size_t page_size() noexcept;

/// What the program may do with mapped pages.
enum class access : std::uint8_t { none, read, read_write };

/// An anonymous file of the given size that no other process can name; it takes memory as pages are touched, and goes
/// away with its last descriptor and mapping. Closed on exec.
[[nodiscard]] file_descriptor create_memory_file(const char* name, std::uint64_t size);

/// Gives the pages of a part of such a file back; they read as zero afterwards, in every mapping.
void discard(int memory_file, std::uint64_t offset, std::uint64_t size);

/// Address space that is taken but not usable. Owns it.
class reservation {
 public:
  reservation() = default;
  /// Asks for the address `hint`, a multiple of `alignment`; takes another aligned one when it is not free.
  reservation(std::uintptr_t hint, std::size_t size, std::size_t alignment);
  reservation(reservation&& other) noexcept;
  reservation& operator=(reservation&& other) noexcept;
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;
  ~reservation();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Maps a part of a memory file, shared, over address space that the caller owns.
void map_file(void* address, std::size_t size, access allowed, int memory_file, std::uint64_t offset);

/// Makes owned address space unusable again, and drops what was mapped there.
void unmap_to_reserved(void* address, std::size_t size);

/// Changes what the program may do. False when the kernel has no room for another mapping (ENOMEM), in which case
/// nothing is promised about the range but that it can be protected again. Safe in a signal handler when it succeeds or
/// returns false.
[[nodiscard]] bool protect(void* address, std::size_t size, access allowed);

/// Fills page tables of a readable range ahead of the accesses. A hint; failures are ignored.
void populate_for_reading(void* address, std::size_t size) noexcept;
void populate_for_writing(void* address, std::size_t size) noexcept;

/// Gives [address, address + size) of a writable shared mapping pages, where it has none, without changing what it
/// holds: huge ones where the kernel can (madvise(MADV_COLLAPSE), Linux 6.1; it needs no permission), else small ones.
/// A hint; failures are ignored.
void populate_with_huge_pages(void* address, std::size_t size) noexcept;

/// Children made by fork do not get these pages.
void exclude_from_fork(void* address, std::size_t size);

}  // namespace hpe::os
