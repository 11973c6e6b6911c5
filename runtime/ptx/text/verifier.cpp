#include "runtime/ptx/text/verifier.h"

#include "runtime/base/error.h"

namespace hpe::ptx {

namespace {

class function_verifier {
 public:
  function_verifier(const program& p, const function& f) : program_(p), function_(f) {}

  void run() {
    for (const instruction& i : function_.code) {
      if (i.guard.is_register()) check(i, i.guard, 1, "the guard");
      switch (i.kind) {
        case kind::pure: check_pure(i); break;
        case kind::load:
          if (i.op != opcode::wmma) check_access(i, i.results, 0);
          break;
        case kind::store:
          if (i.op != opcode::wmma) check_access(i, i.sources, 1);
          break;
        case kind::atomic: check_atomic(i); break;
        case kind::address_space: check_address_space(i); break;
        default: break;
      }
    }
  }

 private:
  [[noreturn]] void fail(const instruction& i, const std::string& what) const {
    HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: '{}' in {}: {}", i.line, program_.text_of(function_, i),
              function_.name, what);
  }

  [[nodiscard]] unsigned width(const operand& o) const { return bits_of(function_.registers[o.index]); }

  void check(const instruction& i, const operand& o, unsigned bits, const char* what) const {
    if (!o.is_register() || bits == 0 || width(o) == bits) return;
    fail(i, fmt::format("{} {} has {} bits, expected {}", what, function_.register_names[o.index], width(o), bits));
  }

  // The width of an operand for a letter of the table.
  [[nodiscard]] static unsigned width_of_letter(char letter, const instruction& i) {
    switch (letter) {
      case 't': return bits_of(i.types[0]);
      case 's': return bits_of(i.second_type());
      case 'w': return bits_of(i.types[0]) * (i.has(modifier::wide) ? 2 : 1);
      case 'p': return 1;
      case 'h': return 16;
      case 'u': return 32;
      case 'v': return 64;
      default: return 0;
    }
  }

  void check_pure(const instruction& i) const {
    const std::string_view shape = form_of(i.op).operands;
    if (i.op == opcode::cvt) return check_conversion(i);
    if (shape == "*") return;
    const std::size_t equals = shape.find('=');
    const std::size_t sources = shape.size() - equals - 1;
    // The predicate operand of set and setp has been lowered to other instructions; operands of prmt and div are as
    // written.
    if (i.results.size() != equals || i.sources.size() != sources)
      fail(i, fmt::format("{} operands, expected {}", i.results.size() + i.sources.size(), equals + sources));
    for (std::size_t n = 0; n < equals; ++n) check(i, i.results[n], width_of_letter(shape[n], i), "the result");
    for (std::size_t n = 0; n < sources; ++n)
      check(i, i.sources[n], width_of_letter(shape[equals + 1 + n], i), "the operand");
  }

  // cvt accepts registers that are wider than its types.
  void check_conversion(const instruction& i) const {
    const type to = i.types[0];
    const bool packed = to == type::f16x2 || to == type::bf16x2 || to == type::e4m3x2 || to == type::e5m2x2;
    const bool pair = packed && i.second_type() == type::f32;
    if (i.sources.size() != (pair ? 2 : 1)) fail(i, "the wrong number of operands");
    if (width(i.results[0]) < bits_of(i.types[0])) fail(i, "the result is narrower than its type");
    for (const operand& o : i.sources)
      if (o.is_register() && width(o) < bits_of(i.second_type())) fail(i, "an operand is narrower than its type");
  }

  void check_address(const instruction& i) const {
    const operand& address = i.sources[0];
    if (address.is_register() && width(address) != 64 && width(address) != 32)
      fail(i, "an address has 64 bits, or 32 in shared memory");
  }

  void check_access(const instruction& i, const std::vector<operand>& values, std::size_t from) const {
    check_address(i);
    for (std::size_t n = from; n < values.size(); ++n)
      if (values[n].is_register() && width(values[n]) < bits_of(i.types[0]))
        fail(i, fmt::format("the register {} is narrower than the type", function_.register_names[values[n].index]));
  }

  void check_atomic(const instruction& i) const {
    check_address(i);
    if (!i.results.empty()) check(i, i.results[0], bits_of(i.types[0]), "the result");
    for (std::size_t n = 1; n < i.sources.size(); ++n) check(i, i.sources[n], bits_of(i.types[0]), "the operand");
  }

  void check_address_space(const instruction& i) const {
    if (!i.results[0].is_register()) fail(i, "the result is missing");
    check(i, i.results[0], i.op == opcode::cvta ? 64 : 1, "the result");
    check(i, i.sources[0], 64, "the operand");
  }

  const program& program_;
  const function& function_;
};

}  // namespace

void verify(const program& p) {
  for (const auto& f : p.functions) function_verifier(p, *f).run();
}

}  // namespace hpe::ptx
