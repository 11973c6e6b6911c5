// The file has one part for each use, in the order of ptx::recorded_use. The byte at offset n of a part belongs to the
// n-th recorded address.

#include "runtime/device/soft/shared/recorded_accesses.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

constexpr std::uint64_t heap_room = std::uint64_t{1} << 30;

/// Joins bytes with the same number into stretches, over the borders of the pieces in which a file is read.
class stretches {
 public:
  stretches(std::uint64_t base, ptx::recorded_use how, function_ref<void(const recorded_stretch&)> visit)
      : base_(base), how_(how), visit_(visit) {}
  ~stretches() { flush(); }
  stretches(const stretches&) = delete;
  stretches& operator=(const stretches&) = delete;

  void add(std::uint64_t offset, const std::uint8_t* bytes, std::size_t size) {
    constexpr std::uint64_t ones = 0x0101010101010101ULL;
    for (std::size_t n = 0; n < size;) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + n, sizeof word);  // pages have a multiple of eight bytes
      if (word == 0) {
        n += sizeof word;
        continue;
      }
      if (word == ones * (word & 0xff)) {
        extend(offset + n, sizeof word, static_cast<std::uint8_t>(word));
        n += sizeof word;
        continue;
      }
      for (std::size_t k = 0; k < sizeof word; ++k, ++n)
        if (bytes[n] != 0) extend(offset + n, 1, bytes[n]);
    }
  }

 private:
  void extend(std::uint64_t offset, std::uint64_t bytes, std::uint8_t number) {
    if (number == number_ && offset == end_) {
      end_ += bytes;
      return;
    }
    flush();
    begin_ = offset;
    end_ = offset + bytes;
    number_ = number;
  }
  void flush() {
    if (number_ != 0) visit_({base_ + begin_, base_ + end_, how_, number_});
    number_ = 0;
  }

  std::uint64_t base_;
  ptx::recorded_use how_;
  function_ref<void(const recorded_stretch&)> visit_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint8_t number_ = 0;
};

}  // namespace

ptx::record_places record_places_of(const uvas_layout& layout) noexcept {
  const std::uint64_t size = granule_size + layout.size() + heap_room;
  return {layout.base - granule_size, size, {size, 2 * size, 3 * size}};
}

recorded_memory::recorded_memory(const uvas_layout& layout, os::file_descriptor file) : file_(std::move(file)) {
  const ptx::record_places places = record_places_of(layout);
  const std::uint64_t begin = places.base + places.distances[0], bytes = ptx::recorded_uses * places.size;
  space_ = os::reservation(begin, bytes, granule_size);
  HPE_REQUIRE(
      reinterpret_cast<std::uintptr_t>(space_.data()) == begin, HPE_ERROR_INITIALIZATION,
      "the {} bytes at {:#x}, in which HPE_CHECK records accesses, are not free in the process of a soft device; "
      "set HPE_SEGMENT_SIZE to a smaller size, such as 64G",
      bytes, begin);
  os::map_file(space_.data(), bytes, os::page_protection::read_write, file_.get(), 0);
  os::exclude_from_core(space_.data(), bytes);
}

bool recorded_memory::contains(std::uint64_t address) const noexcept {
  return address - reinterpret_cast<std::uint64_t>(space_.data()) < space_.size();
}

recorded_reader::recorded_reader(const uvas_layout& layout, unsigned devices) : places_(record_places_of(layout)) {
  for (unsigned d = 0; d < devices; ++d)
    files_.push_back(os::create_memory_file("hpe-accesses", ptx::recorded_uses * places_.size));
}

namespace {

constexpr std::size_t page_bytes = 4096;

bool is_zero(const std::uint8_t* bytes) {
  static constexpr std::array<std::uint8_t, page_bytes> zeros{};
  return std::memcmp(bytes, zeros.data(), page_bytes) == 0;
}

void clear(int file, std::uint64_t offset, std::uint64_t size) {
  static constexpr std::array<std::uint8_t, 16 * page_bytes> zeros{};
  while (size != 0) {
    const ssize_t done =
        ::pwrite(file, zeros.data(), std::min<std::uint64_t>(size, zeros.size()), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_system_error("pwrite, to clear the accesses of a kernel");
    offset += static_cast<std::uint64_t>(done);
    size -= static_cast<std::uint64_t>(done);
  }
}

struct extent {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

void add_page(std::vector<extent>& to, std::uint64_t offset) {
  if (!to.empty() && to.back().offset + to.back().size == offset)
    to.back().size += page_bytes;
  else
    to.push_back({offset, page_bytes});
}

}  // namespace

// Pages that the last launch has touched are cleared and remain, because a new page takes longer than a cleared one.
// The other pages are freed if they are many, because every launch reads all pages of the file.
void recorded_reader::take(unsigned device, function_ref<void(const recorded_stretch&)> visit) const {
  static thread_local std::vector<std::uint8_t> piece(std::size_t{256} << 10);
  constexpr std::size_t few_pages = 1024;
  const int file = files_[device].get();
  std::vector<extent> touched, idle;
  std::size_t touched_pages = 0, idle_pages = 0;
  for (std::size_t use = 0; use < ptx::recorded_uses; ++use) {
    const auto first = static_cast<off_t>(use * places_.size), last = static_cast<off_t>((use + 1) * places_.size);
    stretches found(places_.base, static_cast<ptx::recorded_use>(use), visit);
    for (off_t at = first;;) {
      const off_t begin = ::lseek(file, at, SEEK_DATA);  // fails if no data follows
      if (begin < 0 || begin >= last) break;
      const off_t end = std::min(last, ::lseek(file, begin, SEEK_HOLE));
      for (at = begin; at < end;) {
        const auto wanted = std::min<std::size_t>(piece.size(), static_cast<std::size_t>(end - at));
        const ssize_t done = ::pread(file, piece.data(), wanted, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) throw_system_error("pread of the accesses of a kernel");
        for (std::size_t n = 0; n + page_bytes <= static_cast<std::size_t>(done); n += page_bytes) {
          const std::uint64_t offset = static_cast<std::uint64_t>(at) + n;
          const bool is_idle = is_zero(piece.data() + n);
          ++(is_idle ? idle_pages : touched_pages);
          add_page(is_idle ? idle : touched, offset);
          if (!is_idle) found.add(offset - static_cast<std::uint64_t>(first), piece.data() + n, page_bytes);
        }
        at += done;
      }
    }
  }
  for (const extent& each : touched) clear(file, each.offset, each.size);
  if (idle_pages > std::max(few_pages, touched_pages))
    for (const extent& each : idle) os::discard(file, each.offset, each.size);
}

}  // namespace hpe::device::soft
