#pragma once

/// `hpe gather` and `hpe scatter`; argv[0] is the subcommand's name. They return 0 on success, 1 on failure, 2 if the
/// command line is invalid.
int gather_main(int argc, char** argv);
int scatter_main(int argc, char** argv);
