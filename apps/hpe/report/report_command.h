#pragma once

#include <string>

namespace hpe::cli {

/// `hpe run --report`: runs the program as a child that writes parts of the page, waits for the child, and makes the
/// page, even if the program failed. Returns the exit status of the program; if a signal killed the program, the same
/// signal ends this process. Signals to this process are forwarded to the program.
int run_with_report(const std::string& page, char** argv);

/// `hpe report`: makes a page from the parts that processes have written.
int report(int argc, char** argv);

}  // namespace hpe::cli
