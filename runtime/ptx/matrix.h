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
/// An element of a matrix as a number, and back; f16, bf16, f32, and integers to 32 bits. raw may have bits of others
/// above.
[[nodiscard]] double decode_element(std::uint64_t raw, type t);
[[nodiscard]] std::uint64_t encode_element(double value, type t);
/// Of s32: cut to 32 bits, or to the nearest.
[[nodiscard]] std::uint64_t encode_integer(double value, bool saturates);
/// From the first to the last byte that a warp touches.
[[nodiscard]] std::uint64_t fragment_bytes(const instruction& i, std::uint64_t stride);

}  // namespace hpe::ptx
