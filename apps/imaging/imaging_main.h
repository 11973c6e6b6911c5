#pragma once

/// The imaging programs as commands of hpe; argv[0] is the command's name. Each returns 0 on success, 1 on failure, 2
/// if the command line is invalid. Under mpirun, the process becomes hpe-imaging-mpi.
int convolve_main(int argc, char** argv);
int least_squares_main(int argc, char** argv);
int tomosynthesis_main(int argc, char** argv);
int rays_main(int argc, char** argv);
int multiply_main(int argc, char** argv);

/// The command `hpe filter`. It returns the same exit statuses, but always runs in one process.
int filter_main(int argc, char** argv);
