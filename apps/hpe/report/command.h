#pragma once

#include <string>

namespace hpe::cli {

/// `hpe run --report`: runs the program as a child that collects for this page, waits for it, and makes the page, also
/// if the program failed. Returns the exit status of the program; if a signal killed it, the same signal ends this
/// process. Signals that this process gets go to the program.
int run_with_report(const std::string& page, char** argv);

/// `hpe report`: makes a page of the parts that processes have left.
int report(int argc, char** argv);

}  // namespace hpe::cli
