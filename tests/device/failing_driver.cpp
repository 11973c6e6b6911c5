#include "tests/device/failing_driver.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <string_view>

namespace device_test {
namespace {

using hpe::device::cuda::driver;

const driver& real() {
  static const driver table;
  return table;
}

struct plan {
  std::uint64_t calls_left = 0;  // the number of calls up to the one that fails; 0: no call fails
  CUresult result = CUDA_SUCCESS;
  std::string failed;
  std::map<std::string, std::uint64_t, std::less<>> successes;
};
thread_local plan the_plan;

std::atomic<bool> work_is_held{false};

// Driver functions that never fail. If they failed, the driver's own bookkeeping would be wrong, which hpe cannot
// handle.
constexpr std::array<std::string_view, 13> never{"cuGetErrorName",      "cuGetErrorString", "cuDevicePrimaryCtxRelease",
                                                 "cuCtxPopCurrent",     "cuCtxGetCurrent",  "cuMemAddressFree",
                                                 "cuMemRelease",        "cuMemUnmap",       "cuMemFreeHost",
                                                 "cuMemHostUnregister", "cuStreamDestroy",  "cuEventDestroy",
                                                 "cuModuleUnload"};

bool fails(std::string_view name) {
  if (the_plan.calls_left == 0 || std::ranges::find(never, name) != never.end()) return false;
  if (--the_plan.calls_left != 0) return false;
  the_plan.failed = name;
  return true;
}

template <class Name, auto Entry>
struct failing;

template <class Name, class... Arguments, CUresult (*driver::*Entry)(Arguments...)>
struct failing<Name, Entry> {
  static CUresult call(Arguments... arguments) {
    if (fails(Name::text())) return the_plan.result;
    if (work_is_held && std::string_view(Name::text()) == "cuEventQuery") return CUDA_ERROR_NOT_READY;
    const CUresult result = (real().*Entry)(arguments...);
    if (result == CUDA_SUCCESS) ++the_plan.successes[std::string(Name::text())];
    return result;
  }
};

}  // namespace

driver failing_driver() {
  driver table = real();
#define HPE_CUDA_REQUIRED(name)                          \
  {                                                      \
    struct its_name {                                    \
      static const char* text() { return #name; }        \
    };                                                   \
    table.name = failing<its_name, &driver::name>::call; \
  }
#define HPE_CUDA_OPTIONAL(name) \
  if (table.name != nullptr) HPE_CUDA_REQUIRED(name)
#include "runtime/device/cuda/symbols.def"
#undef HPE_CUDA_REQUIRED
#undef HPE_CUDA_OPTIONAL
  return table;
}

void fail_call(std::uint64_t n, CUresult with) {
  the_plan.calls_left = n;
  the_plan.result = with;
  the_plan.failed.clear();
}

std::string stop_failing() {
  the_plan.calls_left = 0;
  return the_plan.failed;
}

void hold_work(bool held) { work_is_held = held; }

std::uint64_t successes_of(const std::string& entry) {
  const auto found = the_plan.successes.find(entry);
  return found == the_plan.successes.end() ? 0 : found->second;
}

}  // namespace device_test
