#include <fmt/core.h>

#include "apps/command_line/program.h"
#include "apps/hpe/command.h"
#include "hpe/hpe.hpp"

namespace hpe::cli {

namespace {

int print_commands() {
  fmt::print("Usage: hpe <command> [arguments]\n\n");
  for (const command& c : commands()) fmt::print("  {:<15}{}\n", c.name, c.summary);
  fmt::print("\n`hpe <command> --help` describes one of them; `hpe --version` prints the version.\n");
  return 0;
}

int print_options() {
  const hpeOptionInfo* options = nullptr;
  std::size_t count = 0;
  check(hpeGetOptions(&options, &count));
  fmt::print("Set in the environment. Sizes take k, M, G or T.\n");
  for (const hpeOptionInfo& option : std::span(options, count)) {
    const std::string_view initial = option.initial;
    fmt::print("\n  {} (default: {})\n    {}\n", option.variable, initial.empty() ? "empty" : initial, option.sentence);
  }
  return 0;
}

}  // namespace

int refuse(std::string_view kind, std::string_view word, const std::vector<std::string>& known) {
  fmt::print(stderr, "hpe: there is no {} \"{}\".", kind, word);
  if (const std::string meant = command_line::nearest(word, known); !meant.empty()) {
    fmt::print(stderr, " Did you mean \"{}\"?", meant);
  } else if (!known.empty()) {
    fmt::print(stderr, " There are:");
    for (const std::string& candidate : known) fmt::print(stderr, " {}", candidate);
  }
  fmt::print(stderr, "\n");
  return command_line::usage_error;
}

int help(int argc, char** argv) {
  bool wanted = false;
  std::string topic;
  command_line::read(
      {{"TOPIC", "", "a command, or options", command_line::to_text(topic)}, command_line::help_option(wanted)}, argc,
      argv);
  if (wanted || topic.empty()) return print_commands();
  std::vector<std::string> known{"options"};
  if (topic == "options") return print_options();
  for (const command& c : commands()) {
    if (topic == c.name) {
      std::string name = c.name;
      std::string wish = "--help";
      char* arguments[] = {name.data(), wish.data(), nullptr};
      return c.run(2, arguments);
    }
    known.emplace_back(c.name);
  }
  return refuse("help on", topic, known);
}

}  // namespace hpe::cli
