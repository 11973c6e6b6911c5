#include "runtime/ptx/patch/patch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/ptx/patch/body_patch.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx::patch {

namespace {

constexpr std::size_t most_parameters = 4096;
constexpr std::uint64_t most_constants = 65536;
constexpr std::uint32_t first_with_scopes = 60;  // sm_60 is the first architecture with instructions of system scope

// Returns whether the variable is a constant that the compiler generated: a string literal, which each device needs for
// its own printf, or a table of the mathematical functions.
bool is_literal(const symbol& s) {
  return s.name.starts_with("$str") || s.name.starts_with("_$_str") || s.name.starts_with("__unnamed_") ||
         (s.is_only_read() && s.name.starts_with("__cudart_"));
}

// Returns whether each device has its own copy of the variable. This is the case for constants, and for small variables
// that no kernel writes and whose initial values contain no addresses, because only the host changes all these
// variables.
bool is_copied(const symbol& s) {
  if (s.size == 0) return false;
  if (s.where == symbol::space::constant) return true;
  return s.is_only_read() && s.size <= most_constants && s.relocations.empty() && !is_literal(s);
}

bool is_redirected(const symbol& s) {
  return s.where == symbol::space::global && s.size != 0 && !is_literal(s) && !is_copied(s);
}

/// The changes to one function or kernel.
struct patched_function {
  const function* what = nullptr;
  std::size_t begin = 0, end = 0;  // offsets in the text; `end` is 0 for a declaration
  edits changes;
  std::string obstacle;
};

struct patched_text {
  std::vector<patched_function> functions;
  std::map<std::size_t, edits> others;  // patches of declarations and variables, by the offset of their first character
  bool has_table = false;
};

class module_patch {
 public:
  module_patch(const program& p, std::span<const analysis::kernel_analysis* const> kernels)
      : program_(p), kernels_(kernels) {}

  patched_module run() {
    find_who_takes_part();
    make_tables();
    std::vector<patched_text> texts;
    for (std::uint32_t n = 0; n < program_.texts.size(); ++n) texts.push_back(patch_text(n));
    for (std::size_t n = result_.tables.size(); n-- > 0;)
      if (!texts[n].has_table) result_.tables.erase(result_.tables.begin() + static_cast<std::ptrdiff_t>(n));
    for (const patched_text& t : texts)
      for (const patched_function& f : t.functions)
        if (!f.obstacle.empty()) obstacles_[f.what] = f.obstacle;
    std::set<const function*> kept;
    for (const analysis::kernel_analysis* const k : kernels_)
      if (judge(*k)) kept.insert(k->kernel);
    if (!kept.empty())
      for (std::uint32_t n = 0; n < texts.size(); ++n)
        result_.texts.push_back(assemble(program_.texts[n], texts[n], kept));
    return std::move(result_);
  }

 private:
  /// Calls `visit` for the function `first` and for all functions that it calls, directly or through other functions.
  template <class Visit>
  void for_each_called(const function& first, const Visit& visit) const {
    std::vector<const function*> open{&first};
    std::set<const function*> seen{&first};
    while (!open.empty()) {
      const function& f = *open.back();
      open.pop_back();
      visit(f);
      for (const instruction& i : f.code)
        if (i.kind == kind::call && i.sources.empty() && seen.insert(program_.functions[i.callee].get()).second)
          open.push_back(program_.functions[i.callee].get());
    }
  }

  static bool reads_grid(const function& f) {
    return std::any_of(f.code.begin(), f.code.end(), [](const instruction& i) {
      using enum special_register;
      const auto r = i.kind == kind::special ? static_cast<special_register>(i.sources[0].value) : count;
      return r >= ctaid_x && r <= nctaid_z;
    });
  }

  void find_who_takes_part() {
    for (const auto& f : program_.functions) {
      bool takes = false;
      for_each_called(*f, [&](const function& called) { takes |= reads_grid(called); });
      if (takes && !f->is_kernel) takes_part_.insert(f.get());
    }
  }

  void make_tables() {
    std::set<std::string_view> names;
    for (const symbol& s : program_.symbols) {
      if (!is_copied(s) && !is_redirected(s)) continue;
      if (!names.insert(s.name).second) ambiguous_ = "two variables of its program have the same name, " + s.name;
      if (is_copied(s)) {
        result_.constants.push_back(s.name);
      } else {
        places_.emplace(s.name, static_cast<std::uint32_t>(variables_.size()));
        variables_.push_back(s.name);
      }
    }
    if (!variables_.empty())
      for (std::size_t n = 0; n < program_.texts.size(); ++n)
        result_.tables.push_back({fmt::format("hpe_variables{}", n), variables_});
  }

  [[nodiscard]] text_names names_of(std::uint32_t text) const {
    text_names names;
    for (const auto& f : program_.functions) {
      const function*& entry = names.functions[f->name];
      if (entry == nullptr || f->text == text) entry = f.get();
    }
    for (const auto& [name, place] : places_) names.variables[name] = place;
    if (!result_.tables.empty()) names.table = result_.tables[text].name;
    return names;
  }

  patched_text patch_text(std::uint32_t number) const {
    const text_names names = names_of(number);
    lexer tokens(program_.texts[number]);
    patched_text result;
    while (tokens.peek().what != token::kind::end) {
      const std::size_t begin = tokens.peek().begin;
      token directive = tokens.take();
      while (directive.text == "visible" || directive.text == "extern" || directive.text == "weak" ||
             directive.text == "common")
        directive = tokens.take();
      edits change;
      const bool is_function = directive.is_dotted("entry") || directive.is_dotted("func");
      const bool is_variable = directive.is_dotted("global") || directive.is_dotted("const");
      if ((is_function || is_variable) && !result.has_table && !names.table.empty()) {
        change.insert(begin, fmt::format(".visible .const .align 8 .b8 {}[{}];\n", names.table, 8 * variables_.size()));
        result.has_table = true;
      }
      if (is_function) {
        patched_function f = patch_function(tokens, names, directive.is_dotted("entry"));
        if (f.end == 0) {
          change.append(f.changes);
        } else {
          f.begin = begin;
          result.functions.push_back(std::move(f));
        }
      } else if (is_variable) {
        patch_variables(tokens, names, begin, change);
      } else if (directive.is_dotted("section")) {
        patch_section(tokens, begin, change);
      } else if (directive.is_dotted("shared") || directive.is_dotted("pragma") || directive.is_dotted("alias")) {
        take_statement(tokens);
      }
      result.others[begin] = std::move(change);
    }
    return result;
  }

  // For a declaration, the member `end` of the result is 0.
  patched_function patch_function(lexer& tokens, const text_names& names, bool is_kernel) const {
    patched_function f;
    std::size_t last = 0;
    const auto skip_list = [&] {  // returns whether the list is empty
      bool empty = true;
      tokens.take();
      for (; !tokens.peek().is(')'); tokens.take()) empty = false;
      last = tokens.peek().begin;
      tokens.take();
      return empty;
    };
    if (tokens.peek().is('(')) skip_list();
    const token name = tokens.take();
    const auto found = names.functions.find(name.text);
    f.what = found == names.functions.end() ? nullptr : found->second;
    const bool takes = is_kernel || takes_part_.contains(f.what);
    const std::string parameter = takes ? std::string(name.text) + "_hpe_part" : "";
    const std::string declaration = fmt::format(".param .align 4 .b8 {}[{}]", parameter, sizeof(grid_part));
    if (tokens.peek().is('(')) {
      const bool empty = skip_list();
      if (takes) f.changes.insert(last, (empty ? "" : ",\n") + declaration);
    } else if (takes) {
      f.changes.insert(name.end, "(" + declaration + ")");
    }
    while (!tokens.peek().is('{') && !tokens.peek().is(';') && tokens.peek().what != token::kind::end) tokens.take();
    const bool has_body = tokens.peek().is('{');
    tokens.take();
    if (!has_body) return f;
    body_patch body = patch_body(tokens, names, parameter, takes_part_);
    f.changes.append(body.changes);
    f.end = body.end;
    f.obstacle = std::move(body.obstacle);
    return f;
  }

  // Removes the variables that the table of addresses replaces. Also removes initial values that name variables or
  // functions, because hpe copies the bytes of constants from the original module.
  void patch_variables(lexer& tokens, const text_names& names, std::size_t begin, edits& change) const {
    const std::vector<token> all = take_statement(tokens);
    unsigned depth = 0;
    bool in_value = false, is_replaced = false, names_others = false;
    std::size_t value = 0;
    for (const token& t : all) {
      if (t.is('{') || t.is('(') || t.is('[')) ++depth;
      if (t.is('}') || t.is(')') || t.is(']')) --depth;
      if (t.is('=')) {
        in_value = true;
        value = t.begin;
      }
      if (depth == 0 && t.is(',')) in_value = false;
      if (t.what != token::kind::word) continue;
      if (in_value) names_others |= names.variables.contains(t.text) || names.functions.contains(t.text);
      if (!in_value && depth == 0) is_replaced |= names.variables.contains(t.text);
    }
    if (is_replaced) change.replace(begin, all.back().end, "");
    if (!is_replaced && names_others) change.replace(value, all.back().begin, "");
  }

  // Removes debug sections, because they name labels of kernels that the patched text omits. Keeps the section
  // debug_str, because line numbers refer to it.
  static void patch_section(lexer& tokens, std::size_t begin, edits& change) {
    const token name = tokens.take();
    unsigned depth = 0;
    token last = name;
    do {
      last = tokens.take();
      depth += last.is('{') ? 1U : last.is('}') ? ~0U : 0U;
    } while (depth > 0 && last.what != token::kind::end);
    if (name.text != "debug_str") change.replace(begin, last.end, "");
  }

  bool judge(const analysis::kernel_analysis& k) {
    patched_kernel& kernel = result_.kernels.emplace_back();
    kernel.name = k.kernel->name;
    kernel.obstacles = k.verdict.obstacles;
    kernel.part_offset = (k.kernel->formals_size + alignof(grid_part) - 1) / alignof(grid_part) * alignof(grid_part);
    const auto add = [&](std::string_view why) { kernel.obstacles.emplace_back(why); };
    if (!k.walk->is_complete() && kernel.obstacles.empty()) add("its control flow is too irregular for the analysis");
    if (kernel.part_offset + sizeof(grid_part) > most_parameters)
      add(fmt::format("it has {} bytes of parameters, which leave no room for the parameter that hpe adds",
                      k.kernel->formals_size));
    if (program_.architecture < first_with_scopes)
      add(fmt::format("it was compiled for sm_{}, which has no atomic operations between GPUs", program_.architecture));
    for_each_called(*k.kernel, [&](const function& f) {
      if (const auto found = obstacles_.find(&f); found != obstacles_.end()) add(found->second);
      for (const instruction& i : f.code) {
        if (i.kind == kind::special && static_cast<special_register>(i.sources[0].value) == special_register::gridid)
          add("it reads the number of its launch (%gridid)");
        for (const operand& o : i.sources) {
          if (o.what != operand::kind::symbol) continue;
          const symbol& s = program_.symbols[o.index];
          kernel.uses_variables |= is_redirected(s);
          kernel.uses_constants |= is_copied(s);
        }
      }
    });
    if ((kernel.uses_variables || kernel.uses_constants) && !ambiguous_.empty()) add(ambiguous_);
    if (kernel.uses_variables && constant_bytes() > most_constants)
      add("its program's constants leave no room for a table of its variables");
    return kernel.obstacles.empty();
  }

  [[nodiscard]] std::uint64_t constant_bytes() const {
    std::uint64_t bytes = 8 * variables_.size() * result_.tables.size();
    for (const symbol& s : program_.symbols) bytes += s.where == symbol::space::constant ? s.size + s.alignment : 0;
    return bytes;
  }

  // Returns the text with all changes, without the kernels that are not in `kept`.
  static std::string assemble(const std::string& text, const patched_text& patched,
                              const std::set<const function*>& kept) {
    std::map<std::size_t, edits> all = patched.others;
    for (const patched_function& f : patched.functions) {
      edits& change = all[f.begin];
      if (f.what != nullptr && f.what->is_kernel && !kept.contains(f.what)) {
        change.replace(f.begin, f.end, "");
      } else {
        change.append(f.changes);
      }
    }
    edits in_order;
    for (const auto& [begin, change] : all) in_order.append(change);
    return in_order.apply(text);
  }

  const program& program_;
  const std::span<const analysis::kernel_analysis* const> kernels_;
  std::set<const function*> takes_part_;  // functions, other than kernels, that have a grid_part parameter
  std::map<std::string, std::uint32_t> places_;
  std::vector<std::string> variables_;
  std::string ambiguous_;
  std::map<const function*, std::string> obstacles_;
  patched_module result_;
};

}  // namespace

const patched_kernel* patched_module::find(std::string_view kernel) const {
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k.name == kernel; });
  return found == kernels.end() ? nullptr : &*found;
}

std::vector<std::byte> with_part(const patched_kernel& kernel, std::span<const std::byte> parameters,
                                 const grid_part& part) {
  std::vector<std::byte> all(kernel.part_offset + sizeof part);
  std::copy_n(parameters.begin(), std::min<std::size_t>(parameters.size(), kernel.part_offset), all.begin());
  std::memcpy(all.data() + kernel.part_offset, &part, sizeof part);
  return all;
}

patched_module patch(const program& p, std::span<const analysis::kernel_analysis* const> kernels) {
  return module_patch(p, kernels).run();
}

}  // namespace hpe::ptx::patch
