#pragma once

/// Common parts of all commands and benchmarks: the options that mean the same everywhere, the exit status, and the
/// check of sizes before memory is allocated.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "apps/command_line/options.h"
#include "apps/command_line/values.h"

namespace hpe::command_line {

inline constexpr int failed = 1, usage_error = 2;

/// Runs a program and returns its exit status: the result of `body`; 2 after bad_input or an argument that the runtime
/// refuses; 1 after any other exception. Writes the exception's message to standard error, behind the name.
int guarded(const std::string& name, const std::function<int()>& body);

/// Flushes standard output and returns `status`. If the output could not be written, prints an error and returns 1
/// instead of 0.
[[nodiscard]] int with_output_written(const std::string& name, int status);

/// Whether mpirun, of Open MPI or one with PMI, started several of this program.
[[nodiscard]] bool one_of_several_ranks();

/// Replaces this process by a program beside it: `hpe` is not linked with MPI, programs that mpirun starts are. Throws
/// bad_input if there is none.
[[noreturn]] void become(const std::string& program, char** argv);

option help_option(bool& place);
option quiet_option(bool& place);
option json_option(std::string& place);
option devices_option(std::int64_t& place);
/// `place` holds the default.
option repeats_option(std::int64_t& place);

/// Checks the value of --devices and returns the number of devices to use: 0 means all. Throws bad_input if it is
/// negative or more than exist.
[[nodiscard]] int devices_of(std::int64_t devices);

/// Throws bad_input if the file cannot be written, so that a program notices before its work. Leaves no new file.
/// An empty path and "-" name no file.
void check_writable(const std::string& path);

/// Bytes that a program is about to allocate. Floating-point numbers, because a product of sizes must not overflow.
struct demand {
  double on_devices = 0;  ///< all devices together
  double on_host = 0;
};

/// The kernel's estimate of the bytes that this process can allocate without swapping, within the limits of its control
/// groups; infinity if it is not known. root is the folder that contains proc and sys.
[[nodiscard]] double free_on_host(const std::filesystem::path& root = "/");

/// Throws bad_input if the first `devices` devices, or the host, have less free memory than `need`. The limits of this
/// process's control groups count as limits of the host. `what` names the data for the message, as in "1000 elements of
/// 8 bytes". root is the folder that contains proc and sys.
void check_room(const std::string& what, const demand& need, int devices, const std::filesystem::path& root = "/");

}  // namespace hpe::command_line
