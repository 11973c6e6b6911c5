#include "apps/command_line/command_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <utility>

#include "apps/command_line/wrapping.h"

namespace hpe::command_line {

namespace {

bool is_word(const option& o) { return !o.name.starts_with("-"); }
bool is_switch(const option& o) { return !is_word(o) && o.value.empty(); }

/// Returns the number of letters that must be inserted, removed or replaced to turn one word into the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// Returns the message for a word that is not in the table.
std::string complaint_about(const std::string& word, const std::vector<option>& table) {
  const auto place = std::find_if(table.begin(), table.end(), is_word);
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    for (const option& o : table)
      if (!is_word(o)) known.push_back(o.name);
    const std::string meant = nearest(name, known);
    return "unknown option " + name + (meant.empty() ? "; --help lists them" : "; is " + meant + " meant?");
  }
  if (place == table.end())
    return "\"" + word + "\" is not an option, and this command reads no file; --help lists the options";
  return "\"" + word + "\" is an unexpected argument; --help lists the arguments";
}

/// Returns the message for words that CLI11 refuses: a switch with a value, or a last option without its value.
std::string complaint_about(const std::vector<std::string>& words, const std::vector<option>& table,
                            const std::string& sentence) {
  for (const option& o : table) {
    const bool attached =
        std::any_of(words.begin(), words.end(), [&](const std::string& w) { return w.starts_with(o.name + "="); });
    if (is_switch(o) && attached) return o.name + " takes no value";
    if (!o.value.empty() && (words.back() == o.name || attached)) return o.name + " needs a value: " + o.value;
  }
  return sentence;
}

/// Throws bad_input for --name= without a value: CLI11 would take the next word as the value.
void refuse_empty_values(const std::vector<std::string>& words, const std::vector<option>& table,
                         bool up_to_a_program) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const bool is_program = up_to_a_program && !words[i].starts_with("-");
    if (is_program) return;
    for (const option& o : table) {
      if (is_word(o) || o.value.empty()) continue;
      if (words[i] == o.name + "=") throw bad_input(o.name + " needs a value: " + o.value);
    }
    const auto takes_next = [&](const option& o) { return !o.value.empty() && words[i] == o.name; };
    if (std::any_of(table.begin(), table.end(), takes_next)) ++i;
  }
}

/// Passes the values of the options to their setters. If up_to_a_program, returns the program and its arguments (with
/// the "--" before them, if there is one); otherwise returns nothing. Throws bad_input for other words that are not in
/// the table.
std::vector<std::string> parse(const std::vector<option>& table, int argc, char** argv, bool up_to_a_program) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  refuse_empty_values(words, table, up_to_a_program);
  CLI::App parser;
  parser.set_help_flag();
  parser.allow_extras();
  parser.prefix_command(up_to_a_program);
  std::vector<std::pair<const option*, CLI::Option*>> rows;
  for (const option& o : table) {
    const std::string name = o.name == "--help" ? "-h,--help" : o.name;
    CLI::Option* const row = is_switch(o) ? parser.add_flag(name)->disable_flag_override()
                                          : parser.add_option(is_word(o) ? std::string("word") : name)->expected(1);
    rows.emplace_back(&o, row->take_last());
  }
  try {
    parser.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& refused) {
    throw bad_input(complaint_about(words, table, refused.what()));
  }
  std::vector<std::string> unknown = parser.remaining();
  const bool program_follows = up_to_a_program && (unknown.empty() || unknown[0] == "--" || unknown[0][0] != '-');
  if (!program_follows && !unknown.empty()) throw bad_input(complaint_about(unknown[0], table));
  for (const auto& [o, row] : rows)
    if (row->count() > 0) o->set(o->name, is_switch(*o) ? "" : row->results().back());
  return unknown;
}

}  // namespace

void read(const std::vector<option>& table, int argc, char** argv) {
  static_cast<void>(parse(table, argc, argv, false));
}

int read_before_program(const std::vector<option>& table, int argc, char** argv) {
  const std::vector<std::string> rest = parse(table, argc, argv, true);
  const int separators = !rest.empty() && rest[0] == "--" ? 1 : 0;
  return argc - static_cast<int>(rest.size()) + separators;
}

std::string lines_of_help(const std::vector<option>& table) {
  constexpr std::size_t widest = 28, gap = 2;
  const auto left = [](const option& o) { return "  " + o.name + (o.value.empty() ? "" : " " + o.value); };
  std::size_t column = 0;
  for (const option& o : table)
    if (const std::size_t width = left(o).size() + gap; width <= widest) column = std::max(column, width);
  const std::size_t width = columns();
  std::string result;
  for (const option& o : table) {
    const std::string begin = left(o);
    result += begin;
    result += begin.size() + gap <= column ? std::string(column - begin.size(), ' ') : '\n' + std::string(column, ' ');
    result += wrapped(o.help, column, width) + '\n';
  }
  return result;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = 3;
  for (const std::string& candidate : known) {
    const std::size_t changes = distance(word, candidate);
    if (changes < least && changes < candidate.size()) {
      least = changes;
      best = candidate;
    }
  }
  return best;
}

}  // namespace hpe::command_line
