#pragma once

/// `hpe scan`; argv[0] is the subcommand's name. Returns 0 on success, 1 on failure, 2 if the command line is invalid.
int scan_main(int argc, char** argv);
