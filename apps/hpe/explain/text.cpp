#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "apps/hpe/explain/explain_command.h"
#include "runtime/base/demangled.h"
#include "runtime/ptx/analysis/words.h"

namespace hpe::cli {

namespace {

using namespace ptx::analysis;

constexpr std::size_t most_neighbours = 12;
constexpr char axis_names[] = "xyz";

std::string joined(const std::vector<std::string>& parts, const char* between = ", ") {
  std::string text;
  for (const std::string& p : parts) text.append(text.empty() ? "" : between).append(p);
  return text;
}

std::string times(std::uint32_t count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

class kernel_text {
 public:
  kernel_text(const ptx::program& p, const spread::module_model::kernel& k)
      : program_(p), how_(k), kernel_(k.model->analysis()), words_(p, kernel_) {}

  std::string of(bool with_accesses) {
    add(0, "{}", demangled(kernel_.kernel->name));
    verdict();
    for (const array_use& a : kernel_.arrays) array(a);
    for (const unsigned axis : {0U, 1U, 2U})
      if (kernel_.axes[axis] && how_.obstacle.empty()) cut(axis);
    assumptions();
    if (with_accesses) accesses();
    loops();
    return std::move(text_);
  }

 private:
  template <class... Arguments>
  void add(unsigned depth, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_.append(std::size_t{2} * depth, ' ');
    text_.append(fmt::format(format, std::forward<Arguments>(arguments)...)).append("\n");
  }

  void verdict() {
    for (const std::string& reason : how_.patched.obstacles) add(1, "stays on one GPU: {}", reason);
    if (!how_.obstacle.empty()) return;
    add(1, "could be spread over several GPUs");
    if (!kernel_.verdict.needs.empty()) add(2, "needs {}", joined(kernel_.verdict.needs));
    if (!how_.obstacle_in_programs.empty())
      add(2, "stays on one GPU under hpe run --spread: {}", how_.obstacle_in_programs);
  }

  void array(const array_use& a) {
    std::vector<std::string> uses;
    if (a.reads > 0) uses.push_back(fmt::format("read {}", times(a.reads)));
    if (a.writes > 0) uses.push_back(fmt::format("written {}", times(a.writes)));
    if (a.updates > 0) uses.push_back(fmt::format("updated atomically {}", times(a.updates)));
    const std::string name = a.base ? words_.of_base(a.base) : "memory of unknown arrays";
    add(1, "{}: {}{}", name, joined(uses), a.element == 0 ? "" : fmt::format(", elements of {} bytes", a.element));
    std::vector<std::string> lines;
    for (const access_pattern& p : a.patterns) lines.push_back(pattern(a, p));
    if (a.patterns.empty()) lines.emplace_back("by functions that the kernel calls");
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    for (const std::string& line : lines) add(2, "{}", line);
  }

  std::string pattern(const array_use& a, const access_pattern& p) {
    const std::string inside =
        p.local == 0 ? "" : fmt::format("; in the block {}", words_.in_elements(p.local, a.element));
    switch (p.how) {
      case address_class::affine: {
        std::vector<std::string> steps;
        for (const unsigned axis : {0U, 1U, 2U})
          if (p.blocks[axis] != 0)
            steps.push_back(fmt::format("{} for each block along {}", words_.in_elements(p.blocks[axis], a.element),
                                        axis_names[axis]));
        return fmt::format("affine: further by {}{}{}", joined(steps, " and "), inside, neighbours(a, p));
      }
      case address_class::local:
        return fmt::format("local: the same for all blocks{}{}",
                           p.local == 0 ? "" : fmt::format(", at {}", words_.in_elements(p.local, a.element)),
                           neighbours(a, p));
      case address_class::irregular:
        return fmt::format("irregular: depends on the block, but without a fixed step from block to block: {}",
                           words_.in_elements(p.local, a.element));
      case address_class::data_dependent: break;
    }
    return "data-dependent: at places that were read from memory";
  }

  std::string neighbours(const array_use& a, const access_pattern& p) {
    if (p.neighbours.size() < 2 && (p.neighbours.empty() || p.neighbours[0] == 0)) return "";
    std::vector<std::string> parts;
    for (const expression_id e : p.neighbours) {
      if (parts.size() == most_neighbours) {
        parts.push_back(fmt::format("and {} more", p.neighbours.size() - most_neighbours));
        break;
      }
      parts.push_back(words_.in_elements(e, a.element));
    }
    return fmt::format(", at offsets {}", joined(parts));
  }

  // Adds the parts of arrays that each GPU needs if the grid is cut along an axis.
  void cut(unsigned axis) {
    std::vector<std::string> parts, whole, unknown;
    for (const array_use& a : kernel_.arrays) {
      const std::string name = a.base ? words_.of_base(a.base) : "unknown arrays";
      (a.is_cut_by(axis) ? parts : a.how <= address_class::affine ? whole : unknown).push_back(name);
    }
    std::vector<std::string> sentences;
    if (!parts.empty()) sentences.push_back(fmt::format("a part of {}", joined(parts)));
    if (!whole.empty()) sentences.push_back(fmt::format("the whole of {}", joined(whole)));
    if (!unknown.empty()) sentences.push_back(fmt::format("any part of {}", joined(unknown)));
    if (!sentences.empty()) add(1, "cut along {}, each GPU uses {}", axis_names[axis], joined(sentences, "; "));
  }

  void assumptions() {
    assumption_set needed = 0;
    for (const access& a : kernel_.accesses)
      for (const address_form& f : a.forms)
        if (f.how < address_class::data_dependent) needed |= f.assumes;
    for (const std::string& line : words_of(needed)) add(1, "assumed: {}", line);
  }

  std::vector<std::string> words_of(assumption_set needed) {
    std::vector<std::string> lines;
    const std::vector<assumption>& all = kernel_.walk->assumptions().all();
    for (std::size_t n = 0; n < all.size(); ++n)
      if ((needed >> n & 1) != 0) lines.push_back(words_.of(all[n]));
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return lines;
  }

  // Adds a line for each loop counter that the text names.
  void loops() {
    for (std::size_t n = 0; n < kernel_.loops.size(); ++n) {
      const std::string counter = fmt::format("k{}", n + 1);
      for (std::size_t at = text_.find(counter); at != std::string::npos; at = text_.find(counter, at + 1)) {
        const auto is_letter = [this](std::size_t place) {
          return place < text_.size() &&
                 (std::isalnum(static_cast<unsigned char>(text_[place])) != 0 || text_[place] == '_');
        };
        if (is_letter(at - 1) || is_letter(at + counter.size())) continue;
        add(1, "{} counts the iterations of the loop at {}", counter, words_.place(kernel_.loops[n]));
        break;
      }
    }
  }

  void accesses() {
    for (const access& a : kernel_.accesses) {
      const ptx::function& f = a.inside != nullptr ? *a.inside : *kernel_.kernel;
      const ptx::instruction& i = f.code[a.position];
      add(1, "{}: {}", words_.place(i), program_.text_of(f, i));
      if (a.inside != nullptr) add(2, "in {}, which the kernel calls", demangled(a.inside->name));
      for (const address_form& form : a.forms) {
        add(2, "address {}: {}", name_of(form.how), words_.of(form.whole));
        for (const std::string& line : words_of(form.assumes)) add(3, "assumed: {}", line);
      }
      std::vector<std::string> where;
      for (const comparison& c : a.where) where.push_back(words_.of(c));
      if (!where.empty()) add(2, "where {}", joined(where, " and "));
    }
  }

  const ptx::program& program_;
  const spread::module_model::kernel& how_;
  const kernel_analysis& kernel_;
  words words_;
  std::string text_;
};

}  // namespace

std::string explanation(const explained_file& file, bool with_accesses) {
  std::size_t kernels = 0, spread_kernels = 0;
  std::string text;
  for (std::size_t n = 0; n < file.modules.size(); ++n) {
    const explained_module& m = file.modules[n];
    if (!m.error.empty()) text += fmt::format("\nmodule {} cannot be read: {}\n", n + 1, m.error);
    for (const spread::module_model::kernel* const k : m.kernels) {
      ++kernels;
      spread_kernels += k->obstacle.empty() ? 1 : 0;
      text.append("\n").append(kernel_text(*m.program, *k).of(with_accesses));
    }
  }
  if (file.without_ptx > 0)
    text +=
        fmt::format("\n{} of the fat binaries in the file {} machine code only, so kernels in {} cannot be explained\n",
                    file.without_ptx, file.without_ptx == 1 ? "has" : "have", file.without_ptx == 1 ? "it" : "them");
  return fmt::format("{}: {} kernel{}, of which {} could be spread over several GPUs\n", file.path, kernels,
                     kernels == 1 ? "" : "s", spread_kernels) +
         text;
}

}  // namespace hpe::cli
