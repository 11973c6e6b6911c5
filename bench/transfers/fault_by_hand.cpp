// A page fault on data of a GPU that a program without hpe handles with as little work as possible. The time is a lower
// bound for hpe's page faults; the benchmark also measures its parts. The program maps a memory file twice. The program
// touches the first mapping, the view; the GPU copies into the second, the alias. A signal handler must not call the
// CUDA driver; therefore, the handler passes the address to a thread that spins.
#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <stdexcept>

#include "bench/transfers/parts.h"

namespace hpe::bench {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t region = 64 * mebi;

std::byte* map_shared(int file) {
  void* const p = ::mmap(nullptr, region, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p == MAP_FAILED) throw std::runtime_error("mmap failed");
  return static_cast<std::byte*>(p);
}

/// The events of one fault whose times are recorded, in order.
enum moment : std::uint8_t { touched, in_handler, in_thread, queued, arrived, opened, back, moments };
constexpr std::array<const char*, moments> part_before{
    "", "the signal", "waking the thread", "queuing the copy", "the copy", "mprotect", "return from the signal"};

class faults_by_hand {
 public:
  faults_by_hand(const raw_gpu& gpu, std::size_t block) : gpu_(gpu), block_(block) {
    const int file = ::memfd_create("by-hand", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, region) != 0) throw std::runtime_error("memfd_create failed");
    alias_ = map_shared(file);
    view_ = map_shared(file);
    ::close(file);
    std::memset(alias_, 1, region);
    CALL(cuMemHostRegister, alias_, region, CU_MEMHOSTREGISTER_PORTABLE);
    CALL(cuEventCreate, &event_, CU_EVENT_DISABLE_TIMING);
    the_one = this;
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      the_one->on_fault(static_cast<std::byte*>(info->si_addr));
    };
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigaction(SIGSEGV, &action, &before_);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ~faults_by_hand() {
    thread_.request_stop();
    thread_.join();
    ::sigaction(SIGSEGV, &before_, nullptr);
    CALL(cuEventDestroy, event_);
    CALL(cuMemHostUnregister, alias_);
    ::munmap(view_, region);
    ::munmap(alias_, region);
  }
  faults_by_hand(const faults_by_hand&) = delete;
  faults_by_hand& operator=(const faults_by_hand&) = delete;

  void close() const { ::mprotect(view_, region, PROT_NONE); }
  /// Touches the block at offset `at` and returns the times of the fault's events.
  std::array<clock::time_point, moments> touch(std::size_t at) {
    now(touched);
    const volatile std::byte* const p = view_ + at;
    (void)*p;
    now(back);
    return times_;
  }

 private:
  void now(moment m) { times_[m] = clock::now(); }

  void on_fault(std::byte* address) {
    now(in_handler);
    wanted_.store(address, std::memory_order_release);
    while (wanted_.load(std::memory_order_acquire) != nullptr) __builtin_ia32_pause();
  }

  void serve(const std::stop_token& stop) {
    gpu_.use();
    while (!stop.stop_requested()) {
      std::byte* const address = wanted_.load(std::memory_order_acquire);
      if (address == nullptr) {
        __builtin_ia32_pause();
        continue;
      }
      now(in_thread);
      const std::size_t at = static_cast<std::size_t>(address - view_) / block_ * block_;
      gpu_.down(alias_ + at, gpu_.memory + at, block_);
      now(queued);
      wait_for_copy();
      now(arrived);
      ::mprotect(view_ + at, block_, PROT_READ);
      now(opened);
      wanted_.store(nullptr, std::memory_order_release);
    }
  }

  void wait_for_copy() {
    static const auto query = reinterpret_cast<decltype(&::cuEventQuery)>(driver_entry("cuEventQuery"));
    CALL(cuEventRecord, event_, gpu_.stream);
    CUresult state = CUDA_ERROR_NOT_READY;
    while ((state = query(event_)) == CUDA_ERROR_NOT_READY) __builtin_ia32_pause();
    check(state, "cuEventQuery");
  }

  static faults_by_hand* the_one;

  const raw_gpu& gpu_;
  const std::size_t block_;
  std::byte* alias_ = nullptr;
  std::byte* view_ = nullptr;
  CUevent event_ = nullptr;
  struct sigaction before_ {};
  std::array<clock::time_point, moments> times_{};
  std::atomic<std::byte*> wanted_{nullptr};
  std::jthread thread_;
};
faults_by_hand* faults_by_hand::the_one = nullptr;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void faults_in_parts(table& t, const raw_gpu& gpu, std::size_t block) {
  faults_by_hand by_hand(gpu, block);
  // Touches every fifth block, in an order that no prefetch recognises, as faults() does.
  std::vector<std::size_t> offsets;
  for (std::size_t b = 0; b < region / block; b += 5) offsets.push_back(b * block + 8);
  std::shuffle(offsets.begin(), offsets.end(), std::mt19937(fresh_seed()));
  std::array<std::vector<double>, moments> parts;
  std::vector<double> whole;
  for (unsigned repeat = 0; repeat < t.repeats + 1; ++repeat) {
    by_hand.close();
    for (const std::size_t at : offsets) {
      const auto times = by_hand.touch(at);
      if (repeat == 0) continue;
      const auto seconds = [&](unsigned from, unsigned to) {
        return std::chrono::duration<double>(times[to] - times[from]).count();
      };
      for (unsigned m = in_handler; m < moments; ++m) parts[m].push_back(seconds(m - 1, m));
      whole.push_back(seconds(touched, back));
    }
  }
  t.number("the same by hand, with a thread that waits awake", median_of(whole) * 1e6, "us");
  for (unsigned m = in_handler; m < moments; ++m)
    t.number(fmt::format("  {}", part_before[m]), median_of(parts[m]) * 1e6, "us");
}

}  // namespace hpe::bench
