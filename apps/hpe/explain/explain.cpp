#include <fmt/core.h>

#include "apps/command_line/program.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/hpe/explain/explain_command.h"
#include "hpe/error.hpp"
#include "runtime/base/demangled.h"
#include "runtime/ptx/files/device_code.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::cli {

explained_file explain_file(const std::string& path, const std::string& kernels) {
  explained_file result;
  ptx::device_code code;
  try {
    code = ptx::read_device_code(path);
  } catch (const hpe::error& e) {
    throw command_line::bad_input(e.what());
  }
  result.path = path;
  result.without_ptx = code.without_ptx;
  const auto wanted = [&kernels](const std::string& name) {
    return name.find(kernels) != std::string::npos || demangled(name).find(kernels) != std::string::npos;
  };
  for (std::vector<std::string>& texts : code.modules) {
    explained_module& m = result.modules.emplace_back();
    try {
      m.program = ptx::parse(std::move(texts), ptx::warp_order::independent, ptx::unknown_code::left_out);
    } catch (const hpe::error& e) {
      m.error = e.what();
      continue;
    }
    m.model = std::make_unique<spread::module_model>(m.program, wanted);
    const auto& known = m.model->kernels();
    for (const auto& f : m.program->functions)
      if (const auto found = known.find(f->name); f->is_kernel && f->is_defined && found != known.end())
        m.kernels.push_back(&found->second);
  }
  return result;
}

namespace {

constexpr const char* usage =
    "Usage: hpe explain FILE [options]\n\n"
    "Prints how the CUDA kernels in a file use global memory, and which kernels could run on several GPUs at once, "
    "each\n"
    "GPU with a part of the grid. For each array, it prints the part that a block uses and the neighbours that the "
    "block\n"
    "reads; for each kernel that has to stay on one GPU, the reason. The file is PTX (nvcc -ptx), or a program, "
    "library or\n"
    "object of nvcc that contains PTX. No kernel runs, and no GPU is needed. docs/explain.md explains the terms.\n\n";

constexpr const char* examples =
    "\nExamples:\n"
    "  hpe explain kernels.ptx\n"
    "  hpe explain ./program --kernel stencil --accesses\n";

std::size_t count_of(const explained_file& file) {
  std::size_t count = 0;
  for (const explained_module& m : file.modules) count += m.kernels.size();
  return count;
}

// Throws bad_input if the file has no kernels that can be explained.
void check(const explained_file& file, const std::string& kernels) {
  if (count_of(file) > 0) return;
  for (const explained_module& m : file.modules)
    if (!m.error.empty()) throw command_line::bad_input(fmt::format("{}: {}", file.path, m.error));
  if (!kernels.empty())
    throw command_line::bad_input(fmt::format("no kernel of {} has \"{}\" in its name", file.path, kernels));
  throw command_line::bad_input(fmt::format("there are no kernels in {}", file.path));
}

}  // namespace

int explain(int argc, char** argv) {
  bool help = false, with_accesses = false;
  std::string path, kernels, json;
  const std::vector<command_line::option> table{
      {"FILE", "", "PTX, or a program, library or object with PTX", command_line::to_text(path)},
      {"--kernel", "NAME", "only kernels with this text in their name", command_line::to_text(kernels)},
      {"--accesses", "", "also print each access: its address, its place in the code, and its assumptions",
       command_line::to_flag(with_accesses)},
      command_line::json_option(json),
      command_line::help_option(help)};
  command_line::read(table, argc, argv);
  if (help) {
    command_line::print_help(usage + command_line::lines_of_help(table) + examples);
    return 0;
  }
  if (path.empty()) throw command_line::bad_input("a file is missing; see `hpe explain --help`");
  command_line::check_outputs({json}, {path});
  const explained_file file = explain_file(path, kernels);
  check(file, kernels);
  if (json != "-") fmt::print("{}", explanation(file, with_accesses));
  command_line::write_text(json.empty() ? "" : explanation_as_json(file), json);
  return 0;
}

}  // namespace hpe::cli
