#pragma once

/// wmma.load and wmma.store: each thread loads or stores its own elements, which matrix_shape.h defines.

#include "runtime/ptx/program/matrix_shape.h"

namespace hpe::ptx {

/// `matrix` is the address of the first element; `stride` is the distance between rows or columns in elements.
/// `registers` are the registers of the thread's fragment.
void load_fragment(const instruction& i, std::uint32_t lane, const void* matrix, std::uint64_t stride,
                   std::uint64_t* registers);
void store_fragment(const instruction& i, std::uint32_t lane, void* matrix, std::uint64_t stride,
                    const std::uint64_t* registers);
/// decode_element converts an element of a matrix to a number; encode_element converts a number to an element. The type
/// of the element is f16, bf16, tf32, f32, f64, or an integer of up to 32 bits. decode_element ignores the higher bits
/// of `raw`, which may belong to other elements.
[[nodiscard]] double decode_element(std::uint64_t raw, type t);
[[nodiscard]] std::uint64_t encode_element(double value, type t);
/// Converts an integral number to s32. If the number does not fit, returns the nearest limit of s32 (`saturates`), or
/// the low 32 bits.
[[nodiscard]] std::uint64_t encode_integer(double value, bool saturates);
/// Returns the distance in bytes from the first element of the matrix to each element of a thread's fragment.
[[nodiscard]] std::vector<std::uint64_t> fragment_offsets(const instruction& i, std::uint32_t lane,
                                                          std::uint64_t stride);
/// Returns the number of bytes between the first byte and the end of the last byte of the matrix that a warp accesses.
[[nodiscard]] std::uint64_t fragment_bytes(const instruction& i, std::uint64_t stride);

}  // namespace hpe::ptx
