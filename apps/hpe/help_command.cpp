#include <fmt/core.h>

#include "apps/command_line/program.h"
#include "apps/command_line/wrapping.h"
#include "apps/hpe/command.h"
#include "runtime/base/options.h"

namespace hpe::cli {

namespace {

int print_commands() {
  constexpr std::size_t column = 17;
  const std::size_t width = command_line::columns();
  fmt::print("Usage: hpe <command> [arguments]\n");
  std::string_view group;
  for (const command& c : commands()) {
    if (group != c.group) fmt::print("\n{}:\n", group = c.group);
    fmt::print("  {:<15}{}\n", c.name, command_line::wrapped(c.summary, column, width));
  }
  command_line::print_help("\n`hpe <command> --help` describes a command; `hpe --version` prints the version.\n");
  return 0;
}

void print_option(const option_description& option) {
  constexpr std::size_t heading = 2, column = 4;
  const std::size_t width = command_line::columns();
  const std::string values = option.values.empty() ? "" : listed(option.values, "or") + "; ";
  const std::string value =
      fmt::format("{} ({}default: {})", option.variable, values, option.initial.empty() ? "empty" : option.initial);
  fmt::print("  {}\n    {}\n", command_line::wrapped(value, heading, width),
             command_line::wrapped(option.sentence, column, width));
}

int print_options() {
  fmt::print("{}\n", command_line::wrapped(
                         "Set these options in the environment. Sizes may end in k, M, G or T. An option that is on or "
                         "off may be set to 1 or 0 too.",
                         0, command_line::columns()));
  std::string_view group;
  for (const option_description& option : describe_options()) {
    if (group != option.group) fmt::print("\n{}:\n", group = option.group);
    fmt::print("\n");
    print_option(option);
  }
  return 0;
}

}  // namespace

int help(int argc, char** argv) {
  bool wanted = false;
  std::string topic;
  command_line::read(
      {{"TOPIC", "", "a command, an option such as HPE_LOG, or the word options for a list of all options",
        command_line::to_text(topic)},
       command_line::help_option(wanted)},
      argc, argv);
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
  for (const option_description& option : describe_options()) {
    if (topic == option.variable) {
      print_option(option);
      return 0;
    }
    if (topic.starts_with("HPE_")) known.emplace_back(option.variable);
  }
  return refuse("help on", topic, known);
}

}  // namespace hpe::cli
