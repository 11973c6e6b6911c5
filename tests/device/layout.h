#pragma once

#include "runtime/device/device.h"

namespace device_test {

// ThreadSanitizer leaves programs only the top of the address space. The other sanitizers do not use the second address
// below.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::uintptr_t layout_base = 0x7ea000000000;
inline constexpr std::size_t layout_segment = std::size_t{4} << 30;
#else
inline constexpr std::uintptr_t layout_base = 0x200000000000;
inline constexpr std::size_t layout_segment = std::size_t{64} << 30;
#endif

[[nodiscard]] inline hpe::uvas_layout layout_for(unsigned segments) { return {layout_base, layout_segment, segments}; }

}  // namespace device_test
