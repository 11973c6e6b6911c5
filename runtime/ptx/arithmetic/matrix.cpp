// wmma: loads and stores fragments, and multiplies them in f64.

#include "runtime/ptx/arithmetic/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/ptx/arithmetic/mma.h"
#include "runtime/ptx/execution/scheduler.h"
#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Returns element e of a thread's fragment. Each register holds as many elements as fit; element 0 is in the low bits
// of the first register.
u64 element_of(const std::uint64_t* registers, unsigned e, type t) {
  const unsigned per_register = std::max(4 / bytes_of(t), 1U);
  return registers[e / per_register] >> (bits_of(t) * (e % per_register)) & (~u64{0} >> (64 - bits_of(t)));
}

void put_element(std::uint64_t* registers, unsigned e, type t, u64 raw) {
  const unsigned per_register = std::max(4 / bytes_of(t), 1U);
  registers[e / per_register] |= raw << (bits_of(t) * (e % per_register));
}

// Returns the distance from the first element of the matrix to an element, in elements.
u64 memory_index(const matrix_part& part, unsigned number, bool by_rows, u64 stride) {
  const unsigned row = number / part.columns, column = number % part.columns;
  return by_rows ? row * stride + column : column * stride + row;
}

}  // namespace

double decode_element(u64 raw, type t) {
  switch (t) {
    case type::f16: return decode(raw & 0xffff, half_format);
    case type::bf16: return decode(raw & 0xffff, brain_format);
    case type::s8: return static_cast<std::int8_t>(raw);
    case type::u8: return static_cast<std::uint8_t>(raw);
    case type::s32: return static_cast<std::int32_t>(raw);
    case type::f64: return std::bit_cast<double>(raw);
    case type::tf32: return std::bit_cast<float>(static_cast<u32>(raw & 0xffffe000U));
    default: return std::bit_cast<float>(static_cast<u32>(raw));
  }
}

u64 encode_element(double value, type t) {
  if (t == type::f16) return encode(value, half_format, rounding::nearest_even);
  if (t == type::f64) return std::bit_cast<u64>(value);
  return std::bit_cast<u32>(static_cast<float>(value));
}

u64 encode_integer(double value, bool saturates) {
  if (saturates)
    return static_cast<u32>(static_cast<std::int32_t>(std::min(std::max(value, -2147483648.0), 2147483647.0)));
  return static_cast<u32>(static_cast<std::int64_t>(value));
}

void load_fragment(const instruction& i, std::uint32_t lane, const void* matrix, std::uint64_t stride,
                   std::uint64_t* registers) {
  const matrix_part part = part_of(i, *matrix_shape_of(i));
  const unsigned size = bytes_of(part.element), mine = part.elements_per_thread();
  for (unsigned r = 0; r < part.registers; ++r) registers[r] = 0;
  for (unsigned e = 0; e < mine; ++e) {
    u64 raw = 0;
    std::memcpy(
        &raw,
        static_cast<const char*>(matrix) + memory_index(part, lane * mine + e, i.has(modifier::row), stride) * size,
        size);
    put_element(registers, e, part.element, raw);
  }
}

void store_fragment(const instruction& i, std::uint32_t lane, void* matrix, std::uint64_t stride,
                    const std::uint64_t* registers) {
  const matrix_part part = part_of(i, *matrix_shape_of(i));
  const unsigned size = bytes_of(part.element), mine = part.elements_per_thread();
  for (unsigned e = 0; e < mine; ++e) {
    const u64 raw = element_of(registers, e, part.element);
    std::memcpy(static_cast<char*>(matrix) + memory_index(part, lane * mine + e, i.has(modifier::row), stride) * size,
                &raw, size);
  }
}

std::vector<std::uint64_t> fragment_offsets(const instruction& i, std::uint32_t lane, std::uint64_t stride) {
  const matrix_part part = part_of(i, *matrix_shape_of(i));
  const unsigned mine = part.elements_per_thread();
  std::vector<std::uint64_t> offsets;
  for (unsigned e = 0; e < mine; ++e)
    offsets.push_back(memory_index(part, lane * mine + e, i.has(modifier::row), stride) * bytes_of(part.element));
  return offsets;
}

std::uint64_t fragment_bytes(const instruction& i, std::uint64_t stride) {
  const matrix_part part = part_of(i, *matrix_shape_of(i));
  return (memory_index(part, part.rows * part.columns - 1, i.has(modifier::row), stride) + 1) * bytes_of(part.element);
}

void meet_matrices(block_context& block, const instruction& what, std::uint32_t first) {
  if (what.op == opcode::mma) return multiply_fragments(block, what, first);
  if (what.op != opcode::wmma) return move_matrices(block, what, first);
  const matrix_shape shape = *matrix_shape_of(what);
  std::vector<double> parts[3];
  const matrix_part* const sizes[3] = {&shape.a, &shape.b, &shape.c};
  std::size_t operand = 0;
  for (unsigned p = 0; p < 3; ++p) {
    const unsigned mine = sizes[p]->elements_per_thread();
    parts[p].resize(std::size_t{mine} * warp_size);
    for (u32 lane = 0; lane < warp_size; ++lane) {
      u64 registers[8] = {};
      for (unsigned r = 0; r < sizes[p]->registers; ++r)
        registers[r] = value_of(block, first + lane, what.sources[operand + r]);
      for (unsigned e = 0; e < mine; ++e)
        parts[p][lane * mine + e] = decode_element(element_of(registers, e, sizes[p]->element), sizes[p]->element);
    }
    operand += sizes[p]->registers;
  }
  const unsigned mine = shape.d.elements_per_thread();
  const bool whole = shape.d.element == type::s32;
  for (u32 lane = 0; lane < warp_size; ++lane) {
    u64 registers[8] = {};
    for (unsigned e = 0; e < mine; ++e) {
      const unsigned row = (lane * mine + e) / shape.d.columns, column = (lane * mine + e) % shape.d.columns;
      double sum = parts[2][row * shape.c.columns + column];  // exact for integers: the sums stay below 2^53
      for (unsigned k = 0; k < shape.a.columns; ++k)
        sum = std::fma(parts[0][row * shape.a.columns + k], parts[1][k * shape.b.columns + column], sum);
      const u64 raw = whole ? encode_integer(sum, what.has(modifier::satfinite)) : encode_element(sum, shape.d.element);
      put_element(registers, e, shape.d.element, raw);
    }
    for (unsigned r = 0; r < shape.d.registers; ++r) set_result(block, first + lane, what.results[r], registers[r]);
  }
}

}  // namespace hpe::ptx
