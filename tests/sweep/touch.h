#pragma once

#include <cstddef>

namespace sweep {

/// Copies bytes as CPU code does, from or to hpe memory; returns false if that raised SIGSEGV.
[[nodiscard]] bool touch(void* to, const void* from, std::size_t bytes);
/// Installs a handler for faults that hpe does not handle. Must be called before hpe starts.
void install_touch_handler();

}  // namespace sweep
