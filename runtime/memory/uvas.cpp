#include "runtime/memory/uvas.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

// Invariants: base + i in the view, alias + i, and offset i in the shadow file are the same byte. Every mapping of the
// view is excluded from fork, so that the operating system can merge neighbouring mappings. Core files contain only the
// views with the program's data. Reserved addresses are also excluded explicitly: the operating system would not write
// them, but gcore would.

namespace hpe::memory {

namespace {

// The number of segments that do not belong to a device: host, striped, runtime and foreign.
constexpr unsigned common_segments = 4;

// Addresses of programs have 47 bits; the view and the alias together must fit into this address space.
constexpr std::uint64_t largest_size = std::uint64_t{1} << 46;

uvas_layout make_layout(std::size_t segment_size, unsigned device_count) {
  HPE_REQUIRE(segment_size != 0 && segment_size % granule_size == 0, HPE_ERROR_INITIALIZATION,
              "a segment of {} bytes was requested; it has to be a multiple of {} bytes (HPE_SEGMENT_SIZE)",
              segment_size, granule_size);
  HPE_REQUIRE(device_count > 0, HPE_ERROR_INITIALIZATION, "an address space without devices was asked for");
  const unsigned segments = device_count + common_segments;
  HPE_REQUIRE(segment_size <= largest_size / segments, HPE_ERROR_INITIALIZATION,
              "{} segments of {} bytes were asked for; together they may have at most {} bytes (see HPE_SEGMENT_SIZE)",
              segments, segment_size, largest_size);
  return {0, segment_size, segments};
}

// Processes usually have no mappings below quiet_end: neither this process, nor the processes of soft devices, which
// need the same addresses. Linux loads programs at random addresses from 0x555555554000 on. PMIx maps its memory in the
// middle of the free addresses.
constexpr std::uintptr_t quiet_step = std::uintptr_t{1} << 44;
constexpr std::uintptr_t quiet_end = std::uintptr_t{0x55} << 40;

os::reservation reserve(std::uintptr_t hint, std::size_t size, std::size_t segment_size) {
  const std::size_t alignment = std::has_single_bit(segment_size) ? segment_size : granule_size;
  const auto address_of = [](const os::reservation& r) { return reinterpret_cast<std::uintptr_t>(r.data()); };
  const std::uintptr_t wished = hint / alignment * alignment;
  const auto is_quiet = [&](const os::reservation& r) { return address_of(r) + size <= quiet_end; };
  os::reservation result(wished, size, alignment);
  if (address_of(result) == wished) return result;
  for (std::uintptr_t place = quiet_step; place < quiet_end && !is_quiet(result); place += quiet_step)
    result = os::reservation(place / alignment * alignment, size, alignment);
  return result;
}

// The alias is opened in ranges of opened_at_once bytes, and opened_ahead bytes further than requested, because copies
// to GPUs also pin host memory after the copied bytes.
constexpr std::size_t opened_at_once = std::size_t{64} << 20;
constexpr std::size_t opened_ahead = std::size_t{32} << 20;

// The size, in bytes, of the largest view that core files contain. Writing a larger view to a core file would allocate
// too many pages in the view's holes.
constexpr std::size_t most_in_core = std::size_t{16} << 20;

void set_aside(void* p, std::size_t bytes) {
  os::exclude_from_fork(p, bytes);
  os::exclude_from_core(p, bytes);
}

// Runs a step that frees something. No caller could handle a failure, so a step that fails is tried a second time. If
// the step fails again, logs the failure and returns false.
template <class Function>
bool insist(const Function& function) noexcept {
  for (const bool last : {false, true}) try {
      function();
      return true;
    } catch (const std::exception& e) {
      if (last) log(log_level::error, "hpe can no longer use a part of its address space: {}", e.what());
    }
  return false;
}

}  // namespace

uvas::uvas(std::uintptr_t address_base, std::size_t segment_size, unsigned device_count) try
    : layout_(make_layout(segment_size, device_count)),
      device_count_(device_count),
      view_(reserve(address_base, layout_.size(), segment_size)),
      // The preferred place of the alias is next to the view, so that debuggers show the same addresses in every run.
      alias_(reserve(reinterpret_cast<std::uintptr_t>(view_.data()) + layout_.size(), layout_.size(), segment_size)),
      shadow_(os::create_memory_file("hpe-shadow", layout_.size())) {
  layout_.base = reinterpret_cast<std::uintptr_t>(view_.data());
  set_aside(view_.data(), view_.size());
  os::map_file(alias_.data(), alias_.size(), os::page_protection::none, shadow_.get(), 0);
  set_aside(alias_.data(), alias_.size());
} catch (const error& e) {
  if (e.status() == HPE_ERROR_INITIALIZATION) throw;
  HPE_THROW(HPE_ERROR_INITIALIZATION,
            "hpe needs address space for {} segments of {} bytes twice, and a memory file as large as these segments "
            "together, but cannot reserve them: {}; smaller segments (HPE_SEGMENT_SIZE) need less",
            device_count + common_segments, segment_size, e.what());
}

segment uvas::segment_of(const void* p) const noexcept {
  const auto index = static_cast<unsigned>(offset(p) / layout_.segment_size);
  if (index < device_count_) return {segment_kind::device, index};
  return {static_cast<segment_kind>(static_cast<unsigned>(segment_kind::host) + index - device_count_), 0};
}

std::byte* uvas::segment_begin(segment_kind kind, unsigned device) const noexcept {
  const unsigned index = kind == segment_kind::device
                             ? device
                             : device_count_ + static_cast<unsigned>(kind) - static_cast<unsigned>(segment_kind::host);
  return view_.data() + index * layout_.segment_size;
}

void uvas::open_alias(const void* p, std::size_t bytes) {
  const std::uint64_t begin = offset(p) / opened_at_once * opened_at_once;
  const std::uint64_t end = round_up(offset(p) + bytes + opened_ahead, opened_at_once);
  HPE_REQUIRE(os::protect(alias_.data() + begin, std::min<std::uint64_t>(end, alias_.size()) - begin,
                          os::page_protection::read_write),
              HPE_ERROR_SYSTEM, "mprotect failed for lack of mappings; raise vm.max_map_count");
}

void uvas::map_view(void* p, std::size_t bytes, os::page_protection allowed) {
  open_alias(p, bytes);
  os::map_file(p, bytes, allowed, shadow_.get(), offset(p));
  try {
    os::exclude_from_fork(p, bytes);
    if (bytes > most_in_core && segment_of(p).kind != segment_kind::host) os::exclude_from_core(p, bytes);
  } catch (...) {
    static_cast<void>(close_view(p, bytes));
    throw;
  }
}

bool uvas::close_view(void* p, std::size_t bytes) noexcept {
  const auto unmap = [&]() noexcept {
    try {
      os::unmap_to_reserved(p, bytes);
      set_aside(p, bytes);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  };
  if (unmap()) return true;
  // The process has too many mappings. Closing the view merges its many mappings into one, so that unmap() may succeed.
  // If the range still cannot be unmapped, a closed view is sufficient.
  const bool closed = insist([&] {
    HPE_REQUIRE(os::protect(p, bytes, os::page_protection::none), HPE_ERROR_SYSTEM,
                "mprotect of {} bytes failed for lack of mappings; raise vm.max_map_count", bytes);
  });
  return unmap() || closed;
}

bool uvas::unmap_view(void* p, std::size_t bytes) noexcept {
  const bool closed = close_view(p, bytes);
  return insist([&] { os::discard(shadow_.get(), offset(p), bytes); }) && closed;
}

void uvas::map_foreign(void* p, std::size_t bytes, int file, std::uint64_t file_offset) {
  os::map_file(p, bytes, os::page_protection::none, file, file_offset);
  set_aside(p, bytes);
  os::map_file(alias(p), bytes, os::page_protection::read_write, file, file_offset);
  set_aside(alias(p), bytes);
}

bool uvas::unmap_foreign(void* p, std::size_t bytes) noexcept {
  const bool closed = close_view(p, bytes);
  return insist([&] {
           os::map_file(alias(p), bytes, os::page_protection::none, shadow_.get(), offset(p));
           set_aside(alias(p), bytes);
         }) &&
         closed;
}

}  // namespace hpe::memory
