#include "apps/imaging/imaging_main.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "apps/imaging/program.h"

namespace hpe::imaging {

namespace {

/// Whether mpirun, of Open MPI or one with PMI, started several of this program.
bool one_of_several_ranks() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (size != nullptr && std::strtol(size, nullptr, 10) > 1) return true;
  }
  return false;
}

/// hpe is not linked with MPI, and hpe-imaging-mpi is.
[[noreturn]] void become_a_rank(char** argv) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hpe-imaging-mpi";
  ::execv(program.c_str(), argv);
  throw bad_input(fmt::format("under mpirun it needs {}, which cannot be run: {}. Was hpe built without MPI?",
                              program.string(), std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
}

int run(int (*program)(const make_team&, int, char**), int argc, char** argv) {
  return command_line::guarded(std::string("hpe ") + argv[0], [&] {
    if (one_of_several_ranks()) become_a_rank(argv);
    return program(make_threads, argc, argv);
  });
}

}  // namespace

}  // namespace hpe::imaging

int convolve_main(int argc, char** argv) { return hpe::imaging::run(hpe::imaging::run_convolution, argc, argv); }
int least_squares_main(int argc, char** argv) { return hpe::imaging::run(hpe::imaging::run_least_squares, argc, argv); }
int tomosynthesis_main(int argc, char** argv) { return hpe::imaging::run(hpe::imaging::run_tomosynthesis, argc, argv); }
int rays_main(int argc, char** argv) { return hpe::imaging::run(hpe::imaging::run_rays, argc, argv); }
int multiply_main(int argc, char** argv) { return hpe::imaging::run(hpe::imaging::run_product, argc, argv); }
