#include "apps/sparse/file.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <type_traits>

#include "apps/files/descriptor.h"

namespace hpe::sparse {

namespace {

/// Reads the words of a text one after another, and counts lines for error messages.
class words {
 public:
  words(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  [[noreturn]] void refuse(const std::string& sentence) const {
    throw bad_input(fmt::format("{}, line {}: {}", name_, line_, sentence));
  }

  [[nodiscard]] std::string_view next(const char* what) {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    if (begin == at_) refuse(fmt::format("the file ends, but {} should follow", what));
    return text_.substr(begin, at_ - begin);
  }

  template <class Number>
  [[nodiscard]] Number number(const char* what) {
    const std::string_view word = next(what);
    // from_chars accepts no plus sign, and returns no value for a number that is too small to be represented.
    const bool plus = word.size() > 1 && word[0] == '+' && word[1] != '-';
    const char* const begin = word.data() + (plus ? 1 : 0);
    const char* const stop = word.data() + word.size();
    Number value{};
    const auto [end, failure] = std::from_chars(begin, stop, value);
    if (std::is_floating_point_v<Number> && failure == std::errc::result_out_of_range && end == stop)
      return static_cast<Number>(std::strtod(std::string(begin, stop).c_str(), nullptr));
    if (failure != std::errc() || end != stop) refuse(fmt::format("\"{}\" is not {}", files::printable(word), what));
    return value;
  }

  [[nodiscard]] std::uint64_t whole(const char* what, std::uint64_t least, std::uint64_t most) {
    const auto value = number<std::uint64_t>(what);
    if (value < least || value > most)
      refuse(fmt::format("{} is {}; values from {} to {} are possible", what, value, least, most));
    return value;
  }

  [[nodiscard]] double real(const char* what) {
    const auto value = number<double>(what);
    if (!std::isfinite(value)) refuse(fmt::format("{} is not finite", what));
    return value;
  }

  /// Returns the rest of the line, and moves to the next line.
  [[nodiscard]] std::string_view line() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    const std::string_view all = text_.substr(begin, at_ - begin);
    if (at_ < text_.size()) {
      ++at_;
      ++line_;
    }
    return all;
  }
  /// Skips empty lines, and comment lines, which begin with `mark`, possibly after blanks.
  void skip_comments(char mark) {
    for (skip_space(); at_ < text_.size() && text_[at_] == mark; skip_space()) static_cast<void>(line());
  }

  /// Throws bad_input if words follow.
  void end() {
    skip_space();
    if (at_ < text_.size()) refuse("the file continues after its last element");
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  void skip_space() {
    for (; at_ < text_.size() && is_space(text_[at_]); ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
  }

  const std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
};

/// Returns the largest allowed number of rows or columns. Without this limit, a short file could require any amount of
/// memory, because an empty row or column takes memory but no byte of the file.
std::uint64_t most_rows(std::string_view text) {
  constexpr std::uint64_t for_each_byte = 64;
  return std::min<std::uint64_t>(for_each_byte * text.size(), std::numeric_limits<std::uint32_t>::max() - 1);
}
/// Returns the largest possible number of elements: the shortest element is "1 1" and the end of the line.
std::uint64_t most_elements(std::string_view text) { return text.size() / 4 + 1; }

/// Sorts elements by row and column, and replaces those with the same row and column by one element with their sum.
/// Adds them in their order in the list.
void add_equal(std::vector<element>& all) {
  const auto place = [](const element& e) { return std::uint64_t{e.row} << 32 | e.column; };
  std::ranges::stable_sort(all, {}, place);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept > 0 && place(all[kept - 1]) == place(all[i]))
      all[kept - 1].value += all[i].value;
    else
      all[kept++] = all[i];
  }
  all.resize(kept);
}

}  // namespace

contents matrix_of(std::string_view text, const std::string& name) {
  words w(text, name);
  std::string kind(w.line());
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  words header(kind, name);
  if (header.next("%%MatrixMarket") != "%%matrixmarket" || header.next("matrix") != "matrix")
    header.refuse("not a Matrix Market file; such a file begins with \"%%MatrixMarket matrix\"");
  if (const auto form = header.next("coordinate"); form != "coordinate")
    header.refuse(fmt::format("the format \"{}\" is not supported; only coordinate is", files::printable(form)));
  const auto field = header.next("the field");
  if (field != "real" && field != "integer" && field != "pattern")
    header.refuse(
        fmt::format("the field \"{}\" is not supported; only real, integer and pattern are", files::printable(field)));
  const auto symmetry = header.next("the symmetry");
  const bool mirrored = symmetry == "symmetric" || symmetry == "skew-symmetric";
  if (!mirrored && symmetry != "general")
    header.refuse(fmt::format("the symmetry \"{}\" is not supported; only general, symmetric and skew-symmetric are",
                              files::printable(symmetry)));
  w.skip_comments('%');

  contents c;
  c.rows = w.whole("the number of rows", 1, most_rows(text));
  c.columns = w.whole("the number of columns", 1, most_rows(text));
  if (mirrored && c.rows != c.columns)
    w.refuse(fmt::format("a {} matrix of {} x {} elements, but such a matrix is square", symmetry, c.rows, c.columns));
  const std::uint64_t count = w.whole("the number of elements", 0, most_elements(text));
  c.elements.reserve(mirrored ? 2 * count : count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto row = static_cast<std::uint32_t>(w.whole("a row", 1, c.rows) - 1);
    const auto column = static_cast<std::uint32_t>(w.whole("a column", 1, c.columns) - 1);
    const double value = field == "pattern" ? 1 : w.real("a value");
    c.elements.push_back({row, column, value});
    if (mirrored && row != column) c.elements.push_back({column, row, symmetry == "symmetric" ? value : -value});
  }
  w.end();
  add_equal(c.elements);
  return c;
}

contents graph_of(std::string_view text, const std::string& name) {
  words w(text, name);
  contents c;
  c.rows = c.columns = w.whole("the number of vertices", 1, most_elements(text));
  struct span {
    std::uint64_t first, count;
  };
  std::vector<span> edges_of;
  edges_of.reserve(c.rows);
  for (std::uint64_t v = 0; v < c.rows; ++v) {
    const std::uint64_t first = w.whole("the first edge of a vertex", 0, most_elements(text));
    edges_of.push_back({first, w.whole("the number of a vertex's edges", 0, most_elements(text))});
  }
  c.source = static_cast<std::uint32_t>(w.whole("the source", 0, c.rows - 1));
  const std::uint64_t count = w.whole("the number of edges", 0, most_elements(text));
  struct edge {
    std::uint32_t target;
    double cost;
  };
  std::vector<edge> edges;
  edges.reserve(count);
  for (std::uint64_t e = 0; e < count; ++e) {
    const auto target = static_cast<std::uint32_t>(w.whole("the target of an edge", 0, c.rows - 1));
    edges.push_back({target, w.real("the cost of an edge")});
  }
  w.end();
  std::uint64_t named = 0;
  for (std::uint64_t v = 0; v < c.rows; ++v) {
    const auto [first, own] = edges_of[v];
    if (first + own > count)
      throw bad_input(fmt::format("{}: vertex {} has {} edges from edge {} on, but the file has only {} edges", name, v,
                                  own, first, count));
    if (named += own; named > count)
      throw bad_input(
          fmt::format("{}: the vertices together have more edges than the {} edges of the file", name, count));
    for (std::uint64_t e = first; e < first + own; ++e)
      c.elements.push_back({static_cast<std::uint32_t>(v), edges[e].target, edges[e].cost});
  }
  return c;
}

contents read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw bad_input(fmt::format("{} cannot be opened", path));
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || all.empty()) throw bad_input(fmt::format("{} cannot be read, or is empty", path));
  if (const std::string container = files::container_of(all); !container.empty())
    throw bad_input(fmt::format("{}: {}", path, container));
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // of UTF-8
  const std::string_view text = std::string_view(all).substr(all.starts_with(byte_order_mark) ? 3 : 0);
  if (text.starts_with('%')) return matrix_of(text, path);
  if (const std::size_t first = text.find_first_not_of(" \t\r\n");
      first == std::string_view::npos || text[first] < '0' || text[first] > '9')
    throw bad_input(
        fmt::format("{} begins with \"{}\"; a Matrix Market file begins with \"%%MatrixMarket\", and a Rodinia graph "
                    "begins with the number of its vertices",
                    path, files::printable(text.substr(0, text.find('\n')))));
  return graph_of(text, path);
}

}  // namespace hpe::sparse
