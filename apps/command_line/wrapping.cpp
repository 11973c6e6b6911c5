#include "apps/command_line/wrapping.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hpe::command_line {

namespace {

std::size_t wanted_columns() {
  std::size_t number = 0;
  const char* const set = std::getenv("COLUMNS");  // NOLINT(concurrency-mt-unsafe): no thread sets variables
  if (set != nullptr && std::from_chars(set, set + std::strlen(set), number).ec == std::errc() && number > 0)
    return number;
  constexpr std::size_t usual = 80;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

}  // namespace

std::size_t columns() { return std::max<std::size_t>(wanted_columns(), 40); }

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string result;
  std::size_t column = indent;
  const auto next_line = [&] {
    while (!result.empty() && result.back() == ' ') result.pop_back();
    result.append(1, '\n').append(indent, ' ');
    column = indent;
  };
  while (!text.empty()) {
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    const std::string_view gap = text.substr(0, blanks);
    text.remove_prefix(blanks);
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    if (column > indent && column + gap.size() + word.size() > width) {
      next_line();
    } else {
      result += gap;
      column += gap.size();
    }
    result += word;
    column += word.size();
    if (!text.empty() && text[0] == '\n') {
      text.remove_prefix(1);
      next_line();
    }
  }
  return result;
}

void print_help(std::string_view text) {
  const std::size_t width = columns();
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) std::printf("%s\n", wrapped(paragraph, 0, width).c_str());
    paragraph.clear();
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool is_prose = !line.empty() && line[0] != ' ';
    if (is_prose) {
      paragraph.append(paragraph.empty() ? "" : " ").append(line);
      continue;
    }
    end_paragraph();
    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  }
  end_paragraph();
}

}  // namespace hpe::command_line
