#pragma once

/// The subcommands of `hpe`. A new subcommand needs a function, and a line in the table in main.cpp.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpe/hpe.h"

namespace hpe::cli {

/// Exit statuses of `hpe run`, as in shells: 126 if the program cannot be run, and 127 if the program does not exist.
inline constexpr int cannot_run = 126;
inline constexpr int not_found = 127;

/// A subcommand. `run` receives the subcommand's arguments, with its name in argv[0], and returns the exit status. If
/// `run` throws, main prints the exception's message, and returns 2 for bad_input and for an argument that the runtime
/// refuses, and 1 for other exceptions.
struct command {
  const char* group;  ///< heading under which the help text lists the command
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
};

/// Returns all subcommands, in the order of the help text.
[[nodiscard]] std::span<const command> commands();

int info(int argc, char** argv);
int bench(int argc, char** argv);
int help(int argc, char** argv);
int run_program(int argc, char** argv);
int top(int argc, char** argv);

/// Prints on standard error that `word` is not one of the known words, suggests the known word that was probably meant,
/// and returns 2. `kind` is what the words name, as in "command".
int refuse(std::string_view kind, std::string_view word, const std::vector<std::string>& known);

/// Returns the lines of `hpe info` about one device.
[[nodiscard]] std::string describe_device(int number, const hpeDeviceInfo& device);

}  // namespace hpe::cli
