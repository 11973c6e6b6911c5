#include <fmt/core.h>

#include <array>

#include "apps/command_line/program.h"
#include "apps/fdtd/fdtd_main.h"
#include "apps/fft/fft_main.h"
#include "apps/gather/gather_main.h"
#include "apps/hpe/command.h"
#include "apps/hpe/explain/command.h"
#include "apps/hpe/report/command.h"
#include "apps/imaging/imaging_main.h"
#include "apps/predict/predict_main.h"
#include "apps/rtm/rtm_main.h"
#include "apps/scan/scan_main.h"
#include "apps/sort/sort_main.h"
#include "apps/sparse/sparse_main.h"

namespace hpe::cli {

namespace {

constexpr std::array table{
    command{"info", "the devices, their memory, and which device reaches which", info},
    command{"run", "runs a CUDA or MPI program with hpe inside", run_program},
    command{"explain", "how CUDA kernels use memory, and which could run on several GPUs at once", explain},
    command{"report", "makes a page of the records that processes wrote with HPE_REPORT", report},
    command{"top", "the processes that use hpe now: devices, memory, rates", top},
    command{"fft", "Fourier transforms of any length over all devices", fft_main},
    command{"rtm", "reverse time migration: a seismic image from a velocity model", rtm_main},
    command{"wave", "a wave on a grid of cells, by a stencil of order 2 to 16", fdtd_main},
    command{"scan", "batched prefix sums, minima and maxima over all devices", scan_main},
    command{"sort", "stable sorts of keys and pairs over all devices", sort_main},
    command{"convolve", "a 7 x 7 convolution of images that may be larger than a device", convolve_main},
    command{"filter", "image filters whose weights lie on each device, on one, or on the host", filter_main},
    command{"least-squares", "matrices that bring paths of points nearest to a reference path", least_squares_main},
    command{"tomosynthesis", "a volume from X-ray views, by iterations over all devices", tomosynthesis_main},
    command{"rays", "ray tracing of moving spheres over all devices", rays_main},
    command{"multiply", "products of matrices by Fox's algorithm", multiply_main},
    command{"gather", "reads elements of a table by index, on all devices", gather_main},
    command{"scatter", "writes elements of a table by index, on all devices", scatter_main},
    command{"spmv", "products of a sparse matrix and a vector", spmv_main},
    command{"bfs", "breadth-first search in a graph", bfs_main},
    command{"hash", "a hash table, built by scatters and searched by gathers", hash_main},
    command{"predict", "how fast an application would be on more devices or another machine", predict_main},
    command{"bench", "measurements of this machine; alone it lists them", bench},
    command{"help", "this text; `hpe help options` lists all options", help},
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
