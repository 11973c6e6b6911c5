#include "runtime/ptx/program/matrix_shape.h"

namespace hpe::ptx {

namespace {

struct tile_size {
  unsigned m, n, k;
};

std::optional<tile_size> tile_size_of(const instruction& i) {
  if (i.has(modifier::m8n8k4)) return tile_size{8, 8, 4};
  if (i.has(modifier::m16n16k8)) return tile_size{16, 16, 8};
  if (i.has(modifier::m16n16k16)) return tile_size{16, 16, 16};
  if (i.has(modifier::m32n8k16)) return tile_size{32, 8, 16};
  if (i.has(modifier::m8n32k16)) return tile_size{8, 32, 16};
  return std::nullopt;
}

// f16 operands have eight registers in every shape, and these registers contain each element twice (PTX ISA, "Matrix
// Fragments for WMMA").
unsigned operand_registers(const matrix_part& part) {
  if (part.element == type::f16) return 8;
  return part.elements_per_thread() * bytes_of(part.element) / bytes_of(part.register_type());
}

unsigned accumulator_registers(const matrix_part& part) {
  return part.element == type::f16 ? 4 : part.elements_per_thread();
}

// Returns whether matrices A and B of this size may have an element type. Shapes with k = 4 or k = 8 allow one type
// each; all other shapes allow the same types.
bool has_operands_of(const tile_size& size, type element) {
  if (size.k == 4) return element == type::f64;
  if (size.k == 8) return element == type::tf32;
  return element == type::f16 || element == type::bf16 || element == type::s8 || element == type::u8;
}

}  // namespace

std::optional<matrix_shape> matrix_shape_of(const instruction& i) {
  const auto size = tile_size_of(i);
  if (!size) return std::nullopt;
  type d = i.types[0], a = type::f16, b = type::f16, c = i.types[1];
  if (i.has(modifier::mma)) {
    if (i.types[2] != type::none) {
      a = i.types[1];
      b = i.types[2];
      c = i.types[3];
    }
    const bool whole = a == type::s8 || a == type::u8, wide = a == type::f64;
    if (c == type::none || whole != (c == type::s32) || whole != (d == type::s32) || wide != (c == type::f64) ||
        wide != (d == type::f64))
      return std::nullopt;
    if (a != b || !has_operands_of(*size, a)) return std::nullopt;
  } else {
    a = b = c = d;
  }
  matrix_shape shape{
      {size->m, size->k, a, 0}, {size->k, size->n, b, 0}, {size->m, size->n, c, 0}, {size->m, size->n, d, 0}};
  shape.a.registers = operand_registers(shape.a);
  shape.b.registers = operand_registers(shape.b);
  shape.c.registers = accumulator_registers(shape.c);
  shape.d.registers = accumulator_registers(shape.d);
  return shape;
}

matrix_part part_of(const instruction& i, const matrix_shape& shape) {
  if (i.has(modifier::a)) return shape.a;
  if (i.has(modifier::b)) return shape.b;
  return shape.c;
}

}  // namespace hpe::ptx
