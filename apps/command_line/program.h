#pragma once

/// Common parts of all commands and benchmarks: the options that mean the same everywhere, the exit status, and the
/// check of sizes before memory is allocated.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/command_line/command_options.h"
#include "apps/command_line/values.h"

namespace hpe::command_line {

inline constexpr int failed = 1, usage_error = 2;

/// Runs a program and returns its exit status: the result of `body`; 2 after bad_input or an argument that the runtime
/// refuses; 1 after any other exception. Writes `name` and the exception's message to standard error.
int guarded(const std::string& name, const std::function<int()>& body);

/// Flushes standard output and returns `status`. If the output could not be written, prints an error and returns 1
/// instead of 0.
[[nodiscard]] int with_output_written(const std::string& name, int status);

/// Whether this process is one of several ranks that mpirun started (Open MPI, or an MPI that uses PMI).
[[nodiscard]] bool one_of_several_ranks();

/// Replaces this process by another program in the same folder: `hpe` is not linked with MPI, but the programs that run
/// under mpirun are. Throws bad_input if the program cannot be started, for example because the folder lacks it.
[[noreturn]] void become(const std::string& program, char** argv);

option help_option(bool& place);
option quiet_option(bool& place);
option json_option(std::string& place);
option devices_option(std::int64_t& place);
/// `place` must already hold the default value, which the help text states.
option repeats_option(std::int64_t& place);

/// Returns the number of devices to use for a value of --devices, where 0 means all. The value must not be negative.
/// Throws bad_input if it is larger than the number of devices.
[[nodiscard]] int devices_of(std::int64_t devices);

/// Checks a program's output files before its work begins. Throws bad_input if an output cannot be written, or if it is
/// the same file as an input or another output, even through a link or under another spelling of the path; a device
/// file or FIFO may be named several times. Changes no file. Ignores empty paths and "-".
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs = {});

/// The files that --output NAME means. If NAME ends in a possible ending, it is the only file. If NAME has no ending,
/// the files are NAME with each of the `usual` endings.
struct output_files {
  std::string stem;                  ///< the name without the ending
  std::vector<std::string> endings;  ///< as in ".png"

  [[nodiscard]] bool has(const std::string& ending) const;
  [[nodiscard]] std::vector<std::string> names() const;
};

/// Returns the files of an --output; none for an empty name. Throws bad_input for an ending that is not possible.
[[nodiscard]] output_files outputs_named(const std::string& name, const std::vector<std::string>& possible,
                                         const std::vector<std::string>& usual);

/// Returns the number with a unit, as in "1.5 GiB".
[[nodiscard]] std::string in_words(double bytes);

/// Bytes that a program is about to allocate. The numbers are floating-point, because products of sizes must not
/// overflow.
struct demand {
  double on_devices = 0;  ///< all devices together
  double on_host = 0;
};

/// Returns, for example, "1.5 GiB on 2 devices, where 6.0 GiB are free, and 20.0 MiB on the host, where 3.1 GiB are
/// free".
[[nodiscard]] std::string in_words(const demand& need, int devices);

/// Returns Linux's estimate of the bytes that this process can allocate without swapping, within the limits of its
/// control groups. Returns infinity if the estimate is not available. root: the folder that contains proc and sys.
[[nodiscard]] double free_on_host(const std::filesystem::path& root = "/");

/// Throws bad_input if the first `devices` devices, or the host, have less free memory than `need`. The limits of this
/// process's control groups count as limits of the host. what: a description of the program's data for the message, as
/// in "1000 elements of 8 bytes". root: the folder that contains proc and sys.
void check_room(const std::string& what, const demand& need, int devices, const std::filesystem::path& root = "/");

}  // namespace hpe::command_line
