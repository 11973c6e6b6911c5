#include "apps/scan/choice/choice.h"

#include <fmt/core.h>

#include <algorithm>

namespace hpe::scan {

namespace {

std::string times(std::uint64_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// Returns the teams of devices, each of which shares problems, if the batch is spread in the way `spread`.
std::vector<std::vector<int>> teams_of(split spread, const std::vector<device_traits>& devices) {
  std::vector<std::vector<int>> teams;
  if (spread == split::mp_pc) return link_domains(devices);
  std::vector<int> all;
  for (int d = 0; d < static_cast<int>(devices.size()); ++d) all.push_back(d);
  if (spread == split::mps) return {all};
  for (const int d : all) teams.push_back({d});
  return teams;
}

split choose_split(const batch& what, const std::vector<device_traits>& devices, std::vector<std::string>& reasons) {
  const std::uint64_t count = devices.size(), domains = link_domains(devices).size();
  const std::string work = times(what.problems, "problem") + " for " + times(count, "device");
  if (count == 1) {
    reasons.emplace_back("there is one device");
    return split::problems;
  }
  // Devices share problems if whole problems would leave devices idle for more than a tenth of the time.
  const std::uint64_t rounds = (what.problems + count - 1) / count;
  if (what.problems >= count && rounds * count * 9 <= what.problems * 10) {
    reasons.push_back(work + ": each device gets whole problems, and nothing is exchanged");
    return split::problems;
  }
  if (domains > 1 && what.problems >= domains) {
    reasons.push_back(work + fmt::format(" in {} link domains: MP-PC, so that no data moves between domains "
                                         "(premise 4)",
                                         domains));
    return split::mp_pc;
  }
  reasons.push_back(work + (domains == 1
                                ? ", which reach each other: MPS, so all devices share each problem (premise 4)"
                                : ", fewer problems than link domains: MPS, so all devices share each problem"));
  return split::mps;
}

bool connected(const std::vector<int>& team, const std::vector<device_traits>& devices) {
  std::vector<device_traits> members;
  for (const int d : team) members.push_back(devices[d]);
  return reach_each_other(members);
}

}  // namespace

choice choose(const batch& what, const std::vector<device_traits>& devices, bool single_pass_possible, algorithm how,
              split spread) {
  choice result;
  result.spread = spread;
  if (spread == split::automatic)
    result.spread = choose_split(what, devices, result.reasons);
  else
    result.reasons.push_back(fmt::format("{} was asked for", name_of(spread)));
  const std::vector<std::vector<int>> teams = teams_of(result.spread, devices);

  const bool all_connected =
      std::all_of(teams.begin(), teams.end(), [&](const auto& team) { return connected(team, devices); });
  result.how = how;
  if (how == algorithm::automatic) {
    result.how = single_pass_possible && all_connected ? algorithm::single_pass : algorithm::three_stages;
    result.reasons.emplace_back(!single_pass_possible ? "three stages: the device has no kernel that scans in one pass"
                                : !all_connected
                                    ? "three stages: one pass needs devices that reach each other"
                                    : "one pass: it moves each element twice, but three stages move it three times");
  } else {
    result.reasons.push_back(fmt::format("{} was asked for", name_of(how)));
    if (how == algorithm::single_pass && !(single_pass_possible && all_connected))
      throw error(
          HPE_ERROR_NOT_SUPPORTED,
          single_pass_possible
              ? "a scan in one pass cannot be shared by devices that do not reach each other's memory; use --algorithm "
                "three-stages, or --split problems, which gives each device whole problems"
              : "a scan in one pass was asked for, but a device has no kernel for it; use --algorithm three-stages");
  }

  for (std::size_t t = 0; t < teams.size(); ++t) {
    const std::uint64_t first = what.problems * t / teams.size(), last = what.problems * (t + 1) / teams.size();
    if (last > first) result.teams.push_back({teams[t], first, last - first});
  }
  return result;
}

const char* name_of(algorithm how) {
  switch (how) {
    case algorithm::automatic: return "automatic";
    case algorithm::single_pass: return "one pass";
    case algorithm::three_stages: return "three stages";
  }
  return "";
}

const char* name_of(split spread) {
  switch (spread) {
    case split::automatic: return "automatic";
    case split::problems: return "problems to devices";
    case split::mps: return "MPS";
    case split::mp_pc: return "MP-PC";
  }
  return "";
}

}  // namespace hpe::scan
