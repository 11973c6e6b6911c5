#pragma once

#include <string>

namespace hpe::cli {

/// `hpe run --report`: runs the program as a child that writes parts of the page, waits for the child, and makes the
/// page, even if the program failed. Forwards SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT and SIGQUIT to the program
/// (SIGINT and SIGQUIT from a terminal reach the program directly). If a signal killed the program, the same signal
/// ends this process. Returns the exit status of the program; 2 if the page cannot be written, 126 or 127 if the
/// program cannot be run, and 1 if the page could not be written after the program succeeded.
int run_with_report(const std::string& page, char** argv);

/// `hpe report`: makes a page from the parts that processes have written.
int report(int argc, char** argv);

}  // namespace hpe::cli
