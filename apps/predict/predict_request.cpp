#include "apps/predict/predict_request.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "apps/command_line/program.h"

namespace hpe::predict {

namespace {

constexpr int most_devices = 4096;

command_line::setter to_range(range& place) {
  return [&place](const std::string& name, const std::string& text) {
    const std::size_t dots = text.find("..");
    const auto number = [&](const std::string& part) {
      return static_cast<int>(command_line::whole_number(name, part, 1, most_devices));
    };
    const int first = number(text.substr(0, dots));
    place = {first, dots == std::string::npos ? first : number(text.substr(dots + 2))};
    if (place.last < place.first) throw bad_input(name + " " + text + ": the range is empty");
  };
}

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SPEC", "", "the application: a specification (.toml), or the name of one that comes with hpe",
       to_text(r.specification)},
      {"--machine", "PROFILE",
       "a profile (.json) that `hpe bench machine` wrote, or the name of one that comes with hpe", to_text(r.machine)},
      {"--gpus", "N|N..M", "numbers of devices (1..16)", to_range(r.devices)},
      {"--topology", "WHICH",
       "shared (all devices in one machine), distributed (one in each of several machines), both, or auto: shared, and "
       "distributed too if the profile has a network (auto)",
       to_word(r.where, {"shared", "distributed", "both", "auto"})},
      {"--set", "NAME=VALUE", "values for sizes of the specification, separated by commas", to_text(r.sizes)},
      {"--what-if", "PART=FACTORx",
       "change parts of the machine, as in link=2x,network=10x: link, peer, network, disk, host (copies in host "
       "memory), memory (size of host memory), gpu (speed of kernels)",
       to_text(r.what_if)},
      {"--from-trace", "FILE", "in place of SPEC: a trace of a run on one device (hpe run --trace)", to_text(r.trace)},
      {"--from-profile", "FILE", "in place of SPEC: the output of HPE_PROFILE=1 for a run on one device",
       to_text(r.profile)},
      {"--save-spec", "FILE", "write the specification made from the trace or the profile, for you to complete",
       to_text(r.save_spec)},
      {"--csv", "FILE", "write the predictions as comma-separated values; -: to standard output, without the table",
       to_text(r.csv)},
      {"--picture", "FILE", "draw the times over the number of devices, as .svg", to_text(r.picture)},
      {"--charts", "FILE", "write charts as JSON, for `scripts/measurements draw`", to_text(r.charts)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help),
  };
}

/// Returns the folder share/hpe/predict beside the program's folder, which exists in builds and in installations.
std::filesystem::path brought_along() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "share" / "hpe" / "predict";
}

}  // namespace

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv);
  if (r.help) return r;
  const bool of_run = !r.trace.empty() || !r.profile.empty();
  if (int{!r.specification.empty()} + int{!r.trace.empty()} + int{!r.profile.empty()} != 1)
    throw bad_input("a specification, --from-trace or --from-profile is needed; see --help");
  if (!of_run && !r.save_spec.empty()) throw bad_input("--save-spec needs --from-trace or --from-profile");
  if (!r.picture.empty() && !r.picture.ends_with(".svg"))
    throw bad_input("--picture " + r.picture + ": the name of the file must end in .svg");
  if (r.machine.empty() && r.save_spec.empty()) throw bad_input("no machine is named; add --machine PROFILE");
  return r;
}

std::string help_text() {
  request defaults;
  return "Usage: hpe predict [options] --machine PROFILE SPEC\n\n"
         "Predicts the time of an application on more devices, on a machine with other links, or on another machine, "
         "by\n"
         "two models: the equations of Schaa and Kaeli, which add up all times, and a model in which parts of a "
         "machine\n"
         "work at once.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe predict ray-tracing --machine pcie-workstation --what-if link=2x\n"
         "  hpe predict my.toml --machine my.json --gpus 1..8 --set n=8192\n"
         "  hpe predict --from-trace run.json --machine my.json --save-spec run.toml\n";
}

std::string file_of(const std::string& word, const std::string& folder, const std::string& ending) {
  if (std::filesystem::exists(word)) return word;
  const std::filesystem::path place = brought_along() / folder;
  if (const auto found = place / (word + ending); std::filesystem::exists(found)) return found;
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(place, none)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  throw bad_input(fmt::format("{}: there is no such file; the names that hpe contains are {}", word,
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

std::vector<topology> topologies(const request& r, const machine_profile& m) {
  std::vector<topology> all;
  if (r.where != "distributed") all.push_back(topology::shared);
  if (r.where == "distributed" || r.where == "both" || (r.where == "auto" && m.between_nodes))
    all.push_back(topology::distributed);
  return all;
}

}  // namespace hpe::predict
