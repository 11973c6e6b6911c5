// Statements on texture and surface objects.

#include "runtime/base/error.h"
#include "runtime/ptx/build/builder.h"
#include "runtime/ptx/execution/textures/texture_access.h"

namespace hpe::ptx {

namespace {

struct geometry {
  bool layered = false;
  std::size_t dimensions = 0;  // 0: unknown geometry
};

geometry geometry_of(const statement& s) {
  if (s.has(modifier::d1)) return {false, 1};
  if (s.has(modifier::d2)) return {false, 2};
  if (s.has(modifier::d3)) return {false, 3};
  if (s.has(modifier::layered_1d)) return {true, 1};
  if (s.has(modifier::layered_2d)) return {true, 2};
  if (s.has(modifier::cube)) return {false, 3};
  if (s.has(modifier::layered_cube)) return {true, 3};
  return {};
}

operand absent_coordinate() {
  operand zero;
  zero.what = operand::kind::immediate;
  return zero;
}

}  // namespace

// Reads [object, {layer, x, y, z}], with as many coordinates as the geometry has. Ignores extra elements of the vector.
std::vector<operand> builder::texture_place(const operand_syntax& where, type coordinates) {
  if (where.what != operand_syntax::kind::address || where.parts.size() != 2)
    fail("an operand with an object and its coordinates is missing");
  const auto [layered, dimensions] = geometry_of(statement_);
  if (dimensions == 0) unsupported("this geometry");
  const bool is_vector = where.parts[1].what == operand_syntax::kind::vector;
  const std::vector<operand_syntax> written = is_vector ? where.parts[1].parts : std::vector{where.parts[1]};
  const std::size_t first = layered ? 1 : 0;
  if (written.size() < first + dimensions) fail("a coordinate is missing");
  std::vector<operand> found(first_surface_value, absent_coordinate());
  found[0] = lookup(where.parts[0], type::u64);
  if (layered) found[texture_layer] = lookup(written[0], type::u32);
  for (std::size_t n = 0; n < dimensions; ++n) found[texture_x + n] = lookup(written[first + n], coordinates);
  return found;
}

void builder::build_texture() {
  const bool reads = statement_.form->op == opcode::tex || statement_.form->op == opcode::tld4;
  const std::size_t types = reads ? 2 : 1;
  if (statement_.types.size() != types) fail(fmt::format("{} types, expected {}", statement_.types.size(), types));
  switch (statement_.form->op) {
    case opcode::tex:
    case opcode::tld4: return build_texture_read();
    case opcode::txq:
    case opcode::suq: return build_texture_query();
    default: return build_surface_access();
  }
}

void builder::build_texture_read() {
  const std::size_t more = statement_.has(modifier::level) ? 1 : statement_.has(modifier::grad) ? 2 : 0;
  expect(2 + more, 2 + more);  // offsets and depth comparisons are not supported
  instruction i = make();
  i.results = elements(written(0), i.types[0], true);
  if (i.results.size() != 4) unsupported("a result that is not a vector of four");
  if (i.op == opcode::tld4 && i.types[1] != type::f32) fail("a gather needs coordinates of type f32");
  if (more != 0 && i.types[1] != type::f32) unsupported("a level with integer coordinates");
  i.sources = texture_place(written(1), i.types[1]);
  if (statement_.has(modifier::level)) i.sources.push_back(lookup(written(2), type::f32));
  if (statement_.has(modifier::grad)) {
    const std::size_t dimensions = geometry_of(statement_).dimensions;
    for (std::size_t n = 0; n < 2; ++n) {
      std::vector<operand> gradient = elements(written(2 + n), type::f32, false);
      if (gradient.size() < dimensions) fail("a gradient is incomplete");
      gradient.resize(dimensions);  // extra elements are ignored
      gradient.resize(3, absent_coordinate());
      i.sources.insert(i.sources.end(), gradient.begin(), gradient.end());
    }
  }
  append(std::move(i));
}

void builder::build_texture_query() {
  expect(2, 2);
  instruction i = make();
  i.results = {result(written(0))};
  const operand_syntax& object = written(1);
  if (object.what != operand_syntax::kind::address || object.parts.size() != 1) fail("the object is missing");
  i.sources = {lookup(object.parts[0], type::u64)};
  append(std::move(i));
}

void builder::build_surface_access() {
  expect(2, 2);
  instruction i = make();
  const bool loads = i.op == opcode::suld;
  if (statement_.has(modifier::b) == statement_.has(modifier::p)) unsupported("this kind of access to a surface");
  if (statement_.has(modifier::p) && i.types[0] != type::b32) fail("a formatted access must have type b32");
  i.vector = static_cast<std::uint8_t>(vector_length());
  constexpr unsigned largest_element = 16;
  if (i.vector * bytes_of(i.types[0]) > largest_element)
    fail("an access has more bytes than an element of a surface can have");
  i.sources = texture_place(written(loads ? 1 : 0), type::s32);
  const std::vector<operand> values = elements(written(loads ? 0 : 1), i.types[0], loads);
  if (values.size() != i.vector) fail(fmt::format("{} registers for a vector of {}", values.size(), i.vector));
  if (loads) {
    i.results = values;
  } else {
    i.sources.insert(i.sources.end(), values.begin(), values.end());
  }
  append(std::move(i));
}

}  // namespace hpe::ptx
