#include "apps/scan/choice/topology.h"

#include <algorithm>

namespace hpe::scan {

std::vector<device_traits> inspect(const std::vector<int>& devices) {
  std::vector<int> list = devices;
  if (list.empty())
    for (int d = 0; d < device_count(); ++d) list.push_back(d);
  std::vector<device_traits> all;
  for (const int d : list) {
    if (std::count(list.begin(), list.end(), d) > 1)
      throw error(HPE_ERROR_INVALID_ARGUMENT, "device " + std::to_string(d) + " is listed twice");
    const hpeDeviceInfo info = device_info(d);
    if (info.lost != 0)
      throw error(HPE_ERROR_DEVICE_LOST, "device " + std::to_string(d) + " is lost; leave this device out");
    all.push_back({d, info.kind, info.name, std::max(info.compute_units, 1U), info.peers});
  }
  return all;
}

bool reach_each_other(const std::vector<device_traits>& devices) {
  return std::all_of(devices.begin(), devices.end(), [&](const device_traits& a) {
    return std::all_of(devices.begin(), devices.end(),
                       [&](const device_traits& b) { return (a.peers >> b.number & 1) != 0; });
  });
}

std::vector<std::vector<int>> link_domains(const std::vector<device_traits>& devices) {
  const auto reach = [&](int a, int b) { return (devices[a].peers >> devices[b].number & 1) != 0; };
  std::vector<std::vector<int>> domains;
  for (int d = 0; d < static_cast<int>(devices.size()); ++d) {
    const auto fitting = std::find_if(domains.begin(), domains.end(), [&](const std::vector<int>& domain) {
      return std::all_of(domain.begin(), domain.end(), [&](int o) { return reach(d, o) && reach(o, d); });
    });
    if (fitting != domains.end())
      fitting->push_back(d);
    else
      domains.push_back({d});
  }
  return domains;
}

}  // namespace hpe::scan
