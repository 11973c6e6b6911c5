#include "tests/sweep/cuda/runner.h"

#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>

#include "tests/interpose/gpu/stand_in/stand_in.h"
#include "tests/sweep/sweep.h"
#include "tests/sweep/touch.h"

namespace sweep {

namespace {

bool starts_with_any(const char* name, std::initializer_list<const char*> prefixes) {
  return std::ranges::any_of(prefixes, [&](const char* p) { return std::strncmp(name, p, std::strlen(p)) == 0; });
}

// Whether a correct call of an entry never fails, because the entry releases a resource or returns a constant.
bool cannot_fail(const char* entry) {
  return starts_with_any(entry, {"cuMemFree", "cuMemHostUnregister", "cuMemRelease", "cuMemAddressFree", "cuMemUnmap",
                                 "cuEventDestroy", "cuStreamDestroy", "cuModuleUnload", "cuGraphDestroy",
                                 "cuGraphExecDestroy", "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxDestroy",
                                 "cuDevicePrimaryCtxRelease", "cuThreadExchange", "cuDriverGetVersion", "cuGetError",
                                 // These fail only if earlier work has failed, and then the device is lost.
                                 "cuEventQuery", "cuStreamQuery"});
}

// Whether an entry works without a device, so that it succeeds even after the device is lost.
bool survives_loss(const char* entry) {
  return starts_with_any(entry, {"cuInit", "cuDevice", "cuDriver", "cuGetError", "cuCtxGetCurrent", "cuCtxSetCurrent",
                                 "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxGetDevice", "cuThreadExchange"});
}

int ask(const char* entry) {
  injector& all = injected();
  if (all.is_lost() && !survives_loss(entry)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (!cannot_fail(entry) && all.due(failure::refusal, entry)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!survives_loss(entry) && all.due(failure::loss_before, entry)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  return CUDA_SUCCESS;
}

// The resources of the program and of hpe in the stand-in, and the number of open files of the process, without the
// stand-in's memory files.
struct resources {
  stand_in::held of_driver;
  std::size_t files = 0;
};

resources held_now() {
  resources all;
  find_in_stand_in<stand_in::held_function>("stand_in_held")(all.of_driver);
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd", ignored))
    all.files += std::filesystem::read_symlink(file, ignored).string().starts_with("/memfd:stand-in") ? 0 : 1;
  return all;
}

std::string more(const resources& earlier, const resources& later) {
  std::string result;
  const auto compare = [&](const char* what, std::size_t was, std::size_t now) {
    if (now > was)
      result +=
          std::string(result.empty() ? "" : ", ") + what + " " + std::to_string(was) + " -> " + std::to_string(now);
  };
  const stand_in::held &before = earlier.of_driver, &after = later.of_driver;
  compare("allocations", before.allocations, after.allocations);
  compare("pinned ranges", before.pinned, after.pinned);
  compare("mapped bytes", before.mapped_bytes, after.mapped_bytes);
  compare("streams", before.streams, after.streams);
  compare("events", before.events, after.events);
  compare("files", earlier.files, later.files);
  return result;
}

// The sweep of this process if failures stay armed until the process ends; otherwise null. tell_end() reports the
// result of this sweep. tell_end() is registered as the first exit handler, so it runs last.
const sweep_of* ending = nullptr;
int report_of_end = -1;

void tell_end() {
  const reporter to(report_of_end);
  const std::uint64_t calls = injected().calls();
  const bool fired = injected().fired();
  injected().disarm();
  if (fired)
    to.again(ending->after(ending->k));
  else
    to.done(calls);
}

class worker {
 public:
  worker(const sweep_of& which, const scenario& what, int report_to) : which_(which), what_(what), to_(report_to) {}

  int run() {
    if (what_.starts || which_.kind == failure::loss_before) run_to_the_end();
    // The context of this program stays, so that hpe's own work and cached resources do not end with the context of a
    // run.
    program keeper([&](const std::string& what) { to_.finding(0, what); });
    if (!keeper.start()) return 4;
    for (int n = 0; n < 3; ++n) run_once(never, "before any failure");
    before_ = held_now();
    for (std::uint64_t k = which_.k;; k = which_.after(k)) {
      to_.at(k);
      run_once(k, "");
      const bool fired = injected().fired();
      const std::uint64_t calls = injected().calls();
      if (given_up_) {
        to_.again(which_.after(k));
        return 0;
      }
      if (fired) run_once(never, "afterwards");
      // hpe's caches may grow in one round, but a leak grows in every round.
      std::string left = fired ? more(before_, held_now()) : "";
      for (int again = 0; again < 3 && !left.empty(); ++again) {
        before_ = held_now();
        run_once(k, "");
        run_once(never, "afterwards");
        left = more(before_, held_now());
      }
      if (!left.empty()) finding(k, "left behind: " + left);
      before_ = held_now();
      if (!fired) {
        to_.done(calls);
        return 0;
      }
      if (broken_) {
        to_.again(which_.after(k));
        return 0;
      }
    }
  }

 private:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  void finding(std::uint64_t k, const std::string& what) {
    broken_ = true;  // later runs would report the same leak again
    to_.finding(k, what);
  }

  void run_once(std::uint64_t k, const std::string& when) {
    const bool fails = k != never;
    const std::uint64_t reported = fails ? k : 0;
    program all([&](const std::string& what) { finding(reported, when.empty() ? what : when + ": " + what); });
    if (!fails) injected().arm(failure::none, 0);
    if (!all.start()) return finding(reported, "the program does not start");
    what_.run(all, [&] {
      if (fails) injected().arm(which_.kind, k);
    });
    all.verify();
    all.free_all();
    all.end();
    given_up_ = all.is_given_up();
  }

  // Ends the process by exit(), as programs do.
  [[noreturn]] void run_to_the_end() {
    ending = &which_;
    report_of_end = to_.to();
    std::atexit(tell_end);
    to_.at(which_.k);
    // The scenario's memory is never freed, because exit handlers of the program may use it.
    auto* const all = new program([&](const std::string& what) { finding(which_.k, what); });
    const auto arm = [&] { injected().arm(which_.kind, which_.k); };
    if (what_.starts) {
      arm();
      if (all->start()) what_.run(*all, [] {});
    } else {
      if (all->start()) what_.run(*all, [] {});
      if (all->start()) what_.run(*all, arm);
    }
    if (!injected().is_lost() && !what_.starts) all->verify();
    std::exit(0);
  }

  const sweep_of& which_;
  const scenario& what_;
  const reporter to_;
  resources before_;
  bool broken_ = false;
  bool given_up_ = false;
};

constexpr failure kinds[] = {failure::refusal, failure::loss_before, failure::allocation, failure::allocations};
constexpr order only[] = {order::host_first};

}  // namespace

std::vector<subject> subjects() {
  std::vector<subject> result;
  for (const scenario& s : scenarios()) result.push_back({s.name.c_str(), s.starts});
  return result;
}

std::span<const failure> kinds_of_failure() { return kinds; }

std::span<const order> orders() { return only; }

int other_process(const std::string& /*role*/) { return 2; }  // no scenario has another process

int run_sweep(const sweep_of& which, int report_to) {
  std::set_terminate([] {
    void* frames[40];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, 40), STDERR_FILENO);
    std::abort();
  });
  this_thread_is_the_test();
  install_touch_handler();
  ::setenv("HPE_CUDA_DRIVER", SWEEP_DRIVER, 1);
  // Cached memory would look like a leak, and threads that prepare memory would make calls at any time.
  for (const char* const name : {"HPE_KEPT_MEMORY", "HPE_PREPARED_MEMORY"}) ::setenv(name, "0", 0);
  ::setenv("HPE_STAGING_CHUNK", "256k", 0);
  ::setenv("HPE_STAGING_BUFFERS", "6", 0);
  ::setenv("HPE_CALIBRATION", "off", 0);
  ::setenv("HPE_LOG", "silent", 0);
  const scenario& what = *std::ranges::find(scenarios(), which.scenario, &scenario::name);
  for (const auto& [name, value] : what.variables) ::setenv(name, value, 1);
  reinterpret_cast<set_ask_function*>(find_in_driver("sweep_ask"))(ask);
  return worker(which, what, report_to).run();
}

}  // namespace sweep
