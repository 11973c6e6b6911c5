// Variables: declarations and initial values.

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/ptx/text/text_parser.h"

namespace hpe::ptx {

namespace {

constexpr std::uint64_t most_alignment = 1 << 16;
constexpr std::uint64_t most_size = std::uint64_t{1} << 48;

}  // namespace

// [.align n] [.v2] .type [.ptr ...] name[n][m], for variables and parameters
text_parser::variable text_parser::parse_declarator(bool with_name) {
  variable v;
  bool is_of_pointee = false;  // an .align after .ptr describes the memory that the parameter points to
  for (;;) {
    if (tokens_.peek().what != token::kind::dotted) break;
    const std::string_view name = tokens_.peek().text;
    if (name == "align") {
      tokens_.take();
      const std::uint64_t alignment = expect_integer();
      if (!std::has_single_bit(alignment) || alignment > most_alignment)
        fail(fmt::format("the alignment {} is not a power of two up to {}", alignment, most_alignment));
      if (!is_of_pointee) v.alignment = static_cast<std::uint32_t>(alignment);
    } else if (name == "v2" || name == "v4") {
      tokens_.take();
      v.vector = name == "v2" ? 2 : 4;
    } else if (name == "ptr" || name == "global" || name == "const" || name == "shared" || name == "local" ||
               name.starts_with("attribute")) {
      is_of_pointee |= name == "ptr";
      tokens_.take();
    } else if (const auto t = type_of_name(name)) {
      tokens_.take();
      v.element = *t;
    } else if (name == "texref" || name == "samplerref" || name == "surfref") {
      unsupported(fmt::format("a variable of type .{}", name));
    } else {
      fail("a type expected");
    }
  }
  if (v.element == type::none) fail("a type expected");
  const std::uint32_t element = bytes_of(v.element) * v.vector;
  v.size = element;
  if (v.alignment == 0) v.alignment = element;
  if (!with_name && tokens_.peek().what != token::kind::word) return v;
  v.name = expect_word();
  if (tokens_.peek().is('<')) unsupported("a family of variables");
  while (accept('[')) {
    if (tokens_.peek().is(']')) {
      v.open_ended = true;
      v.size = 0;
    } else {
      const std::uint64_t elements = expect_integer();
      if (elements > most_size / std::max<std::uint64_t>(v.size, 1)) fail("a variable is too large");
      v.size *= elements;
    }
    expect(']');
  }
  return v;
}

std::uint32_t text_parser::declare_symbol(const variable& v, symbol::space where, const qualifiers& q,
                                          std::uint32_t owner) {
  const std::string name(v.name);
  const bool shared_name = q.is_extern || q.is_visible || q.is_weak;
  if (shared_name && where != symbol::space::shared) {
    if (const auto known = linkage_.symbols.find(name); known != linkage_.symbols.end()) {
      symbol& s = program_.symbols[known->second];
      if (!q.is_extern && s.is_defined && !q.is_weak) fail(fmt::format("the variable {} is defined twice", name));
      if (!q.is_extern && !s.is_defined) {
        s.is_defined = true;
        s.size = v.size;
        s.alignment = v.alignment;
      }
      return known->second;
    }
  }
  symbol s;
  s.name = name;
  s.where = where;
  s.size = v.size;
  s.alignment = std::max<std::uint32_t>(v.alignment, 1);
  s.is_defined = !q.is_extern;
  s.owner = owner;
  s.is_dynamic_shared = where == symbol::space::shared && (q.is_extern || v.open_ended);
  if (s.is_dynamic_shared) s.is_defined = true;
  const auto index = static_cast<std::uint32_t>(program_.symbols.size());
  program_.symbols.push_back(std::move(s));
  if (shared_name && where != symbol::space::shared) linkage_.symbols[name] = index;
  return index;
}

// Parses a variable outside of functions. With unknown_code::left_out, skips a variable of an unknown type.
void text_parser::parse_known_variable(symbol::space where, const qualifiers& q) {
  const lexer begin = tokens_;
  try {
    parse_variable(where, q, symbol::no_owner);
  } catch (const error&) {
    if (!leaves_out_) throw;
    tokens_ = begin;
    skip_past(';');
  }
}

void text_parser::parse_variable(symbol::space where, const qualifiers& q, std::uint32_t owner) {
  bool managed = false;
  if (accept_dotted("attribute")) {  // .attribute(.managed)
    expect('(');
    managed = accept_dotted("managed");
    if (!managed) unsupported("this attribute");
    expect(')');
  }
  do {
    const variable v = parse_declarator(true);
    const std::uint32_t index = declare_symbol(v, where, q, owner);
    program_.symbols[index].is_managed |= managed;
    names_.declare(v.name, {operand::kind::symbol, index, 0, static_cast<std::uint32_t>(v.size)});
    if (accept('=')) parse_initial(program_.symbols[index], v);
  } while (accept(','));
  expect(';');
}

void text_parser::parse_initial(symbol& s, const variable& v) {
  std::uint64_t offset = 0;
  s.initial.clear();
  s.relocations.clear();
  if (!tokens_.peek().is('{')) {
    parse_initial_element(s, v, offset);
  } else {
    unsigned depth = 0;
    do {
      if (accept('{')) {
        ++depth;
      } else if (accept('}')) {
        --depth;
      } else if (!accept(',')) {
        parse_initial_element(s, v, offset);
      }
    } while (depth > 0);
  }
  if (s.size == 0) s.size = offset;  // name[] = {...}
  if (offset > s.size) fail(fmt::format("{} has more initial values than elements", s.name));
}

// Parses a number, the address of a variable or function, generic(address), or one byte of an address as
// 0xFF00(address).
void text_parser::parse_initial_element(symbol& s, const variable& v, std::uint64_t& offset) {
  const std::uint32_t size = bytes_of(v.element);
  std::uint64_t mask = ~std::uint64_t{0};
  std::uint64_t value = 0;
  bool is_address = false;
  bool negative = accept('-');
  if (tokens_.peek().what == token::kind::word) {
    is_address = true;
    if (tokens_.peek().text == "generic") {
      tokens_.take();
      expect('(');
    }
  } else {
    const operand_syntax number = parse_number(negative);
    value = number.value;
    if (number.what == operand_syntax::kind::float64 && size == 4) fail("a double for a float");
    if (tokens_.peek().is('(')) {
      tokens_.take();
      mask = value;
      is_address = true;
    }
  }
  if (is_address) {
    const std::string_view name = expect_word();
    const auto found = names_.find(name);
    if (!found) fail(fmt::format("'{}' is not declared", name));
    symbol::relocation r;
    r.offset = static_cast<std::uint32_t>(offset);
    r.size = size;
    r.is_function = found->what == operand::kind::function;
    r.target = found->index;
    r.mask = mask;
    value = 0;
    if (accept(')') && accept('+')) r.addend = expect_integer();
    if (accept('+')) r.addend = expect_integer();
    accept(')');
    s.relocations.push_back(r);
  }
  for (std::uint32_t n = 0; n < size; ++n) s.initial.push_back(static_cast<std::uint8_t>(value >> (8 * n)));
  offset += size;
}

}  // namespace hpe::ptx
