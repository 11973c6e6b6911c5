// The C interface: accesses of kernels.

#include "hpe/check.h"

#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/touch.h"
#include "runtime/check/process_report.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"
#include "runtime/fault/handler.h"

using hpe::core::guarded;
using hpe::core::runtime;

namespace {

using hpe::touch_answer;

hpeTouchWatcher the_watcher{};  // set once, before the functions below are called

touch_answer faulted(const hpe::cpu_touch& what) noexcept {
  const hpeTouch it{what.fault, what.begin, what.bytes, what.writes, what.instruction};
  switch (the_watcher.faulted(&it)) {
    case HPE_TOUCH_REPEAT: return touch_answer::repeat;
    case HPE_TOUCH_STEP: return touch_answer::step;
    case HPE_TOUCH_NOT_WATCHED: break;
  }
  return touch_answer::not_watched;
}
void stepped() noexcept { the_watcher.stepped(); }
bool protects(void* begin, std::size_t bytes, int allowed, bool& failed) {
  return the_watcher.protects(begin, bytes, allowed, &failed);
}
void called(const void* begin, std::size_t bytes, bool writes) noexcept { the_watcher.called(begin, bytes, writes); }
bool refused() noexcept { return the_watcher.refused(); }
bool opens(const void* begin, std::size_t bytes) noexcept { return the_watcher.opens(begin, bytes); }

hpe::core::launch_checks& checks_of(runtime& it) {
  HPE_REQUIRE(it.checks() != nullptr && it.checks()->records(), HPE_ERROR_NOT_SUPPORTED,
              "the accesses of kernels are recorded only on soft devices, with HPE_CHECK=on");
  return *it.checks();
}

class launch_report final : public hpe::check::report_source {
 public:
  const hpe::check::findings_report* form() override {
    const hpe::core::launch_checks* const checks = found();
    // On GPUs, programs that only use hpe indirectly have findings of other checkers, or none.
    return checks != nullptr && (checks->records() || checks->has_launches()) ? &checks->report() : nullptr;
  }
  std::vector<hpe::check::finding> finish() override { return found()->take_findings(); }
  [[nodiscard]] std::string_view note() const override {
    constexpr std::string_view is_on_gpus =
        "on GPUs, of launches of hpe's own interface only changes of read-only memory are found; soft devices find all "
        "wrong accesses";
    return found()->records() ? std::string_view() : is_on_gpus;
  }

 private:
  static hpe::core::launch_checks* found() {
    const runtime* const it = runtime::started();
    return it != nullptr ? it->checks() : nullptr;
  }
};

[[gnu::constructor]] void register_report() { hpe::check::add_to_report(*new launch_report); }

}  // namespace

hpeStatus hpeAddToReport(void* source) {
  return guarded([&] {
    HPE_REQUIRE(source != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeAddToReport: the checker is null");
    hpe::check::add_to_report(*static_cast<hpe::check::report_source*>(source), true);
  });
}

hpeStatus hpeCompareAccesses(const void* work, const void* ranges, const hpeAccess* accesses, size_t count) {
  return guarded([&] {
    HPE_REQUIRE(work != nullptr && ranges != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeCompareAccesses: the pointer for the work or for the ranges is null");
    checks_of(runtime::instance())
        .compare(*static_cast<const hpe::check::operation_ptr*>(work),
                 *static_cast<const std::vector<hpe::check::access_range>*>(ranges),
                 hpe::core::require_accesses("accesses are compared", accesses, count));
  });
}

hpeStatus hpeRecordLaunches(int device) {
  return guarded([&] {
    auto& it = runtime::instance();
    checks_of(it).record(hpe::core::device_or_current(it, device));
  });
}

hpeStatus hpeTakeRecordedRanges(int device, void (*visit)(const hpeRecordedRange*, void*), void* data) {
  return guarded([&] {
    HPE_REQUIRE(visit != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeTakeRecordedRanges: the function is null");
    auto& it = runtime::instance();
    const unsigned on = hpe::core::device_or_current(it, device);
    checks_of(it).take(on, [&](const hpe::device::recorded_stretch& each) {
      const hpeRecordedRange range{each.begin, each.end, static_cast<std::uint32_t>(each.how), each.number};
      visit(&range, data);
    });
  });
}

hpeStatus hpeTakeRecordedRaces(int device, void (*visit)(const hpeRecordedRace*, void*), void* data) {
  return guarded([&] {
    HPE_REQUIRE(visit != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeTakeRecordedRaces: the function is null");
    auto& it = runtime::instance();
    for (const hpe::device::recorded_race& each : checks_of(it).take_races(hpe::core::device_or_current(it, device))) {
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

hpeStatus hpeWatchTouches(const hpeTouchWatcher* watcher, bool* can_step) {
  return guarded([&] {
    HPE_REQUIRE(watcher != nullptr && watcher->faulted != nullptr && watcher->stepped != nullptr &&
                    watcher->protects != nullptr && watcher->called != nullptr && watcher->refused != nullptr &&
                    watcher->opens != nullptr && the_watcher.faulted == nullptr,
                HPE_ERROR_INVALID_ARGUMENT, "hpeWatchTouches needs all functions, and can be called once");
    the_watcher = *watcher;
    static constexpr hpe::touch_watcher functions{faulted, stepped, protects, called, refused, opens};
    const bool has_steps = hpe::fault::show_touches_to(&functions);
    if (can_step != nullptr) *can_step = has_steps;
  });
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
