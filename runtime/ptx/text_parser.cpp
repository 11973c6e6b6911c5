// The level of a text outside functions: variables, prototypes, directives.

#include "runtime/ptx/text_parser.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::ptx {

text_parser::text_parser(program& into, linkage& shared, std::uint32_t text)
    : program_(into), linkage_(shared), text_(text), tokens_(into.texts[text]) {}

void text_parser::fail(const std::string& what) const {
  const token& at = tokens_.peek();
  HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: {} at '{}'", at.line, what,
            at.what == token::kind::end ? "the end" : at.text);
}

void text_parser::unsupported(const std::string& what) const {
  HPE_THROW(HPE_ERROR_NOT_SUPPORTED, "PTX line {}: {} is not supported", tokens_.peek().line, what);
}

bool text_parser::accept(char c) {
  if (!tokens_.peek().is(c)) return false;
  tokens_.take();
  return true;
}

bool text_parser::accept_dotted(std::string_view name) {
  if (!tokens_.peek().is_dotted(name)) return false;
  tokens_.take();
  return true;
}

void text_parser::expect(char c) {
  if (!accept(c)) fail(fmt::format("'{}' expected", c));
}

std::string_view text_parser::expect_word() {
  if (tokens_.peek().what != token::kind::word) fail("a name expected");
  return tokens_.take().text;
}

std::uint64_t text_parser::expect_integer() {
  if (tokens_.peek().what != token::kind::integer) fail("a number expected");
  return tokens_.take().value;
}

void text_parser::skip_past(char c) {
  while (!tokens_.peek().is(c)) {
    if (tokens_.peek().what == token::kind::end) fail(fmt::format("'{}' expected", c));
    tokens_.take();
  }
  tokens_.take();
}

void text_parser::skip_braces() {
  expect('{');
  for (unsigned depth = 1; depth > 0;) {
    if (tokens_.peek().what == token::kind::end) fail("'}' expected");
    const token t = tokens_.take();
    if (t.is('{')) ++depth;
    if (t.is('}')) --depth;
  }
}

void text_parser::parse() {
  while (tokens_.peek().what != token::kind::end) parse_directive();
  if (!has_version_) fail("no .version: this is no PTX");
}

void text_parser::parse_version() {
  has_version_ = true;
  tokens_.take();  // 9.0
}

// .target sm_90a, debug
void text_parser::parse_target() {
  do {
    std::string_view word = tokens_.take().text;
    std::uint32_t number = 0;
    if (!word.starts_with("sm_")) continue;
    for (word.remove_prefix(3); !word.empty() && word[0] >= '0' && word[0] <= '9'; word.remove_prefix(1))
      number = number * 10 + static_cast<std::uint32_t>(word[0] - '0');
    program_.architecture = std::max(program_.architecture, number);
  } while (accept(','));
}

// .file 1 "name" [, time, size]
void text_parser::parse_file() {
  const std::uint64_t number = expect_integer();
  if (number > 1 << 20) fail("the number of a file is too large");
  if (files_.size() <= number) files_.resize(number + 1, 0);
  files_[number] = static_cast<std::uint32_t>(program_.files.size());
  program_.files.emplace_back(tokens_.take().text);
  while (accept(',')) tokens_.take();
}

void text_parser::parse_directive() {
  const token first = tokens_.take();
  if (first.is(';')) return;
  if (first.what != token::kind::dotted) {
    HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: a directive expected at '{}'", first.line, first.text);
  }
  if (first.text == "version") return parse_version();
  if (first.text == "file") return parse_file();
  if (first.text == "target") return parse_target();
  if (first.text == "address_size") {
    if (expect_integer() != 64) unsupported("an address size other than 64");
    return;
  }
  if (first.text == "section") {
    if (tokens_.peek().what == token::kind::dotted || tokens_.peek().what == token::kind::word) tokens_.take();
    return skip_braces();
  }
  if (first.text == "pragma" || first.text == "alias") return skip_past(';');
  qualifiers q;
  token directive = first;
  for (;; directive = tokens_.take()) {
    if (directive.is_dotted("extern"))
      q.is_extern = true;
    else if (directive.is_dotted("visible") || directive.is_dotted("common"))
      q.is_visible = true;
    else if (directive.is_dotted("weak"))
      q.is_weak = true;
    else
      break;
  }
  if (directive.is_dotted("entry")) return parse_function(true, q);
  if (directive.is_dotted("func")) return parse_function(false, q);
  if (directive.is_dotted("global")) return parse_variable(symbol::space::global, q, symbol::no_owner);
  if (directive.is_dotted("const")) return parse_variable(symbol::space::constant, q, symbol::no_owner);
  if (directive.is_dotted("shared")) return parse_variable(symbol::space::shared, q, symbol::no_owner);
  HPE_THROW(HPE_ERROR_NOT_SUPPORTED, "PTX line {}: the directive '.{}' is not supported", directive.line,
            directive.text);
}

// [.align n] [.v2] .type [.ptr ...] name[n][m], as variables and parameters have it
text_parser::variable text_parser::parse_declarator(bool with_name) {
  variable v;
  for (;;) {
    if (tokens_.peek().what != token::kind::dotted) break;
    const std::string_view name = tokens_.peek().text;
    if (name == "align") {
      tokens_.take();
      v.alignment = static_cast<std::uint32_t>(expect_integer());
    } else if (name == "v2" || name == "v4") {
      tokens_.take();
      v.vector = name == "v2" ? 2 : 4;
    } else if (name == "ptr" || name == "global" || name == "const" || name == "shared" || name == "local" ||
               name.starts_with("attribute")) {
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
      v.size *= expect_integer();
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
  if (where == symbol::space::shared && !s.is_dynamic_shared) {
    std::uint32_t& top = owner == symbol::no_owner ? program_.shared_size : program_.functions[owner]->shared_size;
    s.shared_offset = (top + s.alignment - 1) / s.alignment * s.alignment;
    top = s.shared_offset + static_cast<std::uint32_t>(s.size);
  }
  program_.symbols.push_back(std::move(s));
  if (shared_name && where != symbol::space::shared) linkage_.symbols[name] = index;
  return index;
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
  if (offset > s.size) fail(fmt::format("{} has more initial values than room", s.name));
}

// A number, the address of a variable or function, generic(address), or a byte of one as 0xFF00(address).
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

std::uint32_t text_parser::declare_function(std::string_view name, const qualifiers& q) {
  const std::string key(name);
  const bool shared_name = q.is_extern || q.is_visible || q.is_weak;
  if (const auto local = names_.find(name); local && local->what == operand::kind::function) {
    if (shared_name) linkage_.functions[key] = local->index;
    return local->index;
  }
  if (const auto known = linkage_.functions.find(key); shared_name && known != linkage_.functions.end()) {
    names_.declare(name, {operand::kind::function, known->second, 0, 0});
    return known->second;
  }
  auto f = std::make_unique<function>();
  f->name = key;
  f->text = text_;
  static const std::unordered_map<std::string_view, builtin> builtins{{"vprintf", builtin::print},
                                                                      {"malloc", builtin::allocate},
                                                                      {"free", builtin::release},
                                                                      {"__assertfail", builtin::assertion}};
  if (const auto known = builtins.find(name); q.is_extern && known != builtins.end()) f->system_call = known->second;
  const auto index = static_cast<std::uint32_t>(program_.functions.size());
  program_.functions.push_back(std::move(f));
  if (shared_name) linkage_.functions[key] = index;
  names_.declare(name, {operand::kind::function, index, 0, 0});
  return index;
}

}  // namespace hpe::ptx
