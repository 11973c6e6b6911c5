#pragma once

/// The only place where address space is reserved, mapped and protected. The caller passes addresses and sizes that are
/// multiples of the page size. Functions throw hpe::error (HPE_ERROR_SYSTEM with the name of the call and errno's
/// message) unless their comments say otherwise.

#include <cstddef>
#include <cstdint>

#include "runtime/os/file_descriptor.h"

namespace hpe::os {

[[nodiscard]] std::size_t page_size() noexcept;

/// The accesses that the program may make to mapped pages.
enum class page_protection : std::uint8_t { none, read, read_write };

/// Creates an anonymous file of the given size, which no other process can open by name. The system allocates a page of
/// the file when the page is first touched, and removes the file when its last descriptor is closed and its last
/// mapping is removed. The descriptor is closed on exec.
[[nodiscard]] file_descriptor create_memory_file(const char* name, std::uint64_t size);

/// Frees the pages of a part of a memory file. This part reads as zero afterwards, in every mapping.
void discard(int memory_file, std::uint64_t offset, std::uint64_t size);

/// Owns reserved address space, which is not usable until something is mapped there.
class reservation {
 public:
  reservation() = default;
  /// Reserves space at `hint`, a multiple of `alignment`; if this space is not free, at another aligned address.
  reservation(std::uintptr_t hint, std::size_t size, std::size_t alignment);
  /// Reserves the `size` bytes at `address`, which is a multiple of the page size. Returns a reservation of 0 bytes if
  /// the operating system does not give the process exactly these bytes.
  [[nodiscard]] static reservation at(std::uintptr_t address, std::size_t size) noexcept;
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

/// Maps a part of a memory file over address space that the caller owns, as a shared mapping.
void map_file(void* address, std::size_t size, page_protection allowed, int memory_file, std::uint64_t offset);

/// Drops the mappings in owned address space, which is reserved and unusable afterwards.
void unmap_to_reserved(void* address, std::size_t size);

/// Changes the program's access to the pages. Returns false if the operating system allows no further mapping (ENOMEM).
/// Parts of the range may then have changed, but protect() can be called for the range again. Safe in a signal handler
/// unless it throws.
[[nodiscard]] bool protect(void* address, std::size_t size, page_protection allowed);

/// Hints for a call of protect() that must be fast. set_apart, called before protect(), makes a separate mapping of
/// some pages of a memory file; protect() changes a separate mapping in half the time. rejoin, called after protect(),
/// lets the operating system merge these pages with neighbours that have the same protection.
void set_apart(void* address, std::size_t size) noexcept;
void rejoin(void* address, std::size_t size) noexcept;

/// Fills the page tables of a readable or writable range before it is accessed. A hint; failures are ignored.
void populate_for_reading(void* address, std::size_t size) noexcept;
void populate_for_writing(void* address, std::size_t size) noexcept;

/// Like populate_for_writing, but for any range: leaves out the pages that the range contains only in part.
void populate_whole_pages(void* address, std::size_t size) noexcept;

/// Whether most of a range has no pages yet, as memory that the program has mapped and not used. Examines a few pages.
[[nodiscard]] bool lacks_pages(const void* address, std::size_t size) noexcept;

/// Whether the page tables lack most of a readable range, so that first accesses fault: memory without pages, and a
/// mapped file, also one that is in memory. Examines a few pages.
[[nodiscard]] bool lacks_table_entries(const void* address, std::size_t size) noexcept;

/// Lets the system make huge pages in the range, where pages are missing, if the system's setting allows programs to
/// ask for them ("always" or "madvise" in /sys/kernel/mm/transparent_hugepage/enabled). A hint; failures are ignored.
/// Has no effect after leave_pages_small().
void allow_huge_pages(void* address, std::size_t size) noexcept;
/// To be called when the program excludes huge pages from some of its memory (MADV_NOHUGEPAGE). The system tells only
/// in /proc/self/smaps which memory this is, and takes long for that, so allow_huge_pages() then leaves all memory as
/// it is.
void leave_pages_small() noexcept;

/// Backs [address, address + size) of a writable shared mapping with pages where pages are missing, and keeps its
/// contents. The pages are huge if the operating system supports that (madvise(MADV_COLLAPSE), Linux 6.1; it needs no
/// permission), otherwise small. A hint; failures are ignored.
void populate_with_huge_pages(void* address, std::size_t size) noexcept;

/// Excludes these pages from children made by fork.
void exclude_from_fork(void* address, std::size_t size);

/// Excludes these pages from core files. Otherwise the operating system would read all of these pages, and so allocate
/// pages for every hole of a memory file.
void exclude_from_core(void* address, std::size_t size);
/// Makes core files include the pages of the range that the program may read now. Ignores failures. Safe in a signal
/// handler.
void include_readable_in_core(void* address, std::size_t size) noexcept;

}  // namespace hpe::os
