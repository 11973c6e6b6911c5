#include <sys/prctl.h>

#include <array>
#include <bit>
#include <csignal>
#include <optional>
#include <set>

#include "runtime/base/demangled.h"
#include "runtime/base/error.h"
#include "runtime/device/soft/shared/spin_until.h"
#include "runtime/device/soft/softd/process.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

namespace {

std::string describe(const device_engines& engines, const crash& what) {
  switch (what.signal) {
    case SIGFPE: return "arithmetic error, such as an integer division by zero (SIGFPE)";
    case SIGILL: return fmt::format("illegal instruction at {:#x} (SIGILL)", what.address);
    case SIGBUS: return fmt::format("no memory is left behind {:#x} (SIGBUS)", what.address);
    default: break;
  }
  if (what.code == SI_KERNEL) return "illegal access to a non-canonical address (SIGSEGV)";
  return fmt::format("illegal access to {:#x}, which is not mapped on device {}{} (SIGSEGV)", what.address,
                     engines.device, engines.memory.contains(what.address) ? "" : " and is not an hpe address");
}

class executor {
 public:
  executor(device_engines& engines, unsigned stream)
      : engines_(engines),
        number_(fabric::timeline_number(engines.device, stream)),
        line_(*engines.shared.find_timeline(number_)),
        ring_(engines.shared.ring(engines.device, stream)) {}

  [[noreturn]] void run() {
    take_crash_signals();
    // Simulated links make a copy wait by sleeping. By default, Linux may end a sleep 50 us late.
    constexpr unsigned long slack_ns = 1000;
    ::prctl(PR_SET_TIMERSLACK, slack_ns);
    for (std::uint64_t value = 1;; ++value) {
      await(value);
      engines_.order.fetch_add(1, std::memory_order_acquire);
      try {
        look_ahead(value);
        execute(ring_.slot(value), value);
      } catch (const error& e) {
        fail(value, e.status(), e.what());
      } catch (const std::exception& e) {
        fail(value, HPE_ERROR_INTERNAL, e.what());
      }
      engines_.order.fetch_add(1, std::memory_order_release);
      engines_.shared.complete(number_, value);
    }
  }

 private:
  void await(std::uint64_t value) {
    timeline& line = line_;
    const auto there = [&] { return line.submitted.load() >= value; };
    if (spin_until(there)) return;
    for (;;) {
      const std::uint32_t seen = line.work.wakes();
      if (there()) return;
      line.work.sleep(seen, wait_queue::deadline::max());
    }
  }

  // Makes other threads compile the kernels of launches that are queued after command `value`, while this command runs.
  void look_ahead(std::uint64_t value) {
    const command& now = ring_.slot(value);
    if (now.what == command::kind::launch) expected_.insert({now.function, {now.block[0], now.block[1], now.block[2]}});
    const std::uint64_t last = line_.submitted.load(std::memory_order_acquire);
    for (seen_ = std::max(seen_, value); seen_ < last;) {
      const command& next = ring_.slot(++seen_);
      if (next.what != command::kind::launch) continue;
      if (!expected_.insert({next.function, {next.block[0], next.block[1], next.block[2]}}).second) continue;
      if (const auto& kernel = engines_.kernels.at(next.function); kernel.ptx)
        engines_.ptx.expect(kernel.ptx, kernel.name, next);
    }
  }

  void execute(const command& what, std::uint64_t value) {
    switch (what.what) {
      case command::kind::copy:
        for (std::uint64_t row = 0, at = 0; row < what.rows; ++row, at += what.stride)
          engines_.copier.copy(what.destination + at, what.source + at, what.bytes, ring_.level);
        return;
      case command::kind::fill:
        return engines_.copier.fill(what.destination, static_cast<std::uint8_t>(what.value), what.bytes);
      case command::kind::fingerprint:
        return engines_.copier.take_fingerprint(what.destination, what.source, what.bytes, what.key);
      case command::kind::launch: return launch(what, value);
      case command::kind::wait: return wait(what);
    }
  }

  void launch(const command& what, std::uint64_t value) {
    const auto& kernel = engines_.kernels.at(what.function);
    const void* const parameters = ring_.parameters_of(value);
    if (kernel.ptx) {
      if (const auto trouble = engines_.ptx.run(*kernel.ptx, kernel.name, what, parameters))
        fail(value, HPE_ERROR_LAUNCH_FAILED,
             fmt::format("on device {}, {}", engines_.device, trouble->sentence).c_str(), trouble->fault);
      return;
    }
    const auto lost_members = [&] { return what.team & engines_.shared.configuration().lost.load(); };
    std::optional<tile_pool::trouble> trouble{{make_stop(), {}}};
    if (lost_members() == 0) trouble = engines_.pool.run(kernel.body, parameters, what.grid, what.team);
    if (trouble && trouble->signal && is_stop(*trouble->signal))
      HPE_THROW(HPE_ERROR_LAUNCH_FAILED,
                "kernel \"{}\" on device {} was stopped, because device {} is lost; that device ran another part of "
                "the team's launch",
                demangled(kernel.name), engines_.device, std::countr_zero(lost_members()));
    if (!trouble) return;
    HPE_THROW(HPE_ERROR_LAUNCH_FAILED, "kernel \"{}\" on device {}: {}", demangled(kernel.name), engines_.device,
              trouble->signal ? describe(engines_, *trouble->signal) : "it threw " + trouble->exception);
  }

  // This wait also ends when the device of the other stream is lost, because the owner then completes that device's
  // timelines.
  void wait(const command& what) {
    HPE_INVARIANT(engines_.shared.find_timeline(what.timeline) != nullptr);
    engines_.shared.wait(what.timeline, what.point, wait_queue::deadline::max());
  }

  void fail(std::uint64_t value, hpeStatus status, const char* sentence, hpeFault fault = HPE_FAULT_NONE) {
    line_.failures.append({value, engines_.shared.common().failure_order.fetch_add(1), status, sentence, fault});
  }

  device_engines& engines_;
  std::uint32_t number_;
  timeline& line_;
  command_ring& ring_;
  std::uint64_t seen_ = 0;  // the number of the last command that look_ahead read
  // The functions and block shapes of all launches that look_ahead has read.
  std::set<std::pair<std::uint32_t, std::array<std::uint32_t, 3>>> expected_;
};

}  // namespace

void start_executor(device_engines& engines, unsigned stream) {
  os::start_thread("softd-stream", [&engines, stream] { executor(engines, stream).run(); }).detach();
}

}  // namespace hpe::device::soft
