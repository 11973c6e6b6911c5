#include "interpose/soft/cudart/spread/soft_spreading.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "hpe/spread.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/trace/spread_table.h"

namespace hpe::cudart {

bool spreads_kernels() {
  static const bool on = options::from_environment().spread;
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

namespace {

/// If launches cannot be spread over the devices of the process, logs the reason.
void tell_of_devices() {
  int devices = 0;
  if (::hpeGetDeviceCount(&devices) != HPE_SUCCESS) return;
  const char* why = devices == 1 ? "the program sees one device" : nullptr;
  for (int d = 0; d < devices; ++d) {
    hpeDeviceInfo info{};
    if (::hpeGetDeviceInfo(d, &info) == HPE_SUCCESS && ~info.peers << (64 - devices) != 0)
      why = "the devices do not reach each other's memory";
  }
  if (why != nullptr) log(log_level::warn, "hpe run --spread: nothing can be spread, because {}", why);
}

}  // namespace

hpeStatus run_over(std::span<const int> devices, kernel& what, const hpeGrid& shape,
                   const std::vector<std::byte>& arguments, hpeFault* fault) {
  static std::once_flag told;
  if (spreads_kernels()) std::call_once(told, tell_of_devices);
  hpeSpread how{};
  const auto begin = std::chrono::steady_clock::now();
  hpeStatus status = ::hpeLaunchOver(devices.empty() ? nullptr : devices.data(), devices.size(), what.handle(), &shape,
                                     arguments.data(), arguments.size(), &how);
  if (status != HPE_SUCCESS) return status;
  for (const hpeWork& part : how.work) {
    if (part.line == 0) continue;
    hpeFault found = HPE_FAULT_NONE;
    const hpeStatus of_part = ::hpeWorkWait(part, &found);
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
