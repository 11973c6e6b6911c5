#pragma once

/// `hpe explain`: how the kernels in a file use global memory, and which of them could run on several devices at once.

#include <memory>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"

namespace hpe::cli {

/// A module of the file. The analyses refer to the program.
struct explained_module {
  std::unique_ptr<ptx::program> program;
  std::vector<ptx::analysis::kernel_analysis> kernels;
  std::string error;  // why it could not be read; empty if it could
};

struct explained_file {
  std::string path;
  std::vector<explained_module> modules;
  unsigned without_ptx = 0;  // fat binaries with machine code only
};

/// The kernels whose name, as in the PTX or as in C++, contains a text. Throws bad_input if the file
/// cannot be read.
[[nodiscard]] explained_file explain_file(const std::string& path, const std::string& kernels);

/// The name as in C++ where the compiler encoded it.
[[nodiscard]] std::string demangled(const std::string& name);

/// The answer for people; with each access if wanted.
[[nodiscard]] std::string explanation(const explained_file& file, bool with_accesses);

/// The answer for programs, as docs/schemas/explain.json describes it.
[[nodiscard]] std::string explanation_as_json(const explained_file& file);

/// The subcommand.
int explain(int argc, char** argv);

}  // namespace hpe::cli
