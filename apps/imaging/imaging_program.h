#pragma once

/// The common parts of the imaging programs: options, reports, and images in files.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/imaging/imaging_team.h"
#include "hpe/hpe.hpp"

namespace hpe::imaging {

using command_line::bad_input;

/// The options that all imaging programs have.
struct common {
  bool help = false, quiet = false;
  std::int64_t devices = 0, repeats = 3;
  std::string output, json;
};
/// Returns the table of a program's options: the program's own options, followed by the common options.
[[nodiscard]] std::vector<command_line::option> with_common(std::vector<command_line::option> own, common& c,
                                                            const std::string& output_help);
/// Reads the command line into the variables of the options and makes the team. Returns null after --help, whose text
/// the leading process has printed.
[[nodiscard]] std::unique_ptr<team> begin(const make_team& make, const std::vector<command_line::option>& options,
                                          const common& c, std::string (*help_text)(), int argc, char** argv);
/// Throws bad_input if the leading process has too little memory on the host, or on all of its devices together.
/// on_host, on_devices: numbers of 4-byte values; floating-point, because products of sizes must not overflow.
void check_memory(const std::string& what, const team& who, double on_host, double on_devices);
/// Returns a setter for sizes that are separated by "x", as in 1024x768. Every size is at least 1.
[[nodiscard]] command_line::setter to_sizes(const std::vector<std::int64_t*>& places);

/// In the leading process: prints the times of a run followed by `more`, and writes the JSON.
void tell(const std::string& program, const std::string& title, const common& c, const team& who, const times& t,
          const std::string& more = "");

/// The values of the pixels, row by row. In PNG files, black is 0 and white is 255.
struct image {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
};
/// Reads an .npy file (two axes, f32); any other file is read as PNG and converted to grey. Throws bad_input.
[[nodiscard]] image read_image(const std::string& file);
/// Writes an image to files that end in .npy or .png.
void write_image(const command_line::output_files& files, const image& i);
/// Returns the files that --output names, for a result that is an image or an array; an array has no picture. Throws
/// bad_input if one of these files or the file of --json cannot be written, or is among `inputs`.
enum class output_kind { image, array };
[[nodiscard]] command_line::output_files checked_outputs(const std::string& output, const std::string& json,
                                                         output_kind kind, const std::vector<std::string>& inputs = {});

/// Returns the kernels of libhpe-imaging-kernels.so.
[[nodiscard]] hpe::module kernels();
/// Returns the grid of a kernel that processes this number of elements.
[[nodiscard]] hpeShape grid_for(std::uint64_t elements);

/// The programs. They return the exit status, and throw bad_input and hpe::error.
int run_convolution(const make_team& make, int argc, char** argv);
int run_least_squares(const make_team& make, int argc, char** argv);
int run_tomosynthesis(const make_team& make, int argc, char** argv);
int run_rays(const make_team& make, int argc, char** argv);
int run_product(const make_team& make, int argc, char** argv);

/// A program and its name as a command of hpe.
struct command {
  const char* name;
  int (*run)(const make_team& make, int argc, char** argv);
};
inline constexpr std::array commands{command{"convolve", run_convolution}, command{"least-squares", run_least_squares},
                                     command{"tomosynthesis", run_tomosynthesis}, command{"rays", run_rays},
                                     command{"multiply", run_product}};

}  // namespace hpe::imaging
