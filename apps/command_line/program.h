#pragma once

/// What every command and benchmark does alike: the options that mean the same everywhere, the exit status, and the
/// check of sizes before memory is asked for.

#include <cstdint>
#include <functional>
#include <string>

#include "apps/command_line/options.h"
#include "apps/command_line/values.h"

namespace hpe::command_line {

inline constexpr int failed = 1, usage_error = 2;

/// Runs a program and gives its exit status: that of body; 2 after bad_input or an argument that the runtime refuses;
/// 1 after any other exception. What was wrong goes to standard error, behind the name.
int guarded(const std::string& name, const std::function<int()>& body);

/// Ends what goes to standard output. Gives the status; 1 instead of 0, after a sentence, if the output could not be
/// written.
[[nodiscard]] int with_output_written(const std::string& name, int status);

option help_option(bool& place);
option quiet_option(bool& place);
option json_option(std::string& place);
option devices_option(std::int64_t& place);
/// place has the number that counts if the option is not given.
option repeats_option(std::int64_t& place);

/// Throws bad_input unless 0 <= devices <= those that there are. Gives how many are meant: 0 means all.
[[nodiscard]] int devices_of(std::int64_t devices);

/// Throws bad_input if the file cannot be written: now, and not after the work. Leaves no file that was not there. An
/// empty path and "-" name no file.
void check_writable(const std::string& path);

/// Bytes that a program is about to ask for. As floating-point numbers, for a product of sizes must not overflow.
struct demand {
  double on_devices = 0;  ///< all devices together
  double on_host = 0;
};

/// Throws bad_input if so many devices, the first ones, or the host have less memory free. what names the things that
/// need it, as in "1000 elements of 8 bytes".
void check_room(const std::string& what, const demand& need, int devices);

}  // namespace hpe::command_line
