#pragma once

/// The only place where address space is reserved, mapped and protected. The caller passes addresses and sizes that are
/// multiples of the page size. Functions throw hpe::error (HPE_ERROR_SYSTEM with the name of the call and errno's
/// message) unless they say otherwise.

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

/// Gives the pages of a part of a memory file back to the system. They read as zero afterwards, in every mapping.
void discard(int memory_file, std::uint64_t offset, std::uint64_t size);

/// Owns reserved address space, which is not usable until something is mapped there.
class reservation {
 public:
  reservation() = default;
  /// Asks for the address `hint`, a multiple of `alignment`. If it is not free, takes another aligned address.
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

/// Drops the mappings in owned address space, which is reserved and unusable afterwards.
void unmap_to_reserved(void* address, std::size_t size);

/// Changes the program's access to the pages. Returns false when the kernel has no room for another mapping (ENOMEM):
/// parts of the range may have changed then, but it can be protected again. Safe in a signal handler unless it
/// throws.
[[nodiscard]] bool protect(void* address, std::size_t size, access allowed);

/// Hints before and after a protect() that must be fast: set_apart makes pages of a memory file a mapping of their own,
/// which protect() changes in half the time; rejoin lets them be one mapping with neighbours of the same protection
/// again.
void set_apart(void* address, std::size_t size) noexcept;
void rejoin(void* address, std::size_t size) noexcept;

/// Fills the page tables of a readable or writable range ahead of the accesses. A hint; failures are ignored.
void populate_for_reading(void* address, std::size_t size) noexcept;
void populate_for_writing(void* address, std::size_t size) noexcept;

/// Backs [address, address + size) of a writable shared mapping with pages where it has none, and keeps its contents.
/// The pages are huge where the kernel supports that (madvise(MADV_COLLAPSE), Linux 6.1; it needs no permission), else
/// small. A hint; failures are ignored.
void populate_with_huge_pages(void* address, std::size_t size) noexcept;

/// Excludes these pages from children made by fork.
void exclude_from_fork(void* address, std::size_t size);

}  // namespace hpe::os
