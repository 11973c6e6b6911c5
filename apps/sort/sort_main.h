#pragma once

/// `hpe sort`; argv[0] is the subcommand's name. Returns 0, 1 if it failed, 2 if the command line is invalid.
int sort_main(int argc, char** argv);
