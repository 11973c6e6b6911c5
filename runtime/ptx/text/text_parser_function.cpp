// Functions: parameters and bodies.

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/ptx/build/fold.h"
#include "runtime/ptx/build/fuse.h"
#include "runtime/ptx/text/text_parser.h"

namespace hpe::ptx {

// The most bytes of local memory of a thread, as on a GPU. hpe has the same limit for the parameters of a function.
static constexpr std::uint64_t most_local_memory = 512 << 10;

// Allocates `size` bytes after the `end` bytes that are in use, increases `end`, and returns the offset of the first
// allocated byte.
std::uint32_t text_parser::append_aligned(std::uint32_t& end, std::uint64_t size, std::uint64_t alignment) const {
  const std::uint64_t offset = (end + alignment - 1) / alignment * alignment;
  if (size > most_local_memory || offset + size > most_local_memory)
    fail(fmt::format("more than {} bytes of local memory or parameters", most_local_memory));
  end = static_cast<std::uint32_t>(offset + size);
  return static_cast<std::uint32_t>(offset);
}

// Parameters of a kernel have the same layout as on the host. The offsets of other functions' parameters are multiples
// of 16 bytes, so that a call through a pointer can compute the offsets from the sizes alone.
void text_parser::parse_formals(function& f, bool results, scope& names) {
  if (!accept('(')) return;
  while (!accept(')')) {
    accept(',');
    if (!accept_dotted("param")) {
      if (tokens_.peek().is_dotted("reg")) unsupported("a parameter in a register");
      fail("a parameter expected");
    }
    const variable v = parse_declarator(false);
    formal_parameter p;
    p.name = v.name;
    p.size = static_cast<std::uint32_t>(v.size);
    p.alignment = std::max<std::uint32_t>(v.alignment, 1);
    p.is_result = results;
    p.offset = append_aligned(f.formals_size, v.size, f.is_kernel ? p.alignment : 16);
    names.declare(v.name, {operand::kind::formal, 0, p.offset, p.size});
    f.formals.push_back(std::move(p));
  }
}

void text_parser::parse_limits(function& f) {
  while (tokens_.peek().what == token::kind::dotted) {
    const std::string_view name = tokens_.take().text;
    const bool limit = name == "maxntid" || name == "reqntid";
    if (name == "pragma") {
      skip_past(';');
      continue;
    }
    if (name == "explicitcluster") f.needs_cluster = true;
    if (name == "blocksareclusters") unsupported("a grid that counts clusters (.blocksareclusters)");
    std::array<std::uint32_t, 3> sizes{1, 1, 1};
    std::size_t given = 0;
    while (tokens_.peek().what == token::kind::integer || tokens_.peek().is(',')) {
      if (accept(',')) continue;
      const std::uint64_t size = expect_integer();
      if (given < sizes.size()) sizes[given] = static_cast<std::uint32_t>(size);
      ++given;
    }
    if (given == 0) continue;
    if (limit) f.max_threads = sizes[0] * sizes[1] * sizes[2];
    if (name == "reqntid") f.required_block = sizes;
    if (name == "reqnctapercluster") f.cluster = sizes;
    if (name == "maxclusterrank") f.max_cluster = sizes[0];
  }
}

void text_parser::parse_function(bool is_kernel, const qualifiers& q) {
  function header;
  header.is_kernel = is_kernel;
  names_.open();  // the scope of the formals; the function's name belongs to the outer scope
  parse_formals(header, true, names_);
  const std::string_view name = expect_word();
  parse_formals(header, false, names_);
  parse_limits(header);
  const bool has_body = tokens_.peek().is('{');
  scope::level inner = names_.close();
  const std::uint32_t index = declare_function(name, q);
  function& f = *program_.functions[index];
  if (!has_body) {
    expect(';');
    if (!f.is_defined) {
      f.is_kernel = is_kernel;
      f.formals = std::move(header.formals);
      f.formals_size = header.formals_size;
    }
    return;
  }
  if (f.is_defined) {
    if (!q.is_weak) fail(fmt::format("the function {} is defined twice", name));
    return skip_braces();
  }
  f.is_kernel = is_kernel;
  f.is_defined = true;
  f.formals = std::move(header.formals);
  f.formals_size = header.formals_size;
  f.max_threads = header.max_threads;
  f.cluster = header.cluster;
  f.max_cluster = header.max_cluster;
  f.needs_cluster = header.needs_cluster;
  f.required_block = header.required_block;
  f.text = text_;
  names_.open(std::move(inner));
  names_.declare(name, {operand::kind::function, index, 0, 0});
  function_context context(program_, f, names_);
  context_ = &context;
  const lexer body = tokens_;
  const std::size_t levels = names_.depth();
  try {
    parse_body(f);
  } catch (const error& e) {
    if (!leaves_out_) throw;
    while (names_.depth() > levels) names_.close();
    leave_out(f, body, e.what());
  }
  context_ = nullptr;
  names_.close();
}

void text_parser::leave_out(function& f, const lexer& from, const std::string& why) {
  program_.leave_out(f, why);
  tokens_ = from;
  skip_braces();
  const std::size_t end = tokens_.peek().begin;
  for (lexer named = from; named.peek().begin < end && named.peek().what != token::kind::end;) {
    const token t = named.take();
    if (t.what != token::kind::word || t.text.starts_with('%')) continue;
    if (const auto found = names_.find(t.text); found && found->what == operand::kind::symbol)
      program_.symbols[found->index].may_be_written = true;
  }
}

void text_parser::parse_body(function& f) {
  expect('{');
  parse_block();
  instruction end;  // the body may end without ret
  end.op = opcode::ret;
  end.kind = kind::ret;
  end.line = tokens_.peek().line;
  f.code.push_back(end);
  fold_constants(f);
  insert_pauses(*context_);
  resolve_labels(*context_);
  fuse_products(f);
}

void text_parser::parse_block() {
  const level inside(*this);
  names_.open();
  const std::uint32_t scratch = context_->scratch_top;
  while (!accept('}')) {
    const token& next = tokens_.peek();
    if (next.what == token::kind::end) fail("'}' expected");
    if (accept('{')) {
      parse_block();
    } else if (accept(';')) {
      continue;
    } else if (next.what == token::kind::dotted) {
      parse_body_directive();
    } else {
      parse_statement();
    }
  }
  names_.close();
  context_->scratch_top = scratch;
}

void text_parser::parse_registers() {
  if (tokens_.peek().what != token::kind::dotted) fail("a type expected");
  const std::string_view name = tokens_.take().text;
  const auto t = type_of_name(name);
  if (!t || bits_of(*t) > 64) unsupported(fmt::format("a register of type .{}", name));
  do {
    const std::string_view prefix = expect_word();
    if (accept('<')) {
      const std::uint64_t count = expect_integer();
      expect('>');
      if (count > 1 << 24) fail("too many registers");
      names_.declare_family(prefix, static_cast<std::uint32_t>(count), [this, t = *t](std::string_view register_name) {
        return context_->new_register(t, register_name);
      });
    } else {
      names_.declare(prefix, {operand::kind::reg, context_->new_register(*t, prefix), 0, 0});
    }
  } while (accept(','));
  expect(';');
}

// .loc file line column [, function_name label [+ offset], inlined_at file line column]
void text_parser::parse_location() {
  const std::uint64_t file = expect_integer();
  const std::uint64_t line = expect_integer();
  expect_integer();
  while (accept(',')) {
    const std::string_view what = expect_word();
    tokens_.take();
    if (accept('+')) tokens_.take();
    if (what == "inlined_at") {
      expect_integer();
      expect_integer();
    }
  }
  context_->source_file = file_of(file);
  context_->source_line = static_cast<std::uint32_t>(line);
}

void text_parser::parse_body_directive() {
  const std::string_view name = tokens_.take().text;
  if (name == "reg") return parse_registers();
  if (name == "loc") return parse_location();
  if (name == "pragma") return skip_past(';');
  if (name == "shared") {
    const auto owner = names_.find(context_->function.name);
    return parse_variable(symbol::space::shared, {}, owner->index);
  }
  if (name == "extern" && accept_dotted("shared"))
    return parse_variable(symbol::space::shared, {true, false, false}, symbol::no_owner);
  if (name == "global") return parse_variable(symbol::space::global, {}, symbol::no_owner);
  if (name == "const") return parse_variable(symbol::space::constant, {}, symbol::no_owner);
  if (name == "local" || name == "param") {
    do {
      const variable v = parse_declarator(true);
      function& f = context_->function;
      if (name == "local") {
        const std::uint32_t offset = append_aligned(f.local_size, v.size, std::max<std::uint32_t>(v.alignment, 1));
        names_.declare(v.name, {operand::kind::local, 0, offset, static_cast<std::uint32_t>(v.size)});
      } else {
        const std::uint32_t offset = append_aligned(context_->scratch_top, (v.size + 15) / 16 * 16, 16);
        f.scratch_size = std::max(f.scratch_size, context_->scratch_top);
        names_.declare(v.name, {operand::kind::scratch, 0, offset, static_cast<std::uint32_t>(v.size)});
      }
    } while (accept(','));
    return expect(';');
  }
  unsupported(fmt::format("the directive .{}", name));
}

// label: .branchtargets a, b;    label: .callprototype ...;    label: .calltargets f, g;
void text_parser::parse_labelled_directive(std::string_view label) {
  if (accept_dotted("branchtargets")) {
    std::vector<std::uint32_t>& targets = context_->branch_tables[label];
    do targets.push_back(context_->label(expect_word()));
    while (accept(','));
    return expect(';');
  }
  if (tokens_.peek().is_dotted("callprototype") || tokens_.peek().is_dotted("calltargets")) return skip_past(';');
  // A directive such as .loc follows the label on the same line: this is an ordinary label.
  context_->label_positions[context_->label(label)] = static_cast<std::uint32_t>(context_->function.code.size());
}

}  // namespace hpe::ptx
