// The C interface: accesses of kernels.

#include "hpe/check.h"

#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"
#include "runtime/fault/handler.h"

using hpe::core::guarded;
using hpe::core::runtime;

hpeStatus hpeTakeRecordedRanges(int device, void (*visit)(const hpeRecordedRange*, void*), void* data) {
  return guarded([&] {
    HPE_REQUIRE(visit != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeTakeRecordedRanges: the function is null");
    auto& it = runtime::instance();
    hpe::device::ptx_capability* const ptx = it.devices().ptx();
    const bool records =
        ptx != nullptr &&
        ptx->take_accesses(hpe::core::device_or_current(it, device), [&](const hpe::device::recorded_stretch& each) {
          const hpeRecordedRange range{each.begin, each.end, static_cast<std::uint32_t>(each.how), each.number};
          visit(&range, data);
        });
    HPE_REQUIRE(records, HPE_ERROR_NOT_SUPPORTED,
                "hpeTakeRecordedRanges: the accesses of kernels are recorded only on soft devices, with HPE_CHECK=on");
  });
}

hpeStatus hpeTakeRecordedRaces(int device, void (*visit)(const hpeRecordedRace*, void*), void* data) {
  return guarded([&] {
    HPE_REQUIRE(visit != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeTakeRecordedRaces: the function is null");
    auto& it = runtime::instance();
    hpe::device::ptx_capability* const ptx = it.devices().ptx();
    if (ptx == nullptr) return;
    for (const hpe::device::recorded_race& each : ptx->take_races(hpe::core::device_or_current(it, device))) {
      const hpeRecordedRace race{each.begin,
                                 each.end,
                                 each.is_shared ? 1U : 0U,
                                 static_cast<std::uint32_t>(each.earlier.how),
                                 each.earlier.number,
                                 static_cast<std::uint32_t>(each.later.how),
                                 each.later.number,
                                 each.earlier.place.c_str(),
                                 each.later.place.c_str(),
                                 each.variable.c_str()};
      visit(&race, data);
    }
  });
}

hpeStatus hpeWatchFaults(bool (*watcher)(void*, bool)) {
  return guarded([&] { hpe::fault::show_faults_to(watcher); });
}

hpeStatus hpeGetRecordedSites(hpeKernel kernel, void (*visit)(uint32_t, uint32_t, const char*, void*), void* data,
                              int* complete) {
  return guarded([&] {
    HPE_REQUIRE(kernel != nullptr && visit != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeGetRecordedSites needs a kernel and a function");
    const bool writes_more = runtime::instance().ptx().visit_sites(
        kernel, [&](std::uint8_t number, hpe::ptx::recorded_use use, const std::string& place) {
          visit(number, static_cast<std::uint32_t>(use), place.c_str(), data);
        });
    if (complete != nullptr) *complete = writes_more ? 0 : 1;
  });
}
