#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "apps/fdtd/fdtd_main.h"
#include "apps/fft/fft_main.h"
#include "apps/hpe/command.h"
#include "apps/rtm/rtm_main.h"
#include "apps/scan/scan_main.h"
#include "apps/sort/sort_main.h"

namespace hpe::cli {

namespace {

constexpr std::array table{
    command{"info", "the devices, their memory and who reaches whom", info},
    command{"run", "runs a CUDA or MPI program with hpe inside", run_program},
    command{"top", "the processes that use hpe now: devices, memory, rates", top},
    command{"fft", "Fourier transforms of any length over all devices", fft_main},
    command{"rtm", "reverse time migration: a seismic image from a velocity model", rtm_main},
    command{"wave", "a wave on a grid of cells, by a stencil of order 2 to 16", fdtd_main},
    command{"scan", "batched prefix sums, minima and maxima over all devices", scan_main},
    command{"sort", "stable sorts of keys and pairs over all devices", sort_main},
    command{"bench", "measurements of this machine; alone it lists them", bench},
    command{"help", "this text; `hpe help options` lists what can be set", help},
};

int run(int argc, char** argv) {
  if (argc < 2) {
    help(1, argv);
    return usage_error;
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
  try {
    const int status = hpe::cli::run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    fmt::print(stderr, "hpe: standard output cannot be written: {}\n",
               std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread
    return status != 0 ? status : 1;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "hpe: {}\n", failure.what());
    return 1;
  }
}
