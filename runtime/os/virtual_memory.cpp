#include "runtime/os/virtual_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <span>
#include <utility>

#include "runtime/base/error.h"

namespace hpe::os {

namespace {

// Values from Linux 5.14 and 6.1; the headers of older systems lack the names.
constexpr int advise_populate_read = 22;
constexpr int advise_populate_write = 23;
constexpr int advise_collapse = 25;

constexpr std::size_t huge_page = std::size_t{2} << 20;

int protection_bits(page_protection allowed) noexcept {
  switch (allowed) {
    case page_protection::none: return PROT_NONE;
    case page_protection::read: return PROT_READ;
    case page_protection::read_write: break;
  }
  return PROT_READ | PROT_WRITE;
}

struct part_of_memory {
  std::byte* first;
  std::size_t bytes;
};

// Returns the part of a range that consists of whole units; 0 bytes if the range contains no whole unit.
part_of_memory whole_units(void* address, std::size_t size, std::size_t unit) noexcept {
  auto* const begin = static_cast<std::byte*>(address);
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t skipped = (unit - number % unit) % unit;
  return {begin + skipped, size <= skipped ? 0 : (size - skipped) / unit * unit};
}

// Without MAP_FIXED in flags, address is only a hint.
std::byte* reserve(void* address, std::size_t size, int flags) {
  void* p = ::mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

}  // namespace

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

file_descriptor create_memory_file(const char* name, std::uint64_t size) {
  // ftruncate beyond RLIMIT_FSIZE would raise SIGXFSZ, which ends the process.
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  HPE_REQUIRE(limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur, HPE_ERROR_SYSTEM,
              "the memory file {} has {} bytes, most of them without pages, but files of this process may have at most "
              "{} bytes (RLIMIT_FSIZE, ulimit -f)",
              name, size, limit.rlim_cur);
  file_descriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) throw_system_error(fmt::format("memfd_create({})", name));
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0)
    throw_system_error(fmt::format("ftruncate of the memory file {} to {} bytes", name, size));
  return file;
}

void discard(int memory_file, std::uint64_t offset, std::uint64_t size) {
  if (::fallocate(memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size)) != 0)
    throw_system_error(fmt::format("fallocate, to give back {} bytes of a memory file", size));
}

reservation::reservation(std::uintptr_t hint, std::size_t size, std::size_t alignment) : size_(size) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the caller requests an address
  data_ = reserve(reinterpret_cast<void*>(hint), size, 0);
  if (data_ != nullptr && reinterpret_cast<std::uintptr_t>(data_) % alignment == 0) return;
  if (data_ != nullptr) ::munmap(data_, size);

  // Reserve a larger range elsewhere, and unmap the space before and after the aligned part.
  std::byte* wide = reserve(nullptr, size + alignment, 0);
  if (wide == nullptr) throw_system_error(fmt::format("mmap, to reserve {} bytes of address space", size));
  const std::size_t before = (alignment - reinterpret_cast<std::uintptr_t>(wide) % alignment) % alignment;
  if (before != 0) ::munmap(wide, before);
  data_ = wide + before;
  ::munmap(data_ + size, alignment - before);
}

reservation reservation::at(std::uintptr_t address, std::size_t size) noexcept {
  reservation result;
  // Linux follows the hint if the space is free. ThreadSanitizer replaces an address that it does not allow by 0, where
  // MAP_FIXED_NOREPLACE would map the space.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the caller requests an address
  std::byte* const space = reserve(reinterpret_cast<void*>(address), size, 0);
  if (reinterpret_cast<std::uintptr_t>(space) == address) {
    result.data_ = space;
    result.size_ = size;
  } else if (space != nullptr) {
    ::munmap(space, size);
  }
  return result;
}

reservation::reservation(reservation&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

reservation& reservation::operator=(reservation&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

reservation::~reservation() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void map_file(void* address, std::size_t size, page_protection allowed, int memory_file, std::uint64_t offset) {
  if (::mmap(address, size, protection_bits(allowed), MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memory_file,
             static_cast<off_t>(offset)) == MAP_FAILED)
    throw_system_error(fmt::format("mmap of {} bytes of a memory file", size));
}

void unmap_to_reserved(void* address, std::size_t size) {
  if (reserve(address, size, MAP_FIXED) == nullptr) throw_system_error(fmt::format("mmap, to unmap {} bytes", size));
}

bool protect(void* address, std::size_t size, page_protection allowed) {
  if (::mprotect(address, size, protection_bits(allowed)) == 0) return true;
  if (errno == ENOMEM) return false;
  throw_system_error(fmt::format("mprotect of {} bytes at {}", size, address));
}

// MADV_RANDOM has no other effect here: it turns off read-ahead, which a memory file does not have. But the operating
// system does not merge mappings with different advice, so these pages get a separate mapping.
void set_apart(void* address, std::size_t size) noexcept { ::madvise(address, size, MADV_RANDOM); }

void rejoin(void* address, std::size_t size) noexcept { ::madvise(address, size, MADV_NORMAL); }

void populate_for_reading(void* address, std::size_t size) noexcept { ::madvise(address, size, advise_populate_read); }

void populate_for_writing(void* address, std::size_t size) noexcept { ::madvise(address, size, advise_populate_write); }

void populate_whole_pages(void* address, std::size_t size) noexcept {
  if (const auto [first, bytes] = whole_units(address, size, page_size()); bytes != 0)
    populate_for_writing(first, bytes);
}

namespace {

// Whether is_missing(page) holds for most of a few pages of the range.
template <class Missing>
bool most_are(const void* address, std::size_t size, const Missing& is_missing) noexcept {
  constexpr std::size_t examined = 8;
  const auto [first, bytes] = whole_units(const_cast<void*>(address), size, page_size());
  std::size_t missing = 0;
  for (std::size_t n = 0; n < examined && bytes != 0; ++n)
    if (is_missing(first + bytes / page_size() * n / examined * page_size())) ++missing;
  return missing > examined / 2;
}

// Disables cancellation of the calling thread while an object exists: the functions of this file that open files are no
// cancellation points.
class uncancelled {
 public:
  uncancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
  uncancelled(const uncancelled&) = delete;
  uncancelled& operator=(const uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

bool lacks_pages(const void* address, std::size_t size) noexcept {
  return most_are(address, size, [](std::byte* page) {
    unsigned char there = 1;
    return ::mincore(page, page_size(), &there) == 0 && (there & 1) == 0;
  });
}

bool lacks_table_entries(const void* address, std::size_t size) noexcept {
  const uncancelled here;
  const file_descriptor tables(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  return most_are(address, size, [&](const std::byte* page) {
    constexpr std::uint64_t present = std::uint64_t{1} << 63;
    std::uint64_t entry = present;
    const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(page) / page_size() * sizeof entry);
    return ::pread(tables.get(), &entry, sizeof entry, at) == sizeof entry && (entry & present) == 0;
  });
}

namespace {

constinit std::atomic<bool> pages_stay_small{false};

}  // namespace

void leave_pages_small() noexcept { pages_stay_small.store(true, std::memory_order_relaxed); }

void allow_huge_pages(void* address, std::size_t size) noexcept {
  if (pages_stay_small.load(std::memory_order_relaxed)) return;
  if (const auto [first, bytes] = whole_units(address, size, huge_page); bytes != 0)
    ::madvise(first, bytes, MADV_HUGEPAGE);
}

void populate_with_huge_pages(void* address, std::size_t size) noexcept {
  if (const auto [first, bytes] = whole_units(address, size, huge_page); bytes != 0) {
    // Each huge page needs one present page before the others can be collapsed into it. One call collapses all of them,
    // because each call first makes every processor of the machine drain its lists of pages.
    for (std::size_t at = 0; at < bytes; at += huge_page) populate_for_writing(first + at, page_size());
    ::madvise(first, bytes, advise_collapse);
  }
  populate_for_writing(address, size);  // the pages that could not be collapsed
}

void exclude_from_fork(void* address, std::size_t size) {
  if (::madvise(address, size, MADV_DONTFORK) != 0) throw_system_error("madvise(MADV_DONTFORK)");
}

void exclude_from_core(void* address, std::size_t size) {
  if (::madvise(address, size, MADV_DONTDUMP) != 0) throw_system_error("madvise(MADV_DONTDUMP)");
}

// Uses system calls, because the functions open and read may be interposed. A line of the file begins with two
// addresses and the permissions: 7f0000000000-7f0000002000 rw-s.
void include_readable_in_core(void* address, std::size_t size) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (file < 0) return;
  std::array<char, 4096> buffer{};
  std::uintptr_t number = 0;  // the number that is being read
  std::uintptr_t first = 0;   // the first address of the mapping
  enum class maps_field : std::uint8_t { first, end, permission, rest } at = maps_field::first;
  for (long got = 0; (got = ::syscall(SYS_read, file, buffer.data(), buffer.size())) > 0;) {
    for (const char c : std::span(buffer.data(), static_cast<std::size_t>(got))) {
      if (at == maps_field::permission) {
        const std::uintptr_t from = std::max(first, begin);
        const std::uintptr_t end = std::min(number, begin + size);
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel prints addresses
        if (c == 'r' && from < end) ::madvise(reinterpret_cast<void*>(from), end - from, MADV_DODUMP);
        at = maps_field::rest;
      } else if (at == maps_field::rest) {
        if (c != '\n') continue;
        number = 0;
        at = maps_field::first;
      } else if (c == '-') {
        first = std::exchange(number, 0);
        at = maps_field::end;
      } else if (c == ' ') {
        at = maps_field::permission;
      } else {
        number = number << 4 | static_cast<std::uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      }
    }
  }
  ::syscall(SYS_close, file);
}

}  // namespace hpe::os
