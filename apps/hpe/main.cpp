#include <fmt/core.h>

#include <array>

#include "apps/command_line/program.h"
#include "apps/fdtd/fdtd_main.h"
#include "apps/fft/fft_main.h"
#include "apps/gather/gather_main.h"
#include "apps/hpe/command.h"
#include "apps/hpe/doctor/doctor_command.h"
#include "apps/hpe/explain/explain_command.h"
#include "apps/hpe/report/report_command.h"
#include "apps/imaging/imaging_main.h"
#include "apps/predict/predict_main.h"
#include "apps/rtm/rtm_main.h"
#include "apps/scan/scan_main.h"
#include "apps/sort/sort_main.h"
#include "apps/sparse/sparse_main.h"

namespace hpe::cli {

namespace {

constexpr const char* programs = "Run your programs";
constexpr const char* machine = "Look at the machine";
constexpr const char* applications = "Applications, which use all devices";

constexpr std::array table{
    command{programs, "run", "runs a CUDA or MPI program with hpe inside", run_program},
    command{programs, "doctor", "checks whether hpe works on this machine, and shows what hpe would do with a program",
            doctor},
    command{programs, "explain",
            "shows how CUDA kernels use memory, and which kernels could run on several GPUs at once", explain},
    command{programs, "report", "makes a page from the records that processes wrote with HPE_REPORT", report},
    command{programs, "top", "shows the processes that use hpe now: devices, memory, rates", top},
    command{machine, "info", "shows the devices, their memory, and which devices reach each other's memory", info},
    command{machine, "bench", "measures this machine; without a name, lists the measurements", bench},
    command{machine, "predict", "predicts how fast an application would be on more devices or another machine",
            predict_main},
    command{applications, "rtm", "reverse time migration: a seismic image from a velocity model", rtm_main},
    command{applications, "wave", "a wave on a grid of cells, by a stencil of order 2 to 16", fdtd_main},
    command{applications, "fft", "Fourier transforms of any length", fft_main},
    command{applications, "scan", "batched prefix sums, minima and maxima", scan_main},
    command{applications, "sort", "stable sorts of keys and pairs", sort_main},
    command{applications, "gather", "reads elements of a table by index", gather_main},
    command{applications, "scatter", "writes elements of a table by index", scatter_main},
    command{applications, "spmv", "products of a sparse matrix and a vector", spmv_main},
    command{applications, "bfs", "breadth-first search in a graph", bfs_main},
    command{applications, "hash", "a hash table, built by scatters and searched by gathers", hash_main},
    command{applications, "multiply", "products of matrices by Fox's algorithm", multiply_main},
    command{applications, "convolve", "a 7 x 7 convolution of images that may be larger than a device", convolve_main},
    command{applications, "filter",
            "image filters whose weights are stored on each device, on one device, or on the host", filter_main},
    command{applications, "least-squares", "matrices that bring paths of points nearest to a reference path",
            least_squares_main},
    command{applications, "tomosynthesis", "a volume from X-ray views, by iterations", tomosynthesis_main},
    command{applications, "rays", "ray tracing of moving spheres", rays_main},
    command{"Help", "help", "this text; `hpe help COMMAND`, `hpe help options`, `hpe help HPE_LOG`", help},
};

int run(int argc, char** argv) {
  if (argc < 2) {
    help(1, argv);
    return command_line::usage_error;
  }
  const std::string_view word = argv[1];
  if (word == "--version") {
    fmt::print("hpe {}\n", HPE_PACKAGE_VERSION);
    return 0;
  }
  if (word == "--help" || word == "-h") return help(1, argv);
  std::vector<std::string> known;
  for (const command& c : table) {
    if (word == c.name) return c.run(argc - 1, argv + 1);
    known.emplace_back(c.name);
  }
  return refuse("command", word, known);
}

}  // namespace

std::span<const command> commands() { return table; }

}  // namespace hpe::cli

int main(int argc, char** argv) {
  using namespace hpe::command_line;
  return with_output_written("hpe", guarded("hpe", [&] { return hpe::cli::run(argc, argv); }));
}
