#include "apps/files/python_literal.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace hpe::files {

namespace {

using kind = python_literal::kind;
using maybe = std::optional<python_literal>;

class parser {
 public:
  explicit parser(std::string_view text) : text_(text) {}

  maybe all() {
    maybe result = literal(0);
    skip_space();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (here() != c) return false;
    ++at_;
    return true;
  }

  maybe literal(int depth) {
    constexpr int deepest = 16;
    skip_space();
    if (depth > deepest) return std::nullopt;
    const std::size_t begin = at_;
    maybe result;
    switch (here()) {
      case '{': result = group(kind::dictionary, '}', depth); break;
      case '[': result = group(kind::list, ']', depth); break;
      case '(': result = group(kind::tuple, ')', depth); break;
      case '\'':
      case '"': result = quoted(); break;
      default: result = bare();
    }
    if (result) result->source = text_.substr(begin, at_ - begin);
    return result;
  }

  /// Parses a group; one literal in parentheses without a comma is not a tuple, but this literal.
  maybe group(kind is, char close, int depth) {
    python_literal g{is, {}, {}, {}};
    ++at_;
    bool comma = true;
    while (!take(close)) {
      if (!comma) return std::nullopt;
      for (int n = is == kind::dictionary ? 2 : 1; n > 0; --n) {
        maybe part = literal(depth + 1);
        if (!part || (n == 2 && !take(':'))) return std::nullopt;
        g.parts.push_back(std::move(*part));
      }
      comma = take(',');
    }
    if (is == kind::tuple && g.parts.size() == 1 && !comma) return python_literal(std::move(g.parts[0]));
    return g;
  }

  /// Parses a string. Replaces escaped quotes and backslashes; all other escapes stay as they are.
  maybe quoted() {
    python_literal s{kind::text, {}, {}, {}};
    const char quote = text_[at_++];
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      const bool escaped = text_[at_] == '\\' && at_ + 1 < text_.size() &&
                           (text_[at_ + 1] == '\\' || text_[at_ + 1] == '\'' || text_[at_ + 1] == '"');
      if (escaped) ++at_;
      s.text += text_[at_];
    }
    if (at_ == text_.size()) return std::nullopt;
    ++at_;
    return s;
  }

  /// Parses a number, a word, or a string with a prefix, as in u'text'.
  maybe bare() {
    const std::size_t begin = at_;
    const auto belongs = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
    };
    while (belongs(here())) ++at_;
    if (begin == at_) return std::nullopt;
    if (here() == '\'' || here() == '"') return quoted();
    python_literal p{kind::word, std::string(text_.substr(begin, at_ - begin)), {}, {}};
    if (std::isdigit(static_cast<unsigned char>(p.text.back())) != 0 || p.text.back() == 'L')
      p.is = std::isdigit(static_cast<unsigned char>(p.text.front())) != 0 ? kind::number : kind::word;
    return p;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const python_literal* python_literal::find(std::string_view key) const {
  if (is != kind::dictionary) return nullptr;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
    if (parts[i].is == kind::text && parts[i].text == key) return &parts[i + 1];
  return nullptr;
}

std::optional<std::vector<std::uint64_t>> python_literal::whole_numbers() const {
  if (is != kind::tuple && is != kind::list) return std::nullopt;
  std::vector<std::uint64_t> all;
  for (const python_literal& p : parts) {
    std::string_view digits = p.text;
    if (digits.ends_with('L')) digits.remove_suffix(1);  // the suffix of a long integer in Python 2
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), all.emplace_back());
    if (p.is != kind::number || failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  return all;
}

std::optional<python_literal> parse_python(std::string_view text) { return parser(text).all(); }

}  // namespace hpe::files
