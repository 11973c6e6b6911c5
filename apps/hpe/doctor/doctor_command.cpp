#include "apps/hpe/doctor/doctor_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/command_line/program.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/hpe/doctor/examined_program.h"
#include "apps/hpe/doctor/machine_check.h"
#include "apps/hpe/doctor/trial.h"

namespace hpe::cli {

namespace {

using nlohmann::json;
using state = finding::state;

constexpr const char* words_of_states[] = {"ok", "note", "BAD"};
constexpr const char* names_of_states[] = {"good", "note", "bad"};

struct diagnosis {
  machine_check machine;
  std::optional<examined_program> program;
  std::vector<finding> parts, modes;  ///< findings about the program's files, and about the modes of hpe run
  std::optional<cli::trial> trial;
  std::vector<finding> run;  ///< findings of the trial run

  [[nodiscard]] bool is_well() const {
    const auto well = [](const std::vector<finding>& all) {
      return std::none_of(all.begin(), all.end(), [](const finding& f) { return f.how == state::bad; });
    };
    return well(machine.findings) && well(parts) && well(modes) && well(run);
  }
};

finding ending_of(const trial& t) {
  if (WIFSIGNALED(t.status))
    return {state::bad, "hpe run",
            fmt::format("signal {} ended the program after {:.1f} s ({})", WTERMSIG(t.status), t.seconds,
                        ::strsignal(WTERMSIG(t.status)))};  // NOLINT(concurrency-mt-unsafe)
  const int status = WEXITSTATUS(t.status);
  return {status == 0 ? state::good : state::bad, "hpe run",
          fmt::format("it ended after {:.1f} s with exit status {}", t.seconds, status)};
}

std::string in_mib(std::uint64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

std::vector<finding> findings_of(const trial& t) {
  std::vector<finding> all{ending_of(t)};
  for (const memory_peak& p : t.peaks) {
    const std::string subject = p.user.empty() ? p.device : fmt::format("{}, {}", p.user, p.device);
    all.push_back({state::good, subject, fmt::format("used at most {} of {}", in_mib(p.most), in_mib(p.memory))});
  }
  if (t.peaks.empty()) all.push_back({state::note, "device memory", "no process used any"});
  return all;
}

std::string text_of(const std::string& title, const std::vector<finding>& findings) {
  if (findings.empty()) return "";
  constexpr std::size_t before_subject = 8;
  const std::size_t width = command_line::columns();
  std::size_t column = 0;
  for (const finding& f : findings) column = std::max(column, before_subject + f.subject.size() + 2);
  column = std::min(column, width / 2);
  std::string text = title + "\n";
  for (const finding& f : findings) {
    text += fmt::format("  {:<6}{:<{}}", words_of_states[static_cast<std::size_t>(f.how)], f.subject,
                        column - before_subject);
    text += command_line::wrapped(f.text, column, width) + "\n";
    const auto below = [&](const std::string& line) {
      text += std::string(column, ' ') + command_line::wrapped(line, column, width) + "\n";
    };
    if (!f.remedy.empty()) below("-> " + f.remedy);
    for (const std::string& line : f.more) below(line);
  }
  return text + "\n";
}

std::string as_text(const diagnosis& d) {
  std::string text = text_of(fmt::format("hpe {} on this machine", HPE_PACKAGE_VERSION), d.machine.findings);
  if (d.program) text += text_of(d.program->path, d.parts) + text_of("what hpe would do with the program", d.modes);
  if (d.trial) text += text_of("the run", d.run);
  return text +
         (d.is_well() ? "Everything works.\n" : "A feature will not work; the lines with BAD name the problem.\n");
}

json as_json(const std::vector<finding>& findings) {
  json all = json::array();
  for (const finding& f : findings)
    all.push_back({{"subject", f.subject},
                   {"state", names_of_states[static_cast<std::size_t>(f.how)]},
                   {"text", f.text},
                   {"remedy", f.remedy},
                   {"more", f.more}});
  return all;
}

json as_json(const examined_program& p, const diagnosis& d) {
  json files = json::array(), obstacles = json::array();
  for (const cuda_file& f : p.cuda)
    files.push_back({{"file", f.path},
                     {"cuda_runtime", f.parts.has_own_runtime ? "static" : "shared"},
                     {"ptx", f.parts.ptx_architectures},
                     {"machine_code", f.parts.machine_code_architectures}});
  for (const auto& [why, kernels] : p.kernels.obstacles) obstacles.push_back({{"text", why}, {"kernels", kernels}});
  return {{"file", p.path},
          {"script", p.script},
          {"linked_with_hpe", p.is_linked_with_hpe},
          {"forks", p.forks},
          {"missing_libraries", p.missing},
          {"cuda_runtimes", p.runtimes},
          {"cuda_files", files},
          {"libraries_that_need_a_gpu", p.needs_gpu},
          {"mpi_library", p.mpi},
          {"kernels",
           {{"count", p.kernels.kernels},
            {"may_be_spread", p.kernels.spreadable},
            {"unreadable_modules", p.kernels.unreadable_modules},
            {"obstacles", obstacles}}},
          {"parts", as_json(d.parts)},
          {"modes", as_json(d.modes)}};
}

json as_json(const trial& t, const diagnosis& d) {
  json peaks = json::array();
  for (const memory_peak& p : t.peaks)
    peaks.push_back({{"user", p.user}, {"device", p.device}, {"most_bytes", p.most}, {"memory_bytes", p.memory}});
  return {{"seconds", t.seconds},
          {"exit_status", WIFEXITED(t.status) ? json(WEXITSTATUS(t.status)) : json()},
          {"signal", WIFSIGNALED(t.status) ? json(WTERMSIG(t.status)) : json()},
          {"peaks", peaks},
          {"findings", as_json(d.run)}};
}

json as_json(const diagnosis& d) {
  return {{"program", "hpe doctor"},
          {"version", HPE_PACKAGE_VERSION},
          {"commit", command_line::commit()},
          {"machine", command_line::machine()},
          {"time", command_line::time_now()},
          {"well", d.is_well()},
          {"findings", as_json(d.machine.findings)},
          {"examined", d.program ? as_json(*d.program, d) : json()},
          {"trial", d.trial ? as_json(*d.trial, d) : json()}};
}

}  // namespace

int doctor(int argc, char** argv) {
  bool help = false, run = false;
  std::string json_file;
  std::string program;
  const std::vector<command_line::option> table{
      {"PROGRAM", "", "a program, by its file or its name in PATH", command_line::to_text(program)},
      {"--run", "",
       "run the program under hpe run, and print the most device memory that it used; the program's output goes to "
       "standard error",
       command_line::to_flag(run)},
      command_line::json_option(json_file),
      command_line::help_option(help)};
  char** const dashes =
      std::find_if(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--"; });
  command_line::read(table, static_cast<int>(dashes - argv), argv);
  if (help) {
    command_line::print_help(
        "Usage: hpe doctor [options] [PROGRAM | -- PROGRAM arguments]\n\n"
        "Checks whether hpe works on this machine: driver, devices and copies between them, MPI library, limits, "
        "container. With a program, it also prints which CUDA runtime, device code and MPI library the program's files "
        "contain, without running the program, and what `hpe run`, `hpe run --spread` and `hpe run --oversubscribe` "
        "would do with the program.\n\n"
        "The exit status is 0 if everything works, 1 if a feature will not work, and 2 after a usage error.\n\n" +
        command_line::lines_of_help(table) +
        "\nExamples:\n"
        "  hpe doctor\n"
        "  hpe doctor ./program\n"
        "  hpe doctor --run -- ./program --size 100\n");
    return 0;
  }
  std::vector<std::string> words(std::min(dashes + 1, argv + argc), argv + argc);
  if (!program.empty() && !words.empty())
    throw command_line::bad_input(
        fmt::format("{} and {}: only one program can be examined at a time", program, words[0]));
  if (!program.empty()) words = {program};
  if (run && words.empty()) throw command_line::bad_input("--run needs a program; see `hpe doctor --help`");
  command_line::check_outputs({json_file});
  diagnosis d;
  if (!words.empty()) d.program = examine(words[0]);  // throws for an invalid program before the machine is checked
  d.machine = check_machine();
  if (d.program) {
    d.parts = parts_of(*d.program);
    d.modes = modes_of(*d.program, d.machine.facts);
  }
  if (run) {
    d.trial = try_out(words);
    d.run = findings_of(*d.trial);
  }
  if (json_file != "-") fmt::print("{}", as_text(d));
  command_line::write_text(json_file.empty() ? "" : command_line::text_of(as_json(d), 2) + "\n", json_file);
  return d.is_well() ? 0 : command_line::failed;
}

}  // namespace hpe::cli
