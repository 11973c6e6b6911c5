#include "runtime/trace/report_part.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/foreign_text.h"
#include "runtime/base/log.h"
#include "runtime/base/own_process.h"
#include "runtime/base/thread_safety.h"
#include "runtime/os/output_file.h"
#include "runtime/os/thread.h"
#include "runtime/trace/profile.h"
#include "runtime/trace/recorder.h"
#include "runtime/trace/status_page.h"

namespace hpe::trace {

namespace {

using std::chrono::milliseconds;

// The largest number of events in a part; browsers cannot open a page with more events.
constexpr std::size_t most_events = std::size_t{1} << 16;
constexpr std::size_t most_samples = 512;

double to_seconds(std::chrono::nanoseconds t) { return std::chrono::duration<double>(t).count(); }

/// The counters of this process at one time.
struct sample {
  clock::time_point when;
  std::vector<std::uint64_t> values;
};

std::vector<std::uint64_t> values_now() {
  const status_page& page = status_page::own();
  const counters& c = page.count;
  std::vector<std::uint64_t> values;
  for (const counters::counter* it :
       {&c.bytes_to_device, &c.bytes_to_host, &c.bytes_peer, &c.faults_read, &c.faults_write, &c.blocks_prefetched,
        &c.launches, &c.degraded, &c.bytes_given_back})
    values.push_back(it->load(std::memory_order_relaxed));
  for (unsigned d = 0; d < page.devices.load(std::memory_order_acquire); ++d)
    values.push_back(c.device_memory[d].load(std::memory_order_relaxed));
  return values;
}

// The names of the values, in the order of values_now(). The values without a name that follow are the memory in use on
// each device.
constexpr const char* names_of_values =
    R"(["bytes_to_device","bytes_to_host","bytes_between_devices","faults_read","faults_write","blocks_prefetched",)"
    R"("launches","degraded","bytes_given_back"])";

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words(std::istreambuf_iterator<char>(file), {});
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

void make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw_system_error("making the folder " + folder);
}

std::string list(const std::vector<std::uint64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

class report_part {
 public:
  explicit report_part(const std::string& folder)
      : process_(::getpid()), folder_(folder), rank_(rank_by_environment() != nullptr ? rank_by_environment() : "") {
    file_ = fmt::format("{}/{}.{}.json", folder, rank_.empty() ? "-" : rank_, process_);
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    host_ = host;
    os::start_thread("hpe-report", [this] { run(); }).detach();
  }

  /// Writes the process's file for the last time. Does nothing in a child made by fork.
  void finish() noexcept {
    if (::getpid() != process_) return;
    write(true);
  }

 private:
  /// Takes samples, and writes a file after 1, 2, 4, ... seconds, because the process may be killed at any time.
  void run() {
    auto next_file = began_ + std::chrono::seconds(1);
    for (;;) {
      std::this_thread::sleep_for(between_samples_);
      take_sample();
      const auto now = clock::now();
      if (now < next_file) continue;
      write(false);
      next_file = now + (now - began_);
    }
  }

  void take_sample() {
    const lock_guard lock(mutex_);
    samples_.push_back({clock::now(), values_now()});
    if (samples_.size() < most_samples) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples_.size(); i += 2) samples_[kept++] = std::move(samples_[i]);
    samples_.resize(kept);
    between_samples_ *= 2;
  }

  /// Replaces the file by a new one. A failure is only logged.
  void write(bool complete) noexcept {
    try {
      const lock_guard lock(mutex_);
      if (finished_) return;
      finished_ = complete;
      samples_.push_back({clock::now(), values_now()});
      const std::string all = text(complete);
      make_folder(folder_);  // another run with the same page may have removed the folder
      os::write_file(file_, all);
    } catch (const std::exception& e) {
      log(log_level::error, "the report lacks this process: {}", e.what());
    }
  }

  [[nodiscard]] std::string text(bool complete) const HPE_REQUIRES(mutex_) {
    const auto now = clock::now();
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch() - (now - began_);
    std::string devices;
    const status_page& page = status_page::own();
    for (unsigned d = 0; d < page.devices.load(std::memory_order_acquire); ++d)
      devices += fmt::format(R"({}{{"name":{},"memory":{}}})", d == 0 ? "" : ",",
                             json_text(page.device_table[d].name.data()), page.device_table[d].memory);
    std::string rows;
    for (const sample& s : samples_)
      rows += fmt::format(R"({}{{"seconds":{:.6f},"values":{}}})", rows.empty() ? "" : ",", to_seconds(s.when - began_),
                          list(s.values));
    return fmt::format(
        R"({{"process":{},"rank":{},"host":{},"command":{},"complete":{},"began":{:.6f},"seconds":{:.6f},)"
        R"("began_ticks":{:.3f},"devices":[{}],"value_names":{},"samples":[{}],"profile":{},"trace":{}}})"
        "\n",
        process_, json_text(rank_), json_text(host_), json_text(command_), complete, to_seconds(since_epoch),
        to_seconds(now - began_), std::chrono::duration<double, std::micro>(began_.time_since_epoch()).count(), devices,
        names_of_values, rows, profile::active()->json(), recorder::active()->complete_text());
  }

  const pid_t process_;
  const std::string folder_;
  const std::string rank_;
  const std::string command_ = command_line();
  const clock::time_point began_ = clock::now();
  std::string host_;
  std::string file_;
  mutex mutex_;
  std::vector<sample> samples_ HPE_GUARDED_BY(mutex_);
  bool finished_ HPE_GUARDED_BY(mutex_) = false;
  milliseconds between_samples_{50};  // only the sampling thread reads and writes it
};

std::atomic<report_part*> the_part{nullptr};

[[gnu::destructor]] void finish_at_exit() {
  if (report_part* const it = the_part.load(std::memory_order_acquire)) it->finish();
}

}  // namespace

void start_report(const std::string& page) {
  static mutex starting;
  const lock_guard lock(starting);
  if (page.empty() || the_part.load(std::memory_order_relaxed) != nullptr) return;
  const std::string folder = folder_of_parts(page);
  make_folder(folder);
  profile::start_untold();
  recorder::start_without_file(most_events);
  the_part.store(new report_part(folder), std::memory_order_release);
}

}  // namespace hpe::trace
