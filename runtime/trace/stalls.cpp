// Each slot is protected by a sequence lock, and only the slot's own thread writes it: the version is odd during a
// write. If a signal handler interrupts the write and notes its own waits, the version stays odd. New threads take the
// slots of threads that have ended.
#include "runtime/trace/stalls.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/os/thread.h"
#include "runtime/trace/call_sites.h"
#include "runtime/trace/call_stack.h"
#include "runtime/trace/location.h"

namespace hpe::trace {

namespace {

using clock = std::chrono::steady_clock;

// A value that another thread may read while it changes; the reader detects the change by the version of the slot.
// Release and acquire keep the accesses to the value between the accesses to the version.
template <class Value>
class watched_value {
 public:
  void set(Value to) noexcept { value_.store(to, std::memory_order_release); }
  [[nodiscard]] Value get() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<Value> value_{};
};

class wait_slot {
 public:
  std::atomic<pid_t> thread{0};

  // Called by the slot's own thread.
  [[nodiscard]] noted_wait now() const noexcept {
    return {{describe_.get(), about_.get(), first_.get(), second_.get()}, number_.get(), frame_.get()};
  }
  [[nodiscard]] std::uint64_t next_number() noexcept { return ++last_number_; }
  void note(const noted_wait& wait) noexcept {
    const std::uint32_t before = version_.load(std::memory_order_relaxed);
    const bool interrupts_a_write = before % 2 != 0;
    version_.store(before + (interrupts_a_write ? 2 : 1), std::memory_order_relaxed);
    describe_.set(wait.what.describe);
    about_.set(wait.what.about);
    first_.set(wait.what.first);
    second_.set(wait.what.second);
    number_.set(wait.number);
    frame_.set(wait.frame);
    if (!interrupts_a_write) version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Called by the watching thread. Returns nullopt if the slot is being written.
  [[nodiscard]] std::optional<noted_wait> read() const noexcept {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    const noted_wait copy = now();
    if (before % 2 != 0 || version_.load(std::memory_order_relaxed) != before) return std::nullopt;
    return copy;
  }

 private:
  std::atomic<std::uint32_t> version_{0};
  std::uint64_t last_number_ = 0;
  watched_value<awaited_thing::description> describe_;
  watched_value<const void*> about_;
  watched_value<std::uint64_t> first_;
  watched_value<std::uint64_t> second_;
  watched_value<std::uint64_t> number_;
  watched_value<std::uintptr_t> frame_;
};

// One slot for each watched thread. Threads that find no free slot are not watched.
constinit std::array<wait_slot, 512> slots;
constinit std::atomic<bool> watched{false};

bool has_ended(pid_t thread) noexcept { return ::tgkill(::getpid(), thread, 0) != 0 && errno == ESRCH; }

wait_slot* take_slot() noexcept {
  const int saved = errno;
  const pid_t me = ::gettid();
  wait_slot* taken = nullptr;
  const auto take = [&](auto may_be_taken) {
    for (std::size_t i = 0; i < slots.size() && taken == nullptr; ++i) {
      wait_slot& s = slots[(static_cast<std::size_t>(me) + i) % slots.size()];
      pid_t owner = s.thread.load(std::memory_order_relaxed);
      if (may_be_taken(owner) && s.thread.compare_exchange_strong(owner, me)) taken = &s;
    }
  };
  take([&](pid_t owner) { return owner == 0 || owner == me; });
  if (taken == nullptr) take([](pid_t owner) { return has_ended(owner); });
  if (taken != nullptr) taken->note({});
  errno = saved;
  return taken;
}

// Returns the slot of the calling thread; nullptr if no slot was free.
wait_slot* my_slot() noexcept {
  static constinit thread_local wait_slot* mine = nullptr;
  static constinit thread_local bool asked = false;
  if (!asked) [[unlikely]] {
    asked = true;
    mine = take_slot();
  }
  return mine;
}

// ---- the stack of another thread ------------------------------------------------------------------------------------

constexpr pid_t nobody = -2;
constexpr pid_t being_written = -1;
constexpr pid_t answered = 0;

struct question {
  std::atomic<pid_t> to{nobody};  // the thread whose stack is requested, or one of the three values above
  call_stack stack;
  std::uintptr_t top = 0;
};
constinit question asked;

// Whether the stack on which the handler runs is large enough for the unwinder. A thread's alternate stack may be only
// as large as one signal frame, and the handler of a fault may already run on it.
bool has_room(const stack_t& alternate) noexcept {
  constexpr std::size_t needed = 16384;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto end = reinterpret_cast<std::uintptr_t>(alternate.ss_sp);
  const bool is_on_it = (alternate.ss_flags & SS_DISABLE) == 0 && here - end < alternate.ss_size;
  return !is_on_it || here - end >= needed;
}

void answer(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const int saved = errno;
  pid_t me = ::gettid();
  if (asked.to.compare_exchange_strong(me, being_written, std::memory_order_acquire)) {
    const ucontext_t& interrupted = *static_cast<const ucontext_t*>(context);
    asked.stack = has_room(interrupted.uc_stack) ? call_stack::here() : call_stack();
    asked.top = static_cast<std::uintptr_t>(interrupted.uc_mcontext.gregs[REG_RSP]);
    asked.to.store(answered, std::memory_order_release);
  }
  errno = saved;
}

// take_signal() installs hpe's action for SIGURG while hpe asks for a stack; give_signal_back() restores the default
// action. Both return false, without effect, if the program has set its own action.
bool take_signal() {
  struct sigaction before {};
  struct sigaction ours {};
  ours.sa_sigaction = answer;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  return ::sigaction(SIGURG, nullptr, &before) == 0 && before.sa_handler == SIG_DFL &&
         ::sigaction(SIGURG, &ours, nullptr) == 0;
}
bool give_signal_back() {
  struct sigaction now {};
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  return ::sigaction(SIGURG, nullptr, &now) == 0 && now.sa_sigaction == answer &&
         ::sigaction(SIGURG, &usual, nullptr) == 0;
}

// Asks a thread for its stack. Returns false if the thread does not answer.
bool ask_for_stack(pid_t thread) {
  if (!take_signal()) return false;
  asked.to.store(thread, std::memory_order_release);
  const auto state = [] { return asked.to.load(std::memory_order_acquire); };
  const auto end = clock::now() + std::chrono::milliseconds(500);
  if (::tgkill(::getpid(), thread, SIGURG) == 0)
    while (state() != answered && clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pid_t silent = thread;
  if (!asked.to.compare_exchange_strong(silent, nobody))
    while (state() != answered) std::this_thread::yield();
  give_signal_back();
  return state() == answered;
}

// ---- the watching thread --------------------------------------------------------------------------------------------

std::string name_of(pid_t thread) {
  std::array<char, 32> name{};
  const std::string file = fmt::format("/proc/self/task/{}/comm", thread);
  if (std::FILE* const f = std::fopen(file.c_str(), "re")) {
    const bool read = std::fgets(name.data(), name.size(), f) != nullptr;
    std::fclose(f);
    if (read) return std::string(name.data()).substr(0, std::string_view(name.data()).find('\n'));
  }
  return "?";
}

std::string time_of_day(std::time_t when) {
  std::tm parts{};
  std::array<char, 16> text{};
  ::localtime_r(&when, &parts);
  std::strftime(text.data(), text.size(), "%H:%M:%S", &parts);
  return text.data();
}

// Whether a longjmp has left the wait: the stack pointer is then above the frame of the wait.
bool was_left(const noted_wait& wait, std::uintptr_t top) {
  constexpr std::uintptr_t one_stack = 1 << 20;
  return top > wait.frame && top - wait.frame < one_stack;
}

void tell(const wait_slot& s, const noted_wait& wait, std::uint64_t seconds, std::time_t since) {
  const pid_t thread = s.thread.load(std::memory_order_relaxed);
  if (has_ended(thread)) return;
  std::string place = "an unknown place";
  if (ask_for_stack(thread)) {
    if (was_left(wait, asked.top)) return;
    if (asked.stack.count > 0)
      place = location_of(std::span(asked.stack.frames).first(static_cast<std::size_t>(asked.stack.count)));
  }
  const auto is_over = [&] {
    const auto still = s.read();
    return still && still->number != wait.number;
  };
  if (is_over()) return;  // reading debug information takes long enough for a wait to end
  const std::string what = wait.what.describe(wait.what.about, wait.what.first, wait.what.second);
  if (is_over()) return;
  log(log_level::warn, "thread {} ({}) waits since {}, for more than {} s, at {}: {}", thread, name_of(thread),
      time_of_day(since), seconds, place, what);
}

// While the process exits, its static objects are destroyed and its libraries are closed. So no report may run then.
// The exit waits for a report that has begun, but at most two seconds, because a thread that has ended may hold a lock
// that the report needs.
class reports {
 public:
  // Returns false, without effect, once the process exits.
  bool begin() noexcept {
    runs_.store(true);
    if (!closed_.load()) return true;
    runs_.store(false);
    return false;
  }
  void end() noexcept { runs_.store(false); }

  static void close_at_exit();

 private:
  std::atomic<bool> runs_{false};
  std::atomic<bool> closed_{false};
  std::atomic<pid_t> process_{0};
};
constinit reports the_reports;

void reports::close_at_exit() {
  the_reports.process_.store(::getpid());
  std::atexit([] {
    if (the_reports.process_.load() != ::getpid()) return;  // a child made by fork has no thread that reports
    the_reports.closed_.store(true);
    const auto end = clock::now() + std::chrono::seconds(2);
    while (the_reports.runs_.load() && clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

void look(std::uint64_t seconds) {
  struct seen_wait {
    std::uint64_t number = 0;
    clock::time_point since;
    std::time_t time = 0;
    bool told = false;
  };
  static std::array<seen_wait, slots.size()> seen;
  const std::chrono::seconds limit(seconds);
  constexpr std::chrono::milliseconds shortest{50};
  constexpr std::chrono::milliseconds longest{1000};
  const auto turn = std::clamp<std::chrono::milliseconds>(limit / 10, shortest, longest);
  for (;;) {
    std::this_thread::sleep_for(turn);
    const auto now = clock::now();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto wait = slots[i].read();
      if (!wait) continue;
      seen_wait& last = seen[i];
      if (wait->number != last.number) {
        last = {wait->number, now, std::time(nullptr), false};
      } else if (wait->number != 0 && !last.told && now - last.since >= limit) {
        last.told = true;
        if (!the_reports.begin()) return;
        try {
          tell(slots[i], *wait, seconds, last.time);
        } catch (const std::bad_alloc&) {
          handler_line()
              .text("hpe: a thread has waited for more than ")
              .decimal(seconds)
              .text(" s; the process has no memory to print the reason")
              .write();
        } catch (const std::exception& e) {
          log(log_level::warn, "a thread has waited for more than {} s; the subject of its wait is unknown: {}",
              seconds, e.what());
        }
        the_reports.end();
      }
    }
  }
}

}  // namespace

awaited::awaited(const awaited_thing& what) noexcept : noted_(watched.load(std::memory_order_relaxed)) {
  if (!noted_) return;
  wait_slot* const mine = my_slot();
  noted_ = mine != nullptr;
  if (!noted_) return;
  outer_ = mine->now();
  mine->note({what, mine->next_number(), reinterpret_cast<std::uintptr_t>(this)});
}

awaited::~awaited() {
  if (noted_) my_slot()->note(outer_);
}

void tell_of_stalls(std::uint64_t seconds) {
  static std::once_flag once;
  std::call_once(once, [seconds] {
    if (seconds == 0) return;
    static_cast<void>(call_stack::here());  // loads the unwinder now, because a signal handler must not load it
    reports::close_at_exit();
    try {
      os::start_thread("hpe-stalls", [seconds] { look(seconds); }).detach();
      watched.store(true, std::memory_order_relaxed);
    } catch (const std::exception& e) {
      log(log_level::info, "long waits are not reported: {}", e.what());
    }
  });
}

}  // namespace hpe::trace
