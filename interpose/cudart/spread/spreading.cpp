#include "interpose/cudart/spread/spreading.h"

#include <algorithm>
#include <chrono>

#include "hpe/spread.h"
#include "runtime/base/options.h"
#include "runtime/base/switch_option.h"
#include "runtime/trace/spread_table.h"

namespace hpe::cudart {

bool spreads_kernels() {
  static const bool on = is_on("HPE_SPREAD", options::from_environment().spread);
  return on;
}

hpeStatus allocate_device_memory(void** made, std::size_t bytes, int device) {
  if (!spreads_kernels()) return ::hpeMallocOn(made, bytes, device);
  int devices = 0;
  std::size_t granule = 0;
  if (const hpeStatus status = ::hpeGetDeviceCount(&devices); status != HPE_SUCCESS) return status;
  if (const hpeStatus status = ::hpeGetGranularity(&granule); status != HPE_SUCCESS) return status;
  if (devices == 1 || bytes < granule * static_cast<std::size_t>(devices)) return ::hpeMallocOn(made, bytes, 0);
  return ::hpeMallocStriped(made, bytes, nullptr);
}

hpeStatus run_over(kernel& what, const hpeGrid& shape, const std::vector<std::byte>& arguments, hpeFault* fault) {
  hpeSpread how{};
  const auto begin = std::chrono::steady_clock::now();
  hpeStatus status = ::hpeLaunchOver(nullptr, 0, what.handle(), &shape, arguments.data(), arguments.size(), &how);
  if (status != HPE_SUCCESS) return status;
  for (std::uint32_t n = 0; n < std::max(how.parts, 1U); ++n) {
    hpeFault found = HPE_FAULT_NONE;
    const hpeStatus of_part = ::hpeWorkWait(how.work[n], &found);
    if (status != HPE_SUCCESS || of_part == HPE_SUCCESS) continue;
    status = of_part;
    *fault = found;
  }
  if (trace::spread_table* const table = trace::spread_table::active()) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    table->add(what.name(), how.parts, took.count(), how.reason);
  }
  return status;
}

}  // namespace hpe::cudart
