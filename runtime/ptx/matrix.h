#pragma once

/// wmma.load and wmma.store: each thread moves its own elements (matrix_shape.h says which they are).

#include "runtime/ptx/matrix_shape.h"

namespace hpe::ptx {

/// matrix is the address of the first element; stride, in elements, that between rows or columns. registers has room
/// for the part's.
void load_fragment(const instruction& i, std::uint32_t lane, const void* matrix, std::uint64_t stride,
                   std::uint64_t* registers);
void store_fragment(const instruction& i, std::uint32_t lane, void* matrix, std::uint64_t stride,
                    const std::uint64_t* registers);
/// From the first to the last byte that a warp touches.
[[nodiscard]] std::uint64_t fragment_bytes(const instruction& i, std::uint64_t stride);

}  // namespace hpe::ptx
