#pragma once

/// The address space. Its segments follow each other: device 0 to n-1, host, striped, runtime, foreign. Every byte has
/// a place in one memory file, the shadow. The whole file is mapped a second time, as the alias: alias(p) = p +
/// constant. Addresses and sizes given to map_view and unmap_view must be multiples of the page size. Failures throw
/// hpe::error.

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
  foreign   ///< memory of other processes
};

struct segment {
  segment_kind kind = segment_kind::device;
  unsigned device = 0;  ///< of kind device: its number; otherwise 0

  friend bool operator==(const segment&, const segment&) = default;
};

/// Owns the address space, the shadow and the alias. The const functions are safe in signal handlers. map_view and
/// unmap_view may run in several threads for ranges that do not overlap.
class uvas {
 public:
  /// Asks for `address_base`; takes another address if that is not free. segment_size must be a multiple of the
  /// granule. Segments are aligned to their size if that is a power of two, else to the granule. Throws
  /// HPE_ERROR_INITIALIZATION for invalid values, and if the process may not reserve so much.
  uvas(std::uintptr_t address_base, std::size_t segment_size, unsigned device_count);

  [[nodiscard]] const uvas_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] unsigned device_count() const noexcept { return device_count_; }

  [[nodiscard]] bool contains(const void* p) const noexcept { return layout_.contains(p); }
  /// p must lie in the UVAS.
  [[nodiscard]] segment segment_of(const void* p) const noexcept;
  /// `device` matters for kind device only.
  [[nodiscard]] std::byte* segment_begin(segment_kind kind, unsigned device = 0) const noexcept;

  /// The address at which the runtime accesses the host's copy of p, whatever the view allows. p must lie in the UVAS.
  [[nodiscard]] std::byte* alias(const void* p) const noexcept { return alias_.data() + offset(p); }
  /// The address in the UVAS that has this alias.
  [[nodiscard]] std::byte* view(const void* alias) const noexcept {
    return view_.data() + (static_cast<const std::byte*>(alias) - alias_.data());
  }

  /// The offset of p in the shadow file. p must lie in the UVAS.
  [[nodiscard]] std::uint64_t offset(const void* p) const noexcept {
    return reinterpret_cast<std::uintptr_t>(p) - layout_.base;
  }
  [[nodiscard]] int shadow_file() const noexcept { return shadow_.get(); }

  /// Maps the shadow into the view, at its own offset, for this process but not for children of fork. If it throws,
  /// nothing is mapped.
  void map_view(void* p, std::size_t bytes, os::access allowed);

  /// Unmaps the view; the shadow keeps its pages. The addresses stay reserved. Returns false, and logs why, if they
  /// cannot be used again.
  [[nodiscard]] static bool close_view(void* p, std::size_t bytes) noexcept;

  /// Unmaps the view and gives its shadow pages back: the bytes read as zero when they are used next. The addresses
  /// stay reserved. Returns false, and logs why, if they cannot be used again.
  [[nodiscard]] bool unmap_view(void* p, std::size_t bytes) noexcept;

  /// Maps a file of another process in place of the shadow: into the view, which is closed, and into the alias. If it
  /// throws, a part may be mapped; unmap_foreign undoes that.
  void map_foreign(void* p, std::size_t bytes, int file, std::uint64_t file_offset);
  /// Unmaps the view, and maps the shadow into the alias again. Returns false as unmap_view does.
  [[nodiscard]] bool unmap_foreign(void* p, std::size_t bytes) noexcept;

 private:
  uvas_layout layout_;
  unsigned device_count_;
  os::reservation view_;
  os::reservation alias_;
  os::file_descriptor shadow_;
};

}  // namespace hpe::memory
