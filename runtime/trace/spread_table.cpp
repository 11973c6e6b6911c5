#include "runtime/trace/spread_table.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime/base/demangled.h"
#include "runtime/base/options.h"
#include "runtime/trace/call_stack.h"

namespace hpe::trace {

spread_table* spread_table::active() {
  static spread_table* const table = []() -> spread_table* {
    if (!options::from_environment().spread_explain) return nullptr;
    std::atexit([] { active()->print(); });
    return new spread_table;
  }();
  return table;
}

void spread_table::add(const std::string& kernel, std::uint32_t devices, double seconds, const std::string& reason) {
  const lock_guard lock(mutex_);
  line& at = kernels_[kernel];
  ++at.launches;
  at.seconds += seconds;
  at.most_devices = std::max(at.most_devices, devices);
  if (devices > 1) ++at.spread;
  if (!reason.empty()) (devices > 1 ? at.why_spread : at.why_not) = reason;
}

void spread_table::print() {
  const lock_guard lock(mutex_);
  std::fprintf(stderr, "hpe: kernels over several devices\n%10s %10s %8s %10s  %s\n", "launches", "spread", "devices",
               "ms", "kernel");
  for (const auto& [name, at] : kernels_) {
    std::fprintf(stderr, "%10llu %10llu %8u %10.1f  %s\n", static_cast<unsigned long long>(at.launches),
                 static_cast<unsigned long long>(at.spread), at.most_devices, at.seconds * 1e3,
                 demangled(name).c_str());
    if (!at.why_spread.empty()) std::fprintf(stderr, "%43sspread: %s\n", "", at.why_spread.c_str());
    if (!at.why_not.empty()) std::fprintf(stderr, "%43son one device: %s\n", "", at.why_not.c_str());
  }
}

}  // namespace hpe::trace
