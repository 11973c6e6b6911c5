#pragma once

/// `hpe explain` prints how the kernels in a file use global memory, and which kernels could run on several devices at
/// once.

#include <memory>
#include <string>
#include <vector>

#include "runtime/spread/model/module_model.h"

namespace hpe::cli {

/// A module of the file.
struct explained_module {
  std::shared_ptr<const ptx::program> program;
  std::unique_ptr<spread::module_model> model;
  std::vector<const spread::module_model::kernel*> kernels;  // kernels of the model, in the order of the text
  std::string error;  // the reason why the module cannot be read; empty: no error
};

struct explained_file {
  std::string path;
  std::vector<explained_module> modules;
  unsigned without_ptx = 0;  // fat binaries with machine code only
};

/// Reads the kernels whose name, as in the PTX or as in C++, contains the text `kernels`. Throws bad_input if the file
/// cannot be read.
[[nodiscard]] explained_file explain_file(const std::string& path, const std::string& kernels);

/// Returns the explanation as readable text; with_accesses adds each memory access.
[[nodiscard]] std::string explanation(const explained_file& file, bool with_accesses);

/// Returns the explanation as JSON, as docs/schemas/explain.json describes it.
[[nodiscard]] std::string explanation_as_json(const explained_file& file);

/// Runs the subcommand. Returns the exit status.
int explain(int argc, char** argv);

}  // namespace hpe::cli
