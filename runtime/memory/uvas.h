#pragma once

/// The address space. Its segments are, in order: device 0 to n-1, host, striped, runtime, foreign. Every byte has an
/// offset in one memory file, the shadow. The whole file is mapped a second time, as the alias: alias(p) = p +
/// constant. The alias can be accessed wherever open_alias() or map_view() was called. Addresses and sizes passed to
/// map_view and unmap_view must be multiples of the page size. Failures throw hpe::error.

#include <cstddef>
#include <cstdint>

#include "runtime/base/uvas_layout.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::memory {

enum class segment_kind : std::uint8_t {
  device,   ///< regions whose home is one device
  host,     ///< regions whose home is the host
  striped,  ///< regions whose granules have different homes
  runtime,  ///< the runtime's own buffers; only their alias is used
  foreign   ///< memory of other processes, and files that the program maps
};

struct segment {
  segment_kind kind = segment_kind::device;
  unsigned device = 0;  ///< for kind device: the device's number; otherwise 0

  friend bool operator==(const segment&, const segment&) = default;
};

/// Owns the address space, the shadow and the alias. The const functions are safe in signal handlers. Several threads
/// may call map_view and unmap_view for ranges that do not overlap.
class uvas {
 public:
  /// Reserves the address space at `address_base` or, if these addresses are not free, at other addresses. The size of
  /// a segment must be a multiple of the granule. Segments are aligned to their size if that is a power of two,
  /// otherwise to the granule. Throws HPE_ERROR_INITIALIZATION for invalid values, and if the process is not allowed to
  /// reserve so much address space.
  uvas(std::uintptr_t address_base, std::size_t segment_size, unsigned device_count);

  [[nodiscard]] const uvas_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] unsigned device_count() const noexcept { return device_count_; }

  [[nodiscard]] bool contains(const void* p) const noexcept { return layout_.contains(p); }
  /// Returns the segment of p, which must be in the UVAS.
  [[nodiscard]] segment segment_of(const void* p) const noexcept;
  /// Returns the first address of a segment. `device` is used only for kind device.
  [[nodiscard]] std::byte* segment_begin(segment_kind kind, unsigned device = 0) const noexcept;

  /// Returns the address at which the runtime accesses the host's copy of the byte at p, regardless of the view's
  /// protection. p must be in the UVAS.
  [[nodiscard]] std::byte* alias(const void* p) const noexcept { return alias_.data() + offset(p); }
  /// Returns the address in the UVAS whose alias is `alias`.
  [[nodiscard]] std::byte* view(const void* alias) const noexcept {
    return view_.data() + (static_cast<const std::byte*>(alias) - alias_.data());
  }

  /// The offset in the shadow file of an address p in the UVAS.
  [[nodiscard]] std::uint64_t offset(const void* p) const noexcept {
    return reinterpret_cast<std::uintptr_t>(p) - layout_.base;
  }
  [[nodiscard]] int shadow_file() const noexcept { return shadow_.get(); }

  /// Permanently opens the alias of these bytes, and of some bytes around them. The alias of unused bytes stays closed,
  /// because mlockall allocates pages for all accessible bytes.
  void open_alias(const void* p, std::size_t bytes);

  /// Maps the shadow into the view, at the offset of p, for this process but not for children made by fork, and opens
  /// the alias. If map_view throws, nothing is mapped. Core files contain the views of host memory, and all other views
  /// of up to 16 MiB.
  void map_view(void* p, std::size_t bytes, os::page_protection allowed);

  /// Makes core files include all views that the program may read now. Safe in a signal handler.
  void keep_views_in_core() const noexcept { os::include_readable_in_core(view_.data(), view_.size()); }

  /// Unmaps the view; the shadow keeps its pages. The addresses stay reserved. If the view can be neither unmapped nor
  /// closed, logs the reason and returns false; the addresses must then not be used again.
  [[nodiscard]] static bool close_view(void* p, std::size_t bytes) noexcept;

  /// Unmaps the view and returns the shadow's pages to the system: the bytes read as zero at the next use. The
  /// addresses stay reserved. Returns false if close_view() does, or if the pages cannot be returned (the reason is
  /// logged); the addresses must then not be used again.
  [[nodiscard]] bool unmap_view(void* p, std::size_t bytes) noexcept;

  /// Maps a file of another process or of the program into the view and into the alias, in place of the shadow. The
  /// view is closed. If map_foreign throws, a part of the range may be mapped; call unmap_foreign to unmap this part.
  void map_foreign(void* p, std::size_t bytes, int file, std::uint64_t file_offset);
  /// Unmaps the view, and maps the shadow into the alias again. Returns false in the same cases as unmap_view.
  [[nodiscard]] bool unmap_foreign(void* p, std::size_t bytes) noexcept;

 private:
  uvas_layout layout_;
  unsigned device_count_;
  os::reservation view_;
  os::reservation alias_;
  os::file_descriptor shadow_;
};

}  // namespace hpe::memory
