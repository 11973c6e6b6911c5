#include "apps/imaging/imaging_main.h"

#include <string>

#include "apps/command_line/program.h"
#include "apps/imaging/imaging_program.h"

namespace hpe::imaging {

namespace {

int run(int (*program)(const make_team&, int, char**), int argc, char** argv) {
  return command_line::guarded(std::string("hpe ") + argv[0], [&] {
    if (command_line::one_of_several_ranks()) command_line::become("hpe-imaging-mpi", argv);
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
