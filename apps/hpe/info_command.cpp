#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "apps/command_line/program.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/hpe/command.h"
#include "apps/hpe/machine.h"
#include "apps/hpe/nvml.h"
#include "hpe/hpe.hpp"
#include "hpe/placement.h"
#include "runtime/base/options.h"

namespace hpe::cli {

namespace {

std::string in_mib(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

std::string numbers(std::uint64_t set) {
  std::string text;
  for (int d = 0; d < 64; ++d) {
    if ((set >> d & 1) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", d);
  }
  return text;
}

}  // namespace

std::string describe_device(int number, const hpeDeviceInfo& device) {
  const char* kind = device.kind == HPE_DEVICE_SOFT ? "soft" : "cuda";
  std::string text = fmt::format("device {}: {} ({})\n", number, device.name, kind);
  if (device.lost != 0) {
    return text + "  LOST: the device died, and data without a copy on the host is gone; the other devices work\n";
  }
  text += fmt::format("  memory         {}, {} free\n", in_mib(device.memory_total), in_mib(device.memory_free));
  text += fmt::format("  compute units  {}\n", device.compute_units);
  const std::uint64_t others = device.peers & ~(std::uint64_t{1} << number);
  text += fmt::format("  reaches        {}\n", others == 0 ? "no other device" : "devices " + numbers(others));
  return text;
}

namespace {

struct feature {
  std::string name;
  bool built_in;
};

/// Returns the optional features of this build, as apps/hpe/CMakeLists.txt lists them: "NAME=ON NAME=OFF ...".
std::vector<feature> features() {
  std::vector<feature> all;
  std::istringstream list(HPE_FEATURES);
  for (std::string word; list >> word;) all.push_back({word.substr(0, word.find('=')), word.ends_with("=ON")});
  return all;
}

std::string first_line_of(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

int node_of(int device) {
  int node = -1;
  hpe::check(hpeGetDeviceNumaNode(device, &node));
  return node;
}

/// Describes a link of a soft device. value: the value of the link's option, as in "12G:5", or "".
std::string link_in_words(const std::string& value) {
  if (value.empty()) return "without a limit";
  const std::size_t colon = value.find(':');
  const std::string rate = value.substr(0, colon) + " bytes/s";
  return colon == std::string::npos ? rate : rate + " and " + value.substr(colon + 1) + " us";
}

nlohmann::json as_json(int number, const hpeDeviceInfo& device) {
  nlohmann::json object{{"number", number},
                        {"name", device.name},
                        {"kind", device.kind == HPE_DEVICE_SOFT ? "soft" : "cuda"},
                        {"lost", device.lost != 0}};
  if (device.lost != 0) return object;
  const int node = node_of(number);
  object["memory_total"] = device.memory_total;
  object["memory_free"] = device.memory_free;
  object["compute_units"] = device.compute_units;
  object["numa_node"] = node < 0 ? nlohmann::json() : nlohmann::json(node);
  if (device.kind == HPE_DEVICE_SOFT)
    object["links"] = {{"host", options::from_environment().soft_host_link},
                       {"peers", options::from_environment().soft_peer_link}};
  object["reaches"] = nlohmann::json::array();
  for (int d = 0; d < 64; ++d)
    if (d != number && (device.peers >> d & 1) != 0) object["reaches"].push_back(d);
  return object;
}

nlohmann::json as_json() {
  nlohmann::json object{{"program", "hpe info"},
                        {"version", HPE_PACKAGE_VERSION},
                        {"commit", command_line::commit()},
                        {"machine", command_line::machine()},
                        {"kernel", first_line_of("/proc/sys/kernel/osrelease")},
                        {"time", command_line::time_now()},
                        {"cuda", version_of_cuda()},
                        {"driver", first_line_of("/sys/module/nvidia/version")},
                        {"granularity", granularity()}};
  for (const feature& f : features()) object["features"][f.name] = f.built_in;
  for (int d = 0; d < device_count(); ++d) object["devices"].push_back(as_json(d, device_info(d)));
  object["gpus"] = nlohmann::json::array();
  const std::vector<gpu_links> links = links_of_gpus();
  for (const gpu& g : gpus_of_machine()) {
    nlohmann::json nvlinks = nlohmann::json::array(), paths = nlohmann::json::array();
    const gpu_links own = links_from(links, g.bus);
    for (const auto& n : own.links) nvlinks.push_back({{"to", n.to}, {"count", n.count}, {"version", n.version}});
    for (const pci_path& p : own.paths) paths.push_back({{"to", p.to}, {"through", p.through}});
    object["gpus"].push_back({{"model", g.model},
                              {"bus", g.bus},
                              {"link_speed", g.link_speed},
                              {"link_width", g.link_width},
                              {"numa_node", g.numa_node < 0 ? nlohmann::json() : nlohmann::json(g.numa_node)},
                              {"nvlinks", nvlinks},
                              {"pci_paths", paths}});
  }
  for (const limit& l : limits_of_machine())
    object["limits"].push_back(
        {{"name", l.name}, {"value", l.value}, {"enough", l.advice.empty()}, {"advice", l.advice}});
  return object;
}

std::string names_of(const std::vector<feature>& all, bool built_in) {
  std::string names;
  for (const feature& f : all)
    if (f.built_in == built_in) names += (names.empty() ? "" : ", ") + f.name;
  return names.empty() ? "none" : names;
}

std::string devices_as_text() {
  const int count = device_count();
  std::string text = fmt::format("hpe {}, {} device{}\n", HPE_PACKAGE_VERSION, count, count == 1 ? "" : "s");
  for (int d = 0; d < count; ++d) {
    const hpeDeviceInfo device = device_info(d);
    text += fmt::format("\n{}", describe_device(d, device));
    if (device.lost != 0) continue;
    const array<char> probe(1, on_device(d));
    const int node = node_of(d);
    if (device.kind == HPE_DEVICE_SOFT)
      text += fmt::format("  links          to the host {}, to other devices {}\n",
                          link_in_words(options::from_environment().soft_host_link),
                          link_in_words(options::from_environment().soft_peer_link));
    text += fmt::format("  NUMA node      {}\n  addresses      from {}\n", node < 0 ? "any" : std::to_string(node),
                        static_cast<void*>(probe.data()));
  }
  return text;
}

/// Returns the part of the output that does not need a running runtime.
std::string machine_as_text() {
  const std::string cuda = version_of_cuda(), driver = first_line_of("/sys/module/nvidia/version");
  const std::vector<feature> all = features();
  std::string text =
      fmt::format("machine          {}, Linux {}\ncommit           {}\nbuilt in         {}\nnot built in     {}\n",
                  command_line::machine(), first_line_of("/proc/sys/kernel/osrelease"), command_line::commit(),
                  names_of(all, true), names_of(all, false));
  text += fmt::format(
      "CUDA driver      {}\n",
      cuda.empty() ? "none" : fmt::format("for CUDA {}{}", cuda, driver.empty() ? "" : ", version " + driver));
  const std::vector<gpu_links> links = links_of_gpus();
  for (const gpu& g : gpus_of_machine()) {
    text += fmt::format("GPU {}  {}, {} x {}, NUMA node {}\n", g.bus, g.model, g.link_width, g.link_speed,
                        g.numa_node < 0 ? "any" : std::to_string(g.numa_node));
    text += describe_links(links_from(links, g.bus));
  }
  text += "\n";
  for (const limit& l : limits_of_machine())
    text += fmt::format("{:<21}{}{}\n", l.name, l.value, l.advice.empty() ? "" : "   LOW: " + l.advice);
  return text;
}

std::string as_text() {
  return devices_as_text() + "\n" + machine_as_text() +
         fmt::format("\nOne address space; memory is placed in units of {} KiB.\n", granularity() >> 10);
}

}  // namespace

int info(int argc, char** argv) {
  bool help = false;
  std::string json;
  const std::vector<command_line::option> options{command_line::json_option(json), command_line::help_option(help)};
  command_line::read(options, argc, argv);
  if (help) {
    command_line::print_help(fmt::format(
        "Usage: hpe info [options]\n\nStarts the runtime as a program would, and prints the devices and their "
        "links, the features that hpe was\nbuilt with, the driver, and limits of the machine that are too low.\n\n{}",
        command_line::lines_of_help(options)));
    return 0;
  }
  command_line::check_outputs({json});
  try {
    static_cast<void>(device_count());
  } catch (const error&) {
    // A limit of the machine may be the reason for the error, so the limits are printed before the error.
    if (json != "-") fmt::print("{}\n", machine_as_text());
    throw;
  }
  if (json != "-") fmt::print("{}", as_text());
  command_line::write_text(json.empty() ? "" : command_line::text_of(as_json(), 2) + "\n", json);
  return 0;
}

}  // namespace hpe::cli
