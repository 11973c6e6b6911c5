#include "runtime/ptx/text/verifier.h"

#include "runtime/base/error.h"
#include "runtime/ptx/execution/textures/texture_access.h"

namespace hpe::ptx {

namespace {

// Returns whether a register of type `declared` may be an operand of type `wanted` (PTX ISA, sections "Operand Type
// Conversion" and "Type Checking Rules"). As in ptxas, a register of type f16x2 or bf16x2 may be an operand of a bit or
// integer type.
bool agree(type wanted, type declared) {
  if (wanted == type::pred || declared == type::pred) return wanted == declared;
  const bool is_bits = !is_float(wanted) && name_of(wanted).starts_with('b');
  const bool declared_bits = !is_float(declared) && name_of(declared).starts_with('b');
  const bool is_pair = declared == type::f16x2 || declared == type::bf16x2;
  if (is_bits || declared_bits || wanted == declared) return true;
  if (is_float(wanted)) return false;
  return !is_float(declared) || is_pair;
}

class function_verifier {
 public:
  function_verifier(const program& p, const function& f) : program_(p), function_(f) {}

  void run() {
    for (const instruction& i : function_.code) {
      if (i.guard.is_register()) check(i, i.guard, type::pred, "the guard");
      switch (i.kind) {
        case kind::pure: check_pure(i); break;
        case kind::load: i.op == opcode::wmma ? check_fragments(i) : check_access(i, i.results, 0); break;
        case kind::store: i.op == opcode::wmma ? check_fragments(i) : check_access(i, i.sources, 1); break;
        case kind::atomic: check_atomic(i); break;
        case kind::address_space:
          if (!i.results[0].is_register()) fail(i, "the result is missing");
          check_shape(i);
          break;
        case kind::warp:
          if (form_of(i.op).kind == kind::warp) check_shape(i);
          if (i.op == opcode::bar) check(i, i.sources[0], type::u32, "the mask");
          break;
        case kind::barrier: check_barrier(i); break;
        case kind::matrix: check_fragments(i); break;
        case kind::texture: check_texture(i); break;
        default: break;
      }
    }
  }

 private:
  [[noreturn]] void fail(const instruction& i, const std::string& what) const {
    HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: '{}' in {}: {}", i.line, program_.text_of(function_, i),
              function_.name, what);
  }

  [[nodiscard]] type declared(const operand& o) const { return function_.registers[o.index]; }

  // Requires that a register has the type `wanted`, or another type of the same size that agrees with it. is_least: a
  // larger register is also allowed.
  void check(const instruction& i, const operand& o, type wanted, const char* what, bool is_least = false) const {
    if (!o.is_register() || wanted == type::none) return;
    const type has = declared(o);
    const bool fits = is_least ? bits_of(has) >= bits_of(wanted) : bits_of(has) == bits_of(wanted);
    const bool is_wider_float = bits_of(has) > bits_of(wanted) && is_float(wanted) && is_float(has);
    if (fits && agree(wanted, has) && !is_wider_float) return;
    fail(i, fmt::format("{} {} is declared .{}, which does not agree with .{}", what, function_.register_names[o.index],
                        name_of(has), name_of(wanted)));
  }

  // Returns the type that a letter in the instruction table (instruction.def) means.
  [[nodiscard]] static type type_of_letter(char letter, const instruction& i) {
    switch (letter) {
      case 't': return i.types[0];
      case 's': return i.second_type();
      case 'w':
        if (!i.has(modifier::wide)) return i.types[0];
        return bits_of(i.types[0]) == 16 ? type::u32 : type::u64;
      case 'p': return type::pred;
      case 'h': return type::u16;
      case 'u': return type::u32;
      case 'v': return type::u64;
      default: return type::none;
    }
  }

  // An instruction of a whole warp may omit the second result.
  void check_shape(const instruction& i) const {
    const std::string_view shape = form_of(i.op).operands;
    if (shape == "*") return;
    const std::size_t equals = shape.find('=');
    const std::size_t sources = shape.size() - equals - 1;
    const bool may_leave_out = i.kind == kind::warp && i.results.size() < equals;
    if ((i.results.size() != equals && !may_leave_out) || i.sources.size() != sources)
      fail(i, fmt::format("{} operands, expected {}", i.results.size() + i.sources.size(), equals + sources));
    if (shape.find('t') != std::string_view::npos && i.types[0] == type::none) fail(i, "the type is missing");
    for (std::size_t n = 0; n < i.results.size(); ++n)
      check(i, i.results[n], type_of_letter(shape[n], i), "the result");
    for (std::size_t n = 0; n < sources; ++n)
      check(i, i.sources[n], type_of_letter(shape[equals + 1 + n], i), "the operand");
  }

  void check_pure(const instruction& i) const {
    if (i.op == opcode::cvt) return check_conversion(i);
    const type t = i.types[0];
    // Only integer products may have .wide, .lo or .hi, and only 16-bit and 32-bit products may have .wide.
    const bool is_product = i.op == opcode::mul || i.op == opcode::mad;
    if (is_product && is_float(t) && i.modifiers.one_of(modifier::wide, modifier::lo, modifier::hi) != modifier::count)
      fail(i, fmt::format(".wide, .lo and .hi are for integers, but .{} is not an integer type", name_of(t)));
    if (i.has(modifier::wide) && bits_of(t) > 32)
      fail(i, fmt::format(".wide needs a 16-bit or 32-bit type, but the type is .{}", name_of(t)));
    check_shape(i);
  }

  // cvt accepts registers that are wider than its types.
  void check_conversion(const instruction& i) const {
    const type to = i.types[0];
    const bool packed = to == type::f16x2 || to == type::bf16x2 || to == type::e4m3x2 || to == type::e5m2x2;
    const bool pair = packed && i.second_type() == type::f32;
    if (i.sources.size() != (pair ? 2 : 1)) fail(i, "the number of operands is wrong");
    check(i, i.results[0], to, "the result", true);
    for (const operand& o : i.sources) check(i, o, i.second_type(), "the operand", true);
  }

  void check_address(const instruction& i) const {
    const operand& address = i.sources[0];
    if (!address.is_register()) return;
    const type t = declared(address);
    if ((bits_of(t) != 64 && bits_of(t) != 32) || is_float(t))
      fail(i, "an address must be a 64-bit integer, or a 32-bit integer in shared memory");
  }

  void check_access(const instruction& i, const std::vector<operand>& values, std::size_t from) const {
    check_address(i);
    for (std::size_t n = from; n < values.size(); ++n) check(i, values[n], i.types[0], "the register", true);
  }

  void check_atomic(const instruction& i) const {
    check_address(i);
    if (!i.results.empty()) check(i, i.results[0], i.types[0], "the result");
    for (std::size_t n = 1; n < i.sources.size(); ++n) check(i, i.sources[n], i.types[0], "the operand");
  }

  // sources: the number of the barrier, the number of threads, the predicate
  void check_barrier(const instruction& i) const {
    if (i.has(modifier::cluster)) return;
    check(i, i.sources[0], type::u32, "the barrier");
    check(i, i.sources[1], type::u32, "the number of threads");
    check(i, i.sources[2], type::pred, "the operand");
    if (!i.results.empty()) check(i, i.results[0], i.has(modifier::op_popc) ? type::u32 : type::pred, "the result");
  }

  // Checks the registers of fragments, which contain packed elements.
  void check_fragments(const instruction& i) const {
    const bool may_be_wide = i.op == opcode::mma || (i.op == opcode::wmma && i.types[0] == type::f64);
    const bool is_load_or_store = i.kind == kind::load || i.kind == kind::store;
    std::size_t first = 0;
    if (is_load_or_store || i.op == opcode::ldmatrix || i.op == opcode::stmatrix) {
      check_address(i);
      first = 1;
    }
    const auto check_register = [&](const operand& o) {
      if (!o.is_register()) return;
      const unsigned bits = bits_of(declared(o));
      if (bits != 32 && !(may_be_wide && bits == 64))
        fail(i, fmt::format("the register {} has {} bits, expected 32", function_.register_names[o.index], bits));
    };
    for (const operand& o : i.results) check_register(o);
    for (std::size_t n = first; n < i.sources.size(); ++n) check_register(i.sources[n]);
  }

  void check_texture(const instruction& i) const {
    for (const operand& o : i.results) check(i, o, i.types[0], "the result", true);
    if (i.op == opcode::sust)
      for (std::size_t n = first_surface_value; n < i.sources.size(); ++n)
        check(i, i.sources[n], i.types[0], "the operand", true);
    check(i, i.sources[0], type::u64, "the object");
    const type coordinate = i.types[1] == type::none ? type::s32 : i.types[1];
    for (std::size_t n = texture_layer; n < first_surface_value && n < i.sources.size(); ++n)
      check(i, i.sources[n], n == texture_layer ? type::u32 : coordinate, "the coordinate");
  }

  const program& program_;
  const function& function_;
};

}  // namespace

void verify(const program& p, const function& f) { function_verifier(p, f).run(); }

}  // namespace hpe::ptx
