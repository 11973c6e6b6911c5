#pragma once

/// `hpe sort`; argv[0] is the subcommand's name. Returns 0 on success, 1 on failure, 2 if the command line is invalid.
int sort_main(int argc, char** argv);
