#pragma once

/// Checks pages that the program passes to cudaHostRegister. Kernels on soft devices can use these pages only if hpe
/// replaces them by its own pages. But other users of the old pages, such as other processes, would continue to use the
/// old pages.

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "interpose/soft/cudart/memory/memory_table.h"

namespace hpe::cudart {

/// Returns the reason why these pages cannot be replaced by other pages with the same bytes, as the end of a sentence;
/// nullopt if they can be replaced. The range must consist of whole pages. Detects pages that are not mapped or not
/// readable and writable, shared mappings, the calling thread's stack, and buffers that were registered with io_uring.
/// Does not detect registrations with other drivers, such as those of network adapters.
[[nodiscard]] std::optional<std::string> reason_to_keep(std::span<const char> pages);

/// Whether these pages contain, or may contain, a buffer that is registered with io_uring. Linux does not always list
/// these buffers (in /proc/self/fdinfo).
[[nodiscard]] bool io_uring_has(std::span<const char> pages);

}  // namespace hpe::cudart
