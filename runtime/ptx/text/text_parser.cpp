// Directives outside of functions: variables, prototypes and others.

#include "runtime/ptx/text/text_parser.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ptx/execution/calls/device_runtime.h"

namespace hpe::ptx {

text_parser::text_parser(program& into, linkage& shared, std::uint32_t text, unknown_code unknown)
    : program_(into),
      linkage_(shared),
      text_(text),
      leaves_out_(unknown == unknown_code::left_out),
      tokens_(into.texts[text]) {}

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
  if (!has_version_) fail(".version is missing, so this is not PTX");
}

void text_parser::parse_version() {
  has_version_ = true;
  tokens_.take();  // the version, such as 9.0
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

// Returns the index in program::files of the file with the number `number` in .file and .loc. nvcc writes .file
// directives after the .loc directives that use their numbers.
std::uint32_t text_parser::file_of(std::uint64_t number) {
  if (number > 1 << 20) fail("the number of a file is larger than 1048576");
  if (files_.size() <= number) files_.resize(number + 1, 0);
  if (files_[number] == 0) {
    files_[number] = static_cast<std::uint32_t>(program_.files.size());
    program_.files.emplace_back();
  }
  return files_[number];
}

// .file 1 "name" [, time, size]
void text_parser::parse_file() {
  const std::uint32_t file = file_of(expect_integer());
  program_.files[file] = tokens_.take().text;
  while (accept(',')) tokens_.take();
}

void text_parser::parse_directive() {
  const token first = tokens_.take();
  if (first.is(';')) return;
  if (first.what != token::kind::dotted) {
    HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: a directive is expected at '{}'", first.line, first.text);
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
  if (directive.is_dotted("global")) return parse_known_variable(symbol::space::global, q);
  if (directive.is_dotted("const")) return parse_known_variable(symbol::space::constant, q);
  if (directive.is_dotted("shared")) return parse_known_variable(symbol::space::shared, q);
  HPE_THROW(HPE_ERROR_NOT_SUPPORTED, "PTX line {}: the directive '.{}' is not supported", directive.line,
            directive.text);
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
  // This table is never destroyed, because programs may launch kernels while they exit.
  static const auto& builtins =
      *new const std::unordered_map<std::string_view, builtin>{{"vprintf", builtin::print},
                                                               {"malloc", builtin::allocate},
                                                               {"free", builtin::release},
                                                               {"__assertfail", builtin::assertion}};
  if (const auto known = builtins.find(name); q.is_extern && known != builtins.end()) f->system_call = known->second;
  if (q.is_extern && is_in_device_runtime(name)) f->system_call = builtin::device_runtime;
  const auto index = static_cast<std::uint32_t>(program_.functions.size());
  program_.functions.push_back(std::move(f));
  if (shared_name) linkage_.functions[key] = index;
  names_.declare(name, {operand::kind::function, index, 0, 0});
  return index;
}

}  // namespace hpe::ptx
