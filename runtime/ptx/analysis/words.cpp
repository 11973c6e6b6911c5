#include "runtime/ptx/analysis/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx::analysis {

namespace {

// If the text of an operand is longer than this number of characters, the operands of the node become "(...)".
constexpr std::size_t most_letters = 300;
constexpr unsigned most_depth = 6;
constexpr unsigned most_parts = 500;  // limits the number of expressions in the text of one expression

std::string axis(const char* name, std::uint32_t number) { return fmt::format("{}.{}", name, "xyz"[number % 3]); }

std::string_view sign_of(relation r) {
  constexpr std::string_view signs[] = {"==", "!=", "<", "<=", ">", ">="};
  return signs[static_cast<std::size_t>(r)];
}

}  // namespace

std::string_view name_of(address_class how) {
  constexpr std::string_view names[] = {"local", "affine", "irregular", "data-dependent"};
  return names[static_cast<std::size_t>(how)];
}

// nvcc and clang call the parameters of a kernel `k`: `k_param_0`, `k_param_1` and so on. The text calls these
// parameters arg0, arg1 and so on.
std::string words::of_parameter(const quantity& q) const {
  for (std::size_t n = 0; n < kernel_.kernel->formals.size(); ++n) {
    const formal_parameter& f = kernel_.kernel->formals[n];
    if (q.number < f.offset || q.number - f.offset >= std::max(f.size, 1U)) continue;
    const bool is_made_up = f.name == fmt::format("{}_param_{}", kernel_.kernel->name, n);
    const std::string name = is_made_up ? fmt::format("arg{}", n) : f.name;
    return q.number == f.offset ? name : fmt::format("{}[{}]", name, q.number - f.offset);
  }
  return fmt::format("arg[{}]", q.number);
}

std::string words::of_node(const quantity& q) const {
  std::vector<std::string> parts;
  for (const expression_id e : q.operands) {
    // Limit the depth of recursion.
    if (depth_ < most_depth) parts.push_back(of(e));
    if (depth_ >= most_depth || parts.back().size() > most_letters)
      return fmt::format("{}(...)", form_of(q.made_by->op).mnemonic);
  }
  const auto closed = [&](std::size_t n) {
    const bool is_simple =
        kernel_.walk->table().single_of(q.operands[n]) || kernel_.walk->table().constant_of(q.operands[n]);
    return is_simple ? parts[n] : fmt::format("({})", parts[n]);
  };
  const auto infix = [&](const char* sign) { return fmt::format("({} {} {})", closed(0), sign, closed(1)); };
  switch (q.made_by->op) {
    case opcode::div: return infix("/");
    case opcode::rem: return infix("%");
    case opcode::shr: return infix(">>");
    case opcode::shl: return infix("<<");
    case opcode::and_: return infix("&");
    case opcode::or_: return infix("|");
    case opcode::xor_: return infix("^");
    default: break;
  }
  std::string text = fmt::format("{}(", form_of(q.made_by->op).mnemonic);
  for (std::size_t n = 0; n < parts.size(); ++n) text.append(n == 0 ? "" : ", ").append(parts[n]);
  return text.append(")");
}

std::string words::of_choice(const quantity& q) const {
  std::string text;
  for (const expression_id e : q.operands) {
    if (depth_ < most_depth) text.append(text.empty() ? "{" : " or ").append(of(e));
    if (depth_ >= most_depth || text.size() > most_letters) return "{...}";
  }
  return text.append("}");
}

std::string words::of_quantity(quantity_id id) const {
  const quantity& q = kernel_.walk->table().of(id);
  switch (q.what) {
    case quantity::kind::block_index: return axis("blockIdx", q.number);
    case quantity::kind::thread_index: return axis("threadIdx", q.number);
    case quantity::kind::block_size: return axis("blockDim", q.number);
    case quantity::kind::grid_size: return axis("gridDim", q.number);
    case quantity::kind::parameter: return of_parameter(q);
    case quantity::kind::variable: return program_.symbols[q.number].name;
    case quantity::kind::formals: return "parameters";
    case quantity::kind::counter: return fmt::format("k{}", q.number + 1);
    case quantity::kind::node: return of_node(q);
    case quantity::kind::choice: return of_choice(q);
    case quantity::kind::recurrence: return fmt::format("loop-carried@{}", q.number);
    case quantity::kind::result: break;
  }
  if (q.number >= kernel_.kernel->code.size()) return "unknown";
  const instruction& i = kernel_.kernel->code[q.number];
  if (i.kind == kind::special) return fmt::format("special register {}", i.sources[0].value);
  return fmt::format("{}@{}", form_of(i.op).mnemonic, i.line);
}

std::string words::of_sum(const polynomial& p) const {
  if (p.empty()) return "0";
  std::string text;
  const std::size_t first = p[0].of.is_one() ? 1 : 0;  // the text of a constant comes last
  for (std::size_t n = 0; n < p.size(); ++n) {
    const term& t = p[(n + first) % p.size()];
    const bool is_negative = t.factor < 0;
    const std::uint64_t size =
        is_negative ? 0 - static_cast<std::uint64_t>(t.factor) : static_cast<std::uint64_t>(t.factor);
    text += n == 0 ? (is_negative ? "-" : "") : (is_negative ? " - " : " + ");
    if (size != 1 || t.of.is_one()) text += fmt::format("{}", size);
    std::vector<quantity_id> factors(t.of.factors.begin(), t.of.factors.begin() + t.of.count);
    const expressions& table = kernel_.walk->table();
    std::stable_sort(factors.begin(), factors.end(),
                     [&](quantity_id a, quantity_id b) { return table.of(a).what < table.of(b).what; });
    for (std::size_t k = 0; k < factors.size(); ++k)
      text.append(k > 0 || size != 1 ? "*" : "").append(of_quantity(factors[k]));
  }
  return text;
}

std::string words::of(expression_id e) const {
  if (depth_ == 0) parts_ = 0;
  if (++parts_ > most_parts) return "...";
  ++depth_;
  std::string text = of_sum(kernel_.walk->table().at(e));
  --depth_;
  return text;
}

std::string words::in_elements(expression_id e, std::uint32_t element) const {
  polynomial p = kernel_.walk->table().at(e);
  const auto divides = [element](const term& t) { return t.factor % static_cast<std::int64_t>(element) == 0; };
  if (element == 0 || !std::all_of(p.begin(), p.end(), divides)) return of_sum(p) + " bytes";
  for (term& t : p) t.factor /= static_cast<std::int64_t>(element);
  return of_sum(p);
}

std::string words::of(const comparison& c) const {
  return fmt::format("{} {} {}", of(c.left), sign_of(c.how), of(c.right));
}

std::string words::of(const assumption& a) const {
  return fmt::format("{} fits into {} bits, {}", of(a.of), a.bits, a.is_signed ? "signed" : "unsigned");
}

std::string words::of_base(std::optional<quantity_id> base) const { return base ? of_quantity(*base) : "(unknown)"; }

std::string words::place(std::uint32_t file, std::uint32_t source_line, std::uint32_t line) const {
  if (source_line == 0 || file >= program_.files.size()) return fmt::format("PTX line {}", line);
  return fmt::format("{}:{}", std::filesystem::path(program_.files[file]).filename().string(), source_line);
}

std::string words::place(const instruction& i) const { return place(i.source_file, i.source_line, i.line); }

std::string words::place(const loop_use& l) const { return place(l.source_file, l.source_line, l.line); }

}  // namespace hpe::ptx::analysis
