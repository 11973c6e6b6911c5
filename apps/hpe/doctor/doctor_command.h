#pragma once

namespace hpe::cli {

/// `hpe doctor`: checks whether hpe works on this machine, and prints what the modes of `hpe run` would do with a
/// program. Returns 0 if everything works, 1 if a feature will not work, and 2 after a usage error.
int doctor(int argc, char** argv);

}  // namespace hpe::cli
