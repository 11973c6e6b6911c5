// A libFuzzer target for the environment variables. The input consists of lines VARIABLE=value. For any values, hpe
// either reads the options and parses the specifications of devices and links, or refuses the values with an error.

#include "runtime/base/options.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/device/cuda/open.h"
#include "runtime/device/soft/shared/device_specification.h"

namespace {

template <class Read>
void attempt(Read read) {
  try {
    static_cast<void>(read());
  } catch (const hpe::error&) {
    // hpe refuses this input, which is correct.
  }
}

void read_everything() {
  using namespace hpe::device;
  static_cast<void>(hpe::misspelt_options());
  attempt([] {
    const hpe::options set = hpe::options::from_environment();
    attempt([&] { return cuda::parse_count(set.devices); });
    attempt([&] { return soft::parse_link("HPE_SOFT_HOST_LINK", set.soft_host_link); });
    attempt([&] {
      const soft::topology devices = soft::parse_topology(set.devices);
      return soft::parse_nodes(set.soft_nodes, devices.devices());
    });
    return 0;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    const std::string name = line.substr(0, equals);
    if (!name.starts_with("HPE_") || equals == std::string::npos) continue;
    if (::setenv(name.c_str(), line.c_str() + equals + 1, 1) == 0) names.push_back(name);
  }
  read_everything();
  for (const std::string& name : names) ::unsetenv(name.c_str());
  return 0;
}
