#pragma once

/// The one address space. Segments lie one after the other: device 0 to n-1, host, striped, runtime, foreign. Every
/// byte of it has a place in one memory file, the shadow, which is mapped a second time as a whole, the alias: alias(p)
/// = p + constant. Addresses and sizes given to map_view and unmap_view are multiples of the page size. Failures throw
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

/// Owns the address space, the shadow and the alias. Functions marked noexcept may run in a signal handler. map_view
/// and unmap_view may run in several threads for ranges that do not overlap.
class uvas {
 public:
  /// Asks for `address_base`; takes what the kernel gives when that is not free. segment_size is a multiple of the
  /// granule. Segments are aligned to their size where that is a power of two, else to the granule. Throws
  /// HPE_ERROR_INITIALIZATION for values that cannot be meant, and where the process may not have so much.
  uvas(std::uintptr_t address_base, std::size_t segment_size, unsigned device_count);

  [[nodiscard]] const uvas_layout& layout() const noexcept { return layout_; }
  [[nodiscard]] unsigned device_count() const noexcept { return device_count_; }

  [[nodiscard]] bool contains(const void* p) const noexcept { return layout_.contains(p); }
  /// p lies in the UVAS.
  [[nodiscard]] segment segment_of(const void* p) const noexcept;
  /// The device number matters for kind device alone.
  [[nodiscard]] std::byte* segment_begin(segment_kind kind, unsigned device = 0) const noexcept;

  /// Where the runtime reads and writes the host's copy of p, whatever the view allows. p lies in the UVAS.
  [[nodiscard]] std::byte* alias(const void* p) const noexcept { return alias_.data() + offset(p); }
  /// The address in the UVAS whose alias is p. p lies in the alias.
  [[nodiscard]] std::byte* view(const void* alias) const noexcept {
    return view_.data() + (static_cast<const std::byte*>(alias) - alias_.data());
  }

  /// Where p lies in the shadow file. p lies in the UVAS.
  [[nodiscard]] std::uint64_t offset(const void* p) const noexcept {
    return reinterpret_cast<std::uintptr_t>(p) - layout_.base;
  }
  [[nodiscard]] int shadow_file() const noexcept { return shadow_.get(); }

  /// Maps the shadow over the view, at its own offset. The pages exist for this process alone, not for children of
  /// fork. Throws with nothing mapped.
  void map_view(void* p, std::size_t bytes, os::access allowed);

  /// Takes the view away and gives its shadow back: the bytes read as zero when they are used next. Address space stays
  /// reserved. False, and the log tells why, if the addresses cannot be used again.
  [[nodiscard]] bool unmap_view(void* p, std::size_t bytes) noexcept;

  /// Puts a file of another process in place of the shadow, in the view, which is closed, and in the alias. If it
  /// throws, a part may be mapped; unmap_foreign takes it away.
  void map_foreign(void* p, std::size_t bytes, int file, std::uint64_t file_offset);
  /// Takes the view away, and puts the shadow in its place in the alias again. False as for unmap_view.
  [[nodiscard]] bool unmap_foreign(void* p, std::size_t bytes) noexcept;

 private:
  [[nodiscard]] static bool close_view(void* p, std::size_t bytes) noexcept;

  uvas_layout layout_;
  unsigned device_count_;
  os::reservation view_;
  os::reservation alias_;
  os::file_descriptor shadow_;
};

}  // namespace hpe::memory
