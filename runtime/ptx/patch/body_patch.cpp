// The patch replaces single tokens of a statement, and leaves all other tokens and the white space unchanged. Some
// code, such as loads of addresses and stores of arguments, must run before a statement. The patch inserts this code
// between the statement's label and the statement.

#include "runtime/ptx/patch/body_patch.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

namespace hpe::ptx::patch {

namespace {

constexpr unsigned part_words = 6;  // the number of 32-bit words of a grid_part

class patcher {
 public:
  patcher(lexer& tokens, const text_names& names, const std::string& parameter,
          const std::set<const function*>& takes_part)
      : tokens_(tokens), names_(names), parameter_(parameter), takes_part_(takes_part) {}

  body_patch run() {
    const std::size_t begin = tokens_.peek().begin;
    for (unsigned depth = 1; depth > 0;) {
      const token& next = tokens_.peek();
      if (next.what == token::kind::end) break;
      if (next.is('{')) {
        ++depth;
        tokens_.take();
      } else if (next.is('}')) {
        --depth;
        end_ = tokens_.take().end;
      } else if (next.is(';')) {
        tokens_.take();
      } else if (next.what == token::kind::dotted) {
        directive();
      } else {
        statement();
      }
    }
    body_patch result;
    result.obstacle = obstacle_;
    result.end = end_;
    result.changes.insert(begin, prologue());
    result.changes.append(changes_);
    return result;
  }

 private:
  // .loc has no terminator, so this function counts the operands.
  void location() {
    const auto accept = [this](char c) { return tokens_.peek().is(c) && (tokens_.take(), true); };
    for (int n = 0; n < 3; ++n) tokens_.take();
    while (accept(',')) {
      const bool inlined = tokens_.take().text == "inlined_at";
      tokens_.take();
      if (accept('+')) tokens_.take();
      if (inlined) tokens_.take(), tokens_.take();
    }
  }

  void directive() {
    const token first = tokens_.take();
    if (first.text == "loc") return location();
    if (first.text == "global" || first.text == "const") obstacle_ = "it declares a variable in its body";
    take_statement(tokens_);
  }

  void statement() {
    // The first word may be a label.
    std::vector<token> all{tokens_.take()};
    if (tokens_.peek().is(':')) {
      tokens_.take();
      return;
    }
    if (!all[0].is(';'))
      for (const token& t : take_statement(tokens_)) all.push_back(t);
    std::size_t at = 0;
    if (all[at].is('@')) at += all[1].is('!') ? 3 : 2;
    if (at >= all.size()) return;
    edits inside;
    std::string before;
    const std::string_view mnemonic = all[at].text;
    std::size_t operands = at + 1;
    while (operands < all.size() && all[operands].what == token::kind::dotted) ++operands;
    widen_scope(mnemonic, std::span(all).subspan(at, operands - at), inside);
    if (mnemonic == "call") {
      call(std::span(all).subspan(operands), before, inside);
    } else {
      replace_names(std::span(all).subspan(operands), before, inside);
    }
    if (!before.empty()) changes_.insert(all[0].begin, before);
    changes_.append(inside);
  }

  // Replaces device scope by system scope (.sys) in atomic operations, fences and ordered accesses outside of shared
  // memory. An atomic operation without a scope has device scope.
  static void widen_scope(std::string_view mnemonic, std::span<const token> parts, edits& inside) {
    const auto find = [&](std::initializer_list<std::string_view> names) {
      return std::find_if(parts.begin() + 1, parts.end(),
                          [&](const token& t) { return std::find(names.begin(), names.end(), t.text) != names.end(); });
    };
    const bool is_atomic = mnemonic == "atom" || mnemonic == "red";
    if (!is_atomic && mnemonic != "fence" && mnemonic != "membar" && mnemonic != "ld" && mnemonic != "st") return;
    if (find({"shared", "shared::cta", "shared::cluster", "proxy"}) != parts.end()) return;
    if (const auto scope = find({"gpu", "gl"}); scope != parts.end())
      return inside.replace(scope->begin, scope->end, ".sys");
    if (!is_atomic || find({"sys", "cta", "cluster"}) != parts.end()) return;
    const auto order = find({"relaxed", "acquire", "release", "acq_rel"});
    inside.insert(order != parts.end() ? order->end : parts.front().end, ".sys");
  }

  void replace_names(std::span<const token> operands, std::string& before, edits& inside) {
    int brackets = 0;
    unsigned addresses = 0;
    for (std::size_t n = 0; n < operands.size(); ++n) {
      const token& t = operands[n];
      brackets += t.is('[') ? 1 : t.is(']') ? -1 : 0;
      if (t.what != token::kind::word) continue;
      if (t.text == "%ctaid" || t.text == "%nctaid") {
        const std::size_t axis = n + 1 < operands.size() && operands[n + 1].what == token::kind::dotted
                                     ? std::string_view("xyz").find(operands[n + 1].text)
                                     : std::string_view::npos;
        if (axis > 2) {
          obstacle_ = fmt::format("it reads {} as a vector", t.text);
          continue;
        }
        const bool is_index = t.text == "%ctaid";
        (is_index ? indices_ : sizes_)[axis] = true;
        inside.replace(t.begin, operands[n + 1].end, fmt::format("%hpe_{}{}", is_index ? "block" : "grid", axis));
      } else if (const auto variable = names_.variables.find(t.text); variable != names_.variables.end()) {
        const std::string into = fmt::format("%hpe_at{}", addresses++);
        before += fmt::format("ld.const.u64 {}, [{}+{}];\n", into, names_.table, 8 * variable->second);
        std::size_t end = t.end;
        // PTX allows an offset after a register only in brackets. Elsewhere, the code before the statement adds the
        // offset.
        if (brackets == 0 && n + 2 < operands.size() && operands[n + 1].is('+')) {
          const bool minus = operands[n + 2].is('-');
          const token& offset = operands[n + (minus ? 3 : 2)];
          before += fmt::format("add.s64 {0}, {0}, {1}{2};\n", into, minus ? "-" : "", offset.text);
          end = offset.end;
        }
        inside.replace(t.begin, end, into);
      }
    }
    most_addresses_ = std::max(most_addresses_, addresses);
  }

  // call [(results),] name [, (arguments)] ...
  void call(std::span<const token> operands, std::string& before, edits& inside) {
    std::size_t at = 0;
    const auto skip_list = [&] {
      while (at < operands.size() && !operands[at].is(')')) ++at;
    };
    if (operands[at].is('(')) {
      skip_list();
      at += 2;  // ) ,
    }
    if (at >= operands.size()) return;
    const auto callee = names_.functions.find(operands[at].text);
    if (callee == names_.functions.end() || !takes_part_.contains(callee->second)) return;
    const std::string argument = fmt::format("hpe_part{}", calls_++);
    before += fmt::format(".param .align 4 .b8 {}[{}];\n", argument, 4 * part_words);
    for (unsigned n = 0; n < part_words; ++n)
      before += fmt::format("st.param.b32 [{}+{}], %hpe_part{};\n", argument, 4 * n, n);
    if (operands.size() > at + 2 && operands[at + 1].is(',') && operands[at + 2].is('(')) {
      skip_list();
      inside.insert(operands[at].begin, (operands[at - 1].is('(') ? "" : ", ") + argument);
    } else {
      inside.insert(operands[at].end, fmt::format(", ({})", argument));
    }
  }

  // Returns the code to insert at the beginning of the body. It declares the registers that the patch uses, and loads
  // the words of the grid_part that the body uses.
  [[nodiscard]] std::string prologue() const {
    std::string text;
    if (most_addresses_ > 0) text += fmt::format("\n.reg .b64 %hpe_at<{}>;", most_addresses_);
    if (parameter_.empty()) return text;
    text += fmt::format("\n.reg .b32 %hpe_part<{}>, %hpe_block<3>, %hpe_grid<3>;\n", part_words);
    for (unsigned axis = 0; axis < 3; ++axis) {
      const auto load = [&](unsigned word) {
        text += fmt::format("ld.param.u32 %hpe_part{}, [{}+{}];\n", word, parameter_, 4 * word);
      };
      if (indices_[axis] || calls_ > 0) load(axis);
      if (sizes_[axis] || calls_ > 0) load(3 + axis);
      if (indices_[axis])
        text += fmt::format("mov.u32 %hpe_block{0}, %ctaid.{1};\nadd.u32 %hpe_block{0}, %hpe_block{0}, %hpe_part{0};\n",
                            axis, "xyz"[axis]);
      if (sizes_[axis]) text += fmt::format("mov.u32 %hpe_grid{}, %hpe_part{};\n", axis, 3 + axis);
    }
    return text;
  }

  lexer& tokens_;
  const text_names& names_;
  const std::string& parameter_;
  const std::set<const function*>& takes_part_;
  edits changes_;
  std::size_t end_ = 0;
  std::string obstacle_;
  std::array<bool, 3> indices_{}, sizes_{};
  unsigned calls_ = 0, most_addresses_ = 0;
};

}  // namespace

body_patch patch_body(lexer& tokens, const text_names& names, const std::string& parameter,
                      const std::set<const function*>& takes_part) {
  return patcher(tokens, names, parameter, takes_part).run();
}

}  // namespace hpe::ptx::patch
