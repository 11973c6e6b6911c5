#pragma once

/// Copies and memsets of boxes of bytes. All copies and memsets on soft devices call these functions. The boxes must
/// not be empty.

#include "runtime/base/box.h"

namespace hpe::cudart {

/// Throws cudaErrorInvalidPitchValue if rows overlap. Throws cudaErrorInvalidValue if planes overlap, if the address is
/// null, if the box exceeds the address space, or if the box begins in a CUDA allocation and extends beyond it. If
/// must_be_known is true, also throws cudaErrorInvalidValue for memory outside all CUDA allocations.
void check_box(const char* begin, const box& shape, bool must_be_known);

/// Whether an address is in ordinary memory of the program, which neither CUDA nor hpe has allocated or registered.
[[nodiscard]] bool is_pageable(const void* address);

/// Copies a box. When copy_box returns, the caller may change a source in ordinary memory, and read a destination in
/// ordinary memory. Throws hpe::error.
void copy_box(char* to, const char* from, const box_copy& shape);

/// Sets each element of 1, 2 or 4 bytes to the lowest bytes of `value`.
void set_box(char* to, const box& shape, unsigned value, unsigned element_size);

}  // namespace hpe::cudart
