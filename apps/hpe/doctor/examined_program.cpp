#include "apps/hpe/doctor/examined_program.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/auxv.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "apps/command_line/bad_input.h"
#include "apps/hpe/explain/explain_command.h"
#include "apps/hpe/installation.h"
#include "apps/hpe/output_of.h"
#include "runtime/ptx/files/elf_file.h"

namespace hpe::cli {

namespace {

namespace fs = std::filesystem;
using state = finding::state;

/// Returns the program that the first line of a script names; empty if the file is not a script. `#!/usr/bin/env NAME`
/// means NAME in PATH.
std::string interpreter_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  if (stream.get() != '#' || stream.get() != '!' || !std::getline(stream, line)) return "";
  std::istringstream words(line);
  std::string program, first;
  words >> program >> first;
  if (fs::path(program).filename() == "env" && first == "-S") words >> first;
  return fs::path(program).filename() == "env" ? program_file(first).string() : program;
}

/// Returns the path of this process's dynamic linker. The dynamic linker can list the libraries of a program without
/// running any code of the program.
std::string dynamic_linker() {
  Dl_info about{};
  const auto base = ::getauxval(AT_BASE);
  const bool found = ::dladdr(reinterpret_cast<const void*>(base), &about) != 0;  // NOLINT(performance-no-int-to-ptr)
  return found && about.dli_fname != nullptr ? about.dli_fname : "";
}

/// Lists the libraries as ldd does, because the linker's option --list prints nothing if a library is missing.
void list_libraries(examined_program& p) {
  const std::string linker = dynamic_linker();
  if (linker.empty()) return;
  const program_output listed = output_of({"/usr/bin/env", "LD_TRACE_LOADED_OBJECTS=1", linker, p.path});
  std::istringstream lines(listed.text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow, file;
    words >> name >> arrow >> file;
    if (name.starts_with("/")) {  // preloaded, or named by its path
      file = name;
      name = fs::path(file).filename();
    } else if (arrow != "=>") {
      continue;
    }
    p.is_dynamic = true;
    if (file == "not")
      p.missing.push_back(name);
    else
      p.libraries.push_back(file);
    if (ptx::is_compiler(file) || name.starts_with("libcudart.so.")) p.runtimes.push_back(name);
    if (name.starts_with("libcuda.so.")) p.uses_driver = true;
    if (name.starts_with("libmpi.so.") || name.starts_with("libmpich.so.") || name.starts_with("libmpi_abi.so."))
      p.mpi = file == "not" ? name : file;
  }
}

void look_at_code(const std::string& file, examined_program& p) {
  const std::string name = fs::path(file).filename();
  if (ptx::needs_gpu(file)) {
    p.needs_gpu.push_back(file);
    return;
  }
  if (name.starts_with("libcudart.so.") || name.starts_with("libcuda.so.") || name.starts_with("libhpe")) return;
  if (auto parts = ptx::read_cuda_parts(file, ptx::code_to_read::all)) p.cuda.push_back({file, *std::move(parts)});
}

void count_kernels(examined_program& p) {
  std::map<std::string, std::size_t> obstacles;
  for (const cuda_file& file : p.cuda) {
    if (file.parts.ptx_architectures.empty()) continue;
    for (const explained_module& m : explain_file(file.path, "").modules) {
      p.kernels.unreadable_modules += m.error.empty() ? 0 : 1;
      p.kernels.kernels += m.kernels.size();
      for (const spread::module_model::kernel* const k : m.kernels) {
        if (k->obstacle_in_programs.empty())
          ++p.kernels.spreadable;
        else
          ++obstacles[k->obstacle_in_programs];
      }
    }
  }
  p.kernels.obstacles.assign(obstacles.begin(), obstacles.end());
  std::stable_sort(p.kernels.obstacles.begin(), p.kernels.obstacles.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

std::string architectures(const char* prefix, const std::set<std::uint32_t>& all) {
  std::vector<std::string> names;
  for (const std::uint32_t a : all) names.push_back(fmt::format("{}_{}", prefix, a));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string code_in(const ptx::cuda_parts& parts) {
  std::vector<std::string> kinds;
  if (!parts.ptx_architectures.empty()) kinds.push_back("PTX for " + architectures("compute", parts.ptx_architectures));
  if (!parts.machine_code_architectures.empty())
    kinds.push_back("machine code for " + architectures("sm", parts.machine_code_architectures));
  return kinds.empty() ? "no kernels" : fmt::format("{}", fmt::join(kinds, ", "));
}

bool has_code(const ptx::cuda_parts& parts) {
  return !parts.ptx_architectures.empty() || !parts.machine_code_architectures.empty();
}

/// Whether the driver can run the code on the GPU: the code is machine code for the GPU's major version, or PTX. In
/// both cases, the code must not be for a newer GPU.
bool has_code_for(const ptx::cuda_parts& parts, unsigned gpu) {
  const auto fits = [gpu](std::uint32_t code) { return code <= gpu; };
  return std::any_of(parts.ptx_architectures.begin(), parts.ptx_architectures.end(), fits) ||
         std::any_of(parts.machine_code_architectures.begin(), parts.machine_code_architectures.end(),
                     [&](std::uint32_t code) { return fits(code) && code / 10 == gpu / 10; });
}

/// Whether hpe preloads its own version of this library for soft devices.
bool is_preloaded(const std::string& library) {
  return library == "libcudart.so.13" || library == "libcudart.so.12" || library == "libcuda.so.1";
}

constexpr const char* shared_with_ptx =
    R"(NVCC_APPEND_FLAGS="-cudart shared -arch=compute_75" in the environment of nvcc)";

finding run_on_soft_devices(const examined_program& p) {
  const std::string subject = "hpe run";
  for (const cuda_file& file : p.cuda) {
    if (file.parts.has_own_runtime)
      return {
          state::bad, subject,
          fmt::format(
              "its kernels do not run on soft devices: {} contains a static CUDA runtime, which needs NVIDIA's driver",
              file.path),
          fmt::format("link it with the shared runtime: {}", shared_with_ptx)};
    if (has_code(file.parts) && !file.parts.has_ptx)
      return {state::bad, subject,
              fmt::format("its kernels do not run on soft devices: {} has machine code for particular GPUs only",
                          file.path),
              fmt::format("compile it with PTX: {}", shared_with_ptx)};
  }
  for (const std::string& runtime : p.runtimes)
    if (!is_preloaded(runtime))
      return {state::bad, subject,
              fmt::format("it is linked with {}; on soft devices, hpe has a runtime for CUDA 12 and 13 only", runtime),
              "build it with CUDA 12 or 13"};
  if (p.kernels.unreadable_modules != 0)
    return {state::note, subject,
            fmt::format("it runs on soft devices, but {} of its modules of PTX cannot be read",
                        p.kernels.unreadable_modules),
            "hpe explain FILE says why"};
  if (!p.needs_gpu.empty())
    return {state::note, subject,
            fmt::format("it runs on soft devices, but calls of {} fail there: these libraries need a GPU",
                        fmt::join(p.needs_gpu, ", "))};
  return {state::good, subject, "it runs on soft devices, without a GPU"};
}

finding run_on_gpus(const examined_program& p, const machine_facts& machine) {
  const std::string subject = "hpe run";
  for (const cuda_file& file : p.cuda)
    for (const unsigned gpu : machine.gpu_architectures)
      if (has_code(file.parts) && !has_code_for(file.parts, gpu))
        return {state::bad, subject,
                fmt::format("{} has no code for this GPU (sm_{}): {}", file.path, gpu, code_in(file.parts)),
                fmt::format("compile it for the GPU: nvcc -arch=sm_{}", gpu)};
  return {state::good, subject, "it runs on GPUs; CPU code, file calls and MPI messages may use its device memory"};
}

finding plain_run(const examined_program& p, const machine_facts& machine) {
  const std::string subject = "hpe run";
  if (!p.is_elf)
    return {state::bad, subject, "this machine cannot run it: it is neither a 64-bit ELF file nor a script"};
  std::vector<std::string> missing = p.missing;
  if (!machine.has_driver) std::erase_if(missing, is_preloaded);
  if (!missing.empty())
    return {state::bad, subject, fmt::format("it does not start: {} not found", fmt::join(missing, ", ")),
            "add the folder of these libraries to LD_LIBRARY_PATH"};
  if (!p.is_dynamic)
    return {state::bad, subject,
            "it is linked statically: the dynamic linker, which brings hpe into programs, does not run",
            "link it without -static"};
  if (p.is_linked_with_hpe)
    return {state::good, subject, "it is linked with hpe, and runs on hpe's devices with or without hpe run"};
  if (!p.has_cuda())
    return {state::good, subject,
            "no use of CUDA was found in its files; hpe also serves libraries that the program loads at run time"};
  return machine.has_driver ? run_on_gpus(p, machine) : run_on_soft_devices(p);
}

finding spread_run(const examined_program& p, const machine_facts& machine, const finding& plain) {
  const std::string subject = "hpe run --spread";
  if (plain.how == state::bad) return {state::bad, subject, "the same problem as with hpe run"};
  const auto with_ptx = std::count_if(p.cuda.begin(), p.cuda.end(), [](const cuda_file& f) { return f.parts.has_ptx; });
  if (p.is_linked_with_hpe)
    return {state::note, subject,
            "it changes nothing: programs that are linked with hpe decide themselves what is spread "
            "(hpe::launch_over)"};
  if (p.cuda.empty()) return {state::note, subject, "no CUDA kernels were found in its files"};
  if (with_ptx == 0 || p.kernels.kernels == 0)
    return {state::note, subject, "no kernel can be spread: its files contain no PTX",
            fmt::format("compile it with PTX: nvcc -arch=sm_80 adds PTX to the machine code")};
  finding result{state::good, subject, ""};
  const bool several = machine.device_memory.size() > 1;
  result.text = fmt::format("{} of {} kernels could be spread over {}", p.kernels.spreadable, p.kernels.kernels,
                            several ? fmt::format("{} devices", machine.device_memory.size()) : "several devices");
  if (!several) result.text += ", but hpe has only one here";
  if (!several || p.kernels.spreadable == 0) result.how = state::note;
  for (const auto& [why, kernels] : p.kernels.obstacles)
    result.more.push_back(fmt::format("{} stay{} on one device: {}", kernels, kernels == 1 ? "s" : "", why));
  return result;
}

finding oversubscribed_run(const examined_program& p, const machine_facts& machine, const finding& plain) {
  const std::string subject = "hpe run --oversubscribe";
  if (plain.how == state::bad) return {state::bad, subject, "the same problem as with hpe run"};
  if (p.is_linked_with_hpe)
    return {state::good, subject, "even without this option, hpe memory may be larger than a device"};
  if (!p.has_cuda())
    return {state::note, subject, "no use of CUDA was found in its files, so the option changes nothing"};
  const auto least = std::min_element(machine.device_memory.begin(), machine.device_memory.end());
  const std::string device =
      least != machine.device_memory.end() ? fmt::format("the {} MiB of a device", *least >> 20) : "a device has";
  finding result{
      state::good, subject,
      fmt::format("it may allocate more than {}, if the arrays of each launch fit into a device's memory together or "
                  "hpe can divide the launch",
                  device)};
  if (!p.needs_gpu.empty())
    result.more.push_back(
        "hpe assumes that a kernel without PTX (cuBLAS, cuDNN) uses all allocations to which its parameters point");
  return result;
}

}  // namespace

examined_program examine(const std::string& name) {
  examined_program p;
  p.path = program_file(name).string();
  if (p.path.empty())
    throw command_line::bad_input(
        fmt::format("{}: no such program{}", name, name.find('/') != std::string::npos ? "" : " in PATH"));
  if (const std::string interpreter = interpreter_of(p.path); !interpreter.empty()) {
    p.script = p.path;
    p.path = interpreter;
  }
  {
    const ptx::mapped_file file(p.path);
    const ptx::elf_file elf(file.content());
    p.is_elf = elf.is_elf();
    p.forks = elf.imports("fork") || elf.imports("daemon");
    p.is_linked_with_hpe = elf.needs("libhpe.so.");
  }
  if (!p.is_elf) return p;
  list_libraries(p);
  look_at_code(p.path, p);
  for (const std::string& library : p.libraries) look_at_code(library, p);
  count_kernels(p);
  return p;
}

std::vector<finding> parts_of(const examined_program& p) {
  std::vector<finding> all;
  if (!p.script.empty())
    all.push_back({state::note, "script",
                   fmt::format("{} is a script, so these answers are about {}", p.script, p.path),
                   "hpe doctor does not see libraries that the script opens (import torch)"});
  if (!p.has_cuda()) {
    all.push_back({state::good, "CUDA", "none in its file and libraries"});
  } else {
    const auto own =
        std::find_if(p.cuda.begin(), p.cuda.end(), [](const cuda_file& f) { return f.parts.has_own_runtime; });
    std::string runtime = p.runtimes.empty() ? "none (the program uses only the driver's library)"
                                             : fmt::format("shared ({})", fmt::join(p.runtimes, ", "));
    if (own != p.cuda.end()) runtime = fmt::format("linked into {}", own->path);
    all.push_back({state::good, "CUDA runtime", runtime});
  }
  for (const cuda_file& file : p.cuda)
    all.push_back({state::good, "device code", fmt::format("{} ({})", code_in(file.parts), file.path)});
  if (!p.needs_gpu.empty()) all.push_back({state::good, "libraries", fmt::format("{}", fmt::join(p.needs_gpu, ", "))});
  if (!p.mpi.empty()) {
    all.push_back(check_mpi(p.mpi));
  }
  if (p.forks && p.has_cuda())
    all.push_back({state::note, "fork",
                   "it can fork: children made by fork after the first use of a device cannot use devices, unless they "
                   "call exec"});
  return all;
}

std::vector<finding> modes_of(const examined_program& p, const machine_facts& machine) {
  const finding plain = plain_run(p, machine);
  return {plain, spread_run(p, machine, plain), oversubscribed_run(p, machine, plain)};
}

}  // namespace hpe::cli
