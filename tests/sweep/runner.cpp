#include "tests/sweep/runner.h"

#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "runtime/trace/status_page.h"
#include "tests/sweep/resources.h"
#include "tests/sweep/touch.h"

namespace sweep {

namespace {

class worker {
 public:
  worker(const sweep_of& which, const scenario& what, int report_to) : which_(which), what_(what), to_(report_to) {}

  int run() {
    if (what_.starts) return run_start();
    clean_run(0, "before any failure");
    clean_run(0, "before any failure");
    const resources before = of_runtime();
    for (std::uint64_t k = which_.k;; k = which_.after(k)) {
      to_.at(k);
      objects_ = live_objects();
      run_once(k);
      if (!injected().fired()) {
        to_.done(injected().calls());
        return 0;
      }
      const bool lost = any_lost();
      const std::string left = left_behind([&] {
        resources after = of_runtime();
        if (lost) after.processes = before.processes;
        // A connection to another process may be closed at this time. If hpe opens it again later, that is not a leak.
        after.descriptors = std::max(after.descriptors, before.descriptors);
        return difference(before, after);
      });
      if (!left.empty()) to_.finding(k, "left behind: " + left);
      if (!lost) clean_run(k, "afterwards");
      if (lost || !left.empty() || broken_) return go_on_with(which_.after(k));
    }
  }

 private:
  int go_on_with(std::uint64_t k) const {
    to_.again(k);
    return 0;
  }

  void run_once(std::uint64_t k) {
    world w(which_.first, [&](const std::string& what) {
      broken_ = true;  // otherwise later runs would report the same leak again
      to_.finding(k, what);
    });
    w.prepare();
    try {
      what_.run(w, [&] { injected().arm(which_.kind, k); });
    } catch (const action_over&) {
    }
    injected().disarm();
    w.end_of_failures();
    w.verify();
    w.free_all();
  }

  // Executes a run without failures.
  void clean_run(std::uint64_t k, const char* when) {
    injected().arm(failure::none, 0);
    world w(which_.first, [&](const std::string& what) {
      broken_ = true;
      to_.finding(k, std::string(when) + ": " + what);
    });
    w.prepare();
    what_.run(w, [] {});
    w.synchronize();
    w.verify();
    w.free_all();
  }

  // Executes a run in which a process starts the runtime.
  int run_start() {
    const std::uint64_t k = which_.k;
    to_.at(k);
    // The status page exists until the process ends, so it is made before the resources are counted.
    static_cast<void>(hpe::trace::status_page::own());
    const resources before = of_process();
    injected().arm(which_.kind, k);
    hpeStatus status = HPE_SUCCESS;
    {
      const runtime_call counted;
      status = hpeInit();
    }
    injected().disarm();
    const std::uint64_t calls = injected().calls();
    if (!injected().fired()) {
      to_.done(calls);
      return 0;
    }
    if (status != HPE_SUCCESS) {
      const std::string told = hpeGetLastErrorMessage();
      if (status == HPE_ERROR_INTERNAL || told.empty())
        to_.finding(k, std::string("hpeInit gave ") + hpeStatusName(status) + " (\"" + told + "\")");
      const std::string left = left_behind([&] { return difference(before, of_process()); });
      if (!left.empty()) to_.finding(k, "left behind: " + left);
    }
    const bool killed = which_.kind == failure::loss_before || which_.kind == failure::loss_after;
    while (killed && status == HPE_SUCCESS && !any_lost()) std::this_thread::yield();
    if (!any_lost()) clean_run(k, "afterwards");
    return go_on_with(which_.after(k));
  }

  // Returns look(), which describes the resources that hpe has not given back, after at most a second: another thread
  // or process of hpe may still be giving some back.
  template <class Look>
  static std::string left_behind(const Look& look) {
    std::string left = look();
    for (int n = 0; n < 100 && !left.empty(); ++n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      left = look();
    }
    return left;
  }

  static bool any_lost() {
    int count = 0;
    (void)hpeGetDeviceCount(&count);
    for (int d = 0; d < count; ++d) {
      hpeDeviceInfo info{};
      if (hpeGetDeviceInfo(d, &info) == HPE_SUCCESS && info.lost != 0) return true;
    }
    return false;
  }

  const sweep_of& which_;
  const scenario& what_;
  const reporter to_;
  std::int64_t objects_ = 0;
  bool broken_ = false;
};

constexpr failure kinds[] = {failure::refusal,     failure::late,       failure::loss_before, failure::loss_after,
                             failure::system_call, failure::allocation, failure::allocations};
constexpr order both[] = {order::host_first, order::devices_first};

}  // namespace

std::vector<subject> subjects() {
  std::vector<subject> result;
  for (const scenario& s : scenarios()) result.push_back({s.name, s.starts});
  return result;
}

std::span<const failure> kinds_of_failure() { return kinds; }

std::span<const order> orders() { return both; }

int run_sweep(const sweep_of& which, int report_to) {
  const scenario& what =
      *std::ranges::find_if(scenarios(), [&](const scenario& s) { return std::string(s.name) == which.scenario; });
  std::set_terminate([] {
    void* frames[40];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, 40), STDERR_FILENO);
    std::abort();
  });
  this_thread_is_the_test();
  install_touch_handler();
  ::setenv("HPE_DEVICES", what.devices, 1);
  // Memory kept for later allocations would look like a leak.
  ::setenv("HPE_KEPT_MEMORY", "0", 0);
  ::setenv("HPE_SOFT_MEMORY", "256M", 0);
  ::setenv("HPE_SOFT_THREADS", "1", 0);
  ::setenv("HPE_STAGING_CHUNK", "64k", 0);
  ::setenv("HPE_STAGING_BUFFERS", "6", 0);
  ::setenv("HPE_LOG", "silent", 0);
  for (const auto& [name, value] : what.variables) ::setenv(name, value, 1);
  return worker(which, what, report_to).run();
}

}  // namespace sweep
