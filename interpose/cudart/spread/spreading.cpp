#include "interpose/cudart/spread/spreading.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "hpe/spread.h"
#include "runtime/base/error.h"
#include "runtime/base/options.h"

namespace hpe::cudart {

namespace {

/// The value of an option that is 0 or 1.
bool is_on(const char* name, const std::string& value) {
  HPE_REQUIRE(value == "0" || value == "1", HPE_ERROR_INITIALIZATION, "{}=\"{}\" is neither 0 nor 1", name, value);
  return value == "1";
}

bool explains() {
  static const bool on = is_on("HPE_SPREAD_EXPLAIN", options::from_environment().spread_explain);
  return on;
}

std::string readable(const std::string& name) {
  int status = 0;
  char* const made = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? made : name;
  std::free(made);  // NOLINT: __cxa_demangle allocates with malloc
  return result;
}

/// How the launches of each kernel ran; printed when the program ends.
class record {
 public:
  void add(const std::string& kernel, const hpeSpread& how, double seconds) {
    const std::lock_guard lock(mutex_);
    line& at = kernels_[kernel];
    ++at.launches;
    at.seconds += seconds;
    at.most_parts = std::max(at.most_parts, how.parts);
    if (how.parts > 1) ++at.spread;
    std::string& reason = how.parts > 1 ? at.why_spread : at.why_not;
    if (reason.empty()) reason = how.reason;
  }

  void print() {
    const std::lock_guard lock(mutex_);
    std::fprintf(stderr, "hpe: kernels over several devices\n%10s %10s %8s %10s  %s\n", "launches", "spread", "devices",
                 "ms", "kernel");
    for (const auto& [name, at] : kernels_) {
      std::fprintf(stderr, "%10llu %10llu %8u %10.1f  %s\n", at.launches, at.spread, at.most_parts, at.seconds * 1e3,
                   readable(name).c_str());
      if (!at.why_spread.empty()) std::fprintf(stderr, "%43sspread: %s\n", "", at.why_spread.c_str());
      if (!at.why_not.empty()) std::fprintf(stderr, "%43son one device: %s\n", "", at.why_not.c_str());
    }
  }

 private:
  struct line {
    unsigned long long launches = 0, spread = 0;
    std::uint32_t most_parts = 0;
    double seconds = 0;
    std::string why_spread, why_not;  // of the first such launch
  };
  std::mutex mutex_;
  std::map<std::string, line> kernels_;
};

/// Never destroyed: threads may launch kernels until the process ends.
record& launches() {
  static record* const all = [] {
    std::atexit([] { launches().print(); });
    return new record;
  }();
  return *all;
}

}  // namespace

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
  if (explains()) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    launches().add(what.name(), how, took.count());
  }
  return status;
}

}  // namespace hpe::cudart
