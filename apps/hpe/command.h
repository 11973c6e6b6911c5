#pragma once

/// The subcommands of `hpe`. A new one is a function and a line of the table in main.cpp.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpe/hpe.h"

namespace hpe::cli {

/// What `hpe run` returns, as shells do, if the program cannot be run, and if there is none.
inline constexpr int cannot_run = 126;
inline constexpr int not_found = 127;

/// run gets its own arguments, argv[0] being the subcommand's name, and returns the exit status of the program. It may
/// throw; main prints the sentence, and returns 2 for bad_input and 1 for others.
struct command {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
};

/// All of them, in the order of the help text.
[[nodiscard]] std::span<const command> commands();

int info(int argc, char** argv);
int bench(int argc, char** argv);
int help(int argc, char** argv);
int run_program(int argc, char** argv);
int top(int argc, char** argv);

/// Complains on standard error about a word that names none of the known things, with the one that was probably
/// meant, and returns 2. kind says what it should have named, as in "command".
int refuse(std::string_view kind, std::string_view word, const std::vector<std::string>& known);

/// The lines of `hpe info` about one device.
[[nodiscard]] std::string describe_device(int number, const hpeDeviceInfo& device);

}  // namespace hpe::cli
