#include "apps/command_line/options.h"

#include <algorithm>

namespace hpe::command_line {

namespace {

const option& find(const std::vector<option>& table, const std::string& name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const option& o) { return o.name == name; });
  if (found == table.end()) throw bad_input("unknown option " + name + "; --help lists them");
  return *found;
}

void take_file(std::string* file, const std::string& word) {
  if (file == nullptr) throw bad_input("\"" + word + "\" is no option, and no file is read; --help lists the options");
  if (!file->empty()) throw bad_input("one file is enough: \"" + *file + "\" or \"" + word + "\"?");
  *file = word;
}

}  // namespace

void read(const std::vector<option>& table, int argc, char** argv, std::string* file) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i] == std::string("-h") ? "--help" : argv[i];
    if (!word.starts_with("--")) {
      take_file(file, word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const option& meant = find(table, word.substr(0, equals));
    const bool attached = equals != std::string::npos;
    if (meant.value.empty()) {
      if (attached) throw bad_input(meant.name + " takes no value");
      meant.set(meant.name, "");
    } else if (attached) {
      meant.set(meant.name, word.substr(equals + 1));
    } else {
      if (i + 1 == argc) throw bad_input(meant.name + " needs a value: " + meant.value);
      meant.set(meant.name, argv[++i]);
    }
  }
}

std::string lines_of_help(const std::vector<option>& table, std::size_t column) {
  std::string next_line(1, '\n');
  next_line.append(column, ' ');
  std::string result;
  for (const option& o : table) {
    const std::size_t begin = result.size();
    result.append("  ").append(o.name);
    if (!o.value.empty()) result.append(" ").append(o.value);
    const std::size_t width = result.size() - begin;
    result += width < column - 1 ? std::string(column - width, ' ') : next_line;
    for (const char c : o.help) result += c == '\n' ? next_line : std::string(1, c);
    result += "\n";
  }
  return result;
}

}  // namespace hpe::command_line
