// Statements of a function: operands, and the parts of an instruction's name.

#include "runtime/base/error.h"
#include "runtime/ptx/text/text_parser.h"

namespace hpe::ptx {

operand_syntax text_parser::parse_number(bool negative) {
  operand_syntax o;
  const token t = tokens_.take();
  o.value = t.value;
  switch (t.what) {
    case token::kind::integer:
      o.what = operand_syntax::kind::integer;
      if (negative) o.value = std::uint64_t{0} - o.value;
      break;
    case token::kind::float32:
      o.what = operand_syntax::kind::float32;
      if (negative) o.value ^= 0x80000000U;
      break;
    case token::kind::float64:
      o.what = operand_syntax::kind::float64;
      if (negative) o.value ^= std::uint64_t{1} << 63;
      break;
    default: HPE_THROW(HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: a number is expected at '{}'", t.line, t.text);
  }
  return o;
}

std::vector<operand_syntax> text_parser::parse_operands(char close) {
  std::vector<operand_syntax> parts;
  while (!accept(close)) {
    if (!parts.empty()) expect(',');
    parts.push_back(parse_operand());
  }
  return parts;
}

operand_syntax text_parser::parse_operand() {
  const level inside(*this);
  operand_syntax o;
  if (accept('{')) {
    o.what = operand_syntax::kind::vector;
    o.parts = parse_operands('}');
    return o;
  }
  if (accept('[')) {
    o.what = operand_syntax::kind::address;
    o.parts = parse_operands(']');
    if (o.parts.empty()) fail("an address expected");
    return o;
  }
  if (accept('(')) {
    o.what = operand_syntax::kind::list;
    o.parts = parse_operands(')');
    return o;
  }
  if (accept('!')) {
    o = parse_operand();
    o.negated = true;
    return o;
  }
  const bool negative = accept('-');
  if (negative || tokens_.peek().what != token::kind::word) return parse_number(negative);
  o.what = operand_syntax::kind::word;
  o.text = tokens_.take().text;
  if (tokens_.peek().what == token::kind::dotted) o.member = tokens_.take().text;
  if (accept('+')) {
    const bool minus = accept('-');
    o.value = expect_integer();
    if (minus) o.value = std::uint64_t{0} - o.value;
  } else if (accept('-')) {
    o.value = std::uint64_t{0} - expect_integer();
  } else if (accept('|')) {
    o.second.push_back(parse_operand());
  }
  return o;
}

void text_parser::parse_statement() {
  statement s;
  const token first = tokens_.peek();
  s.line = first.line;
  s.text_begin = first.begin;
  if (accept('@')) {
    s.guarded = true;
    s.guard_negated = accept('!');
    s.guard = expect_word();
  }
  const std::string_view mnemonic = expect_word();
  if (!s.guarded && accept(':')) {
    if (tokens_.peek().what == token::kind::dotted) return parse_labelled_directive(mnemonic);
    context_->label_positions[context_->label(mnemonic)] = static_cast<std::uint32_t>(context_->function.code.size());
    return;
  }
  suffixes_.clear();
  while (tokens_.peek().what == token::kind::dotted) suffixes_.push_back(tokens_.take());
  s.operands.reserve(4);  // most instructions have at most four operands
  while (!tokens_.peek().is(';')) {
    if (tokens_.peek().what == token::kind::end) fail("';' expected");
    s.operands.push_back(parse_operand());
    if (!tokens_.peek().is(';') && !accept(',') && s.operands.back().what != operand_syntax::kind::list)
      fail("',' or ';' expected");
  }
  s.text_end = tokens_.peek().end;
  expect(';');
  const auto refuse = [&](const std::string& what) {
    instruction i;
    i.text_begin = s.text_begin;
    i.text_end = s.text_end;
    HPE_THROW(HPE_ERROR_NOT_SUPPORTED, "PTX line {}: '{}' in {}: {} is not supported", s.line,
              program_.text_of(context_->function, i), context_->function.name, what);
  };
  s.form = mnemonic.starts_with('#') ? nullptr : find_form(mnemonic);
  if (s.form == nullptr) refuse(fmt::format("the instruction {}", mnemonic));
  for (const token& suffix : suffixes_) {
    if (const auto t = type_of_name(suffix.text)) {
      s.types.push_back(*t);
    } else if (const auto m = modifier_of_name(suffix.text); m && s.form->modifiers.has(*m)) {
      s.modifiers.add(*m);
    } else {
      refuse(fmt::format(".{} of {}", suffix.text, mnemonic));
    }
  }
  builder(*context_, s).build();
}

}  // namespace hpe::ptx
