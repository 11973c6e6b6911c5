#pragma once

/// The common parts of the imaging programs: options, reports, and images in files.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/imaging/team.h"
#include "hpe/hpe.hpp"

namespace hpe::imaging {

using command_line::bad_input;

/// The options that all programs have.
struct common {
  bool help = false, quiet = false;
  std::int64_t devices = 0, repeats = 3;
  std::string output, json;
};
/// The table of a program's options: its own, followed by the common ones.
[[nodiscard]] std::vector<command_line::option> with_common(std::vector<command_line::option> own, common& c,
                                                            const std::string& output_help);
/// Reads the command line into the variables of the options and makes the team. Null after --help, whose text
/// the process that leads has printed.
[[nodiscard]] std::unique_ptr<team> begin(const make_team& make, const std::vector<command_line::option>& options,
                                          const common& c, std::string (*help_text)(), int argc, char** argv);
/// Throws bad_input if the process that leads has too little memory on the host or on its devices together. on_host,
/// on_devices: numbers of 4-byte values; floating-point, because products of sizes must not overflow.
void check_memory(const std::string& what, const team& who, double on_host, double on_devices);
/// A setter for sizes with crosses between them, as in 1024x768. Every size is at least 1.
[[nodiscard]] command_line::setter to_sizes(const std::vector<std::int64_t*>& places);

/// In the process that leads: prints the times of a run followed by `more`, and writes the JSON.
void tell(const std::string& program, const std::string& title, const common& c, const team& who, const times& t,
          const std::string& more = "");

/// Values of a plane, row by row. In PNG files, black is 0 and white is 255.
struct image {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
};
/// Reads .npy (two axes, f32) or, else, PNG as grey. Throws bad_input.
[[nodiscard]] image read_image(const std::string& file);
/// Writes .npy if the name ends so, else PNG.
void write_image(const std::string& file, const image& i);
/// Throws bad_input if the file of --output cannot be written or its name has another ending than .npy (or .png).
void check_output(const std::string& file, bool npy_only);

/// The kernels of libhpe-imaging-kernels.so.
[[nodiscard]] hpe::module kernels();
/// A grid for a kernel over this number of elements.
[[nodiscard]] hpeShape grid_for(std::uint64_t elements);

/// The programs. They throw bad_input and hpe::error.
int run_convolution(const make_team& make, int argc, char** argv);
int run_least_squares(const make_team& make, int argc, char** argv);
int run_tomosynthesis(const make_team& make, int argc, char** argv);
int run_rays(const make_team& make, int argc, char** argv);
int run_product(const make_team& make, int argc, char** argv);

/// The programs by the names that they have as commands of hpe.
struct command {
  const char* name;
  int (*run)(const make_team& make, int argc, char** argv);
};
inline constexpr std::array commands{command{"convolve", run_convolution}, command{"least-squares", run_least_squares},
                                     command{"tomosynthesis", run_tomosynthesis}, command{"rays", run_rays},
                                     command{"multiply", run_product}};

}  // namespace hpe::imaging
