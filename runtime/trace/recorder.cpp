#include "runtime/trace/recorder.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/base/foreign_text.h"
#include "runtime/base/log.h"
#include "runtime/base/own_process.h"
#include "runtime/os/output_file.h"

// The file contains the events whose names are set when the file is written; events that threads record during the
// writing may be missing.

namespace hpe::trace {

namespace {

constexpr std::array<const char*, 6> categories{"kernel", "copy", "fault", "call", "mpi", "file"};

mutex starting;
pid_t writer = 0;

[[gnu::destructor]] void write_at_exit() {
  recorder* const it = recorder::active();
  if (it == nullptr || ::getpid() != writer) return;
  try {
    it->write();
  } catch (const std::exception& e) {
    log(log_level::error, "{}", e.what());
  }
}

std::int64_t nanoseconds(clock::time_point t) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
}

// Viewers show each group as a process. The program's threads are shown in the program's own process; the groups of
// devices have process IDs that no real process has.
std::uint64_t process_of(std::uint32_t group) {
  constexpr std::uint64_t beyond_processes = 1U << 23;
  const auto own = static_cast<std::uint64_t>(::getpid());
  return group == 0 ? own : beyond_processes + own * 64 + group;
}

}  // namespace

std::atomic<recorder*> recorder::the_active{nullptr};

void recorder::start(const std::string& file) {
  const lock_guard lock(starting);
  if (file.empty() || active() != nullptr) return;
  writer = ::getpid();
  the_active.store(new recorder(name_of_output(file)), std::memory_order_release);
}

void recorder::start_without_file(std::size_t capacity) {
  const lock_guard lock(starting);
  if (active() == nullptr) the_active.store(new recorder("", capacity), std::memory_order_release);
}

recorder::recorder(std::string file, std::size_t capacity) : file_(std::move(file)), capacity_(capacity) {
  void* const memory = ::mmap(nullptr, capacity * sizeof(event), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw_system_error("mapping memory for a trace");
  events_ = static_cast<event*>(memory);  // zeroed memory is an array of empty events
  groups_[0] = "threads of the program";
}

recorder::~recorder() { ::munmap(events_, capacity_ * sizeof(event)); }

void recorder::add(category what, const char* name, track where, clock::time_point begin, clock::time_point end,
                   std::uint64_t bytes) noexcept {
  const std::size_t mine = used_.fetch_add(1, std::memory_order_relaxed);
  if (mine >= capacity_) return leave_out(what, name, nanoseconds(end) - nanoseconds(begin));
  event& e = events_[mine];
  e.what = what;
  e.where = where;
  e.begin = nanoseconds(begin);
  e.end = std::max(e.begin, nanoseconds(end));
  e.bytes = bytes;
  e.name.store(name, std::memory_order_release);
}

void recorder::leave_out(category what, const char* name, std::int64_t nanoseconds) noexcept {
  for (left_out& sum : left_out_) {
    const char* its = nullptr;
    if (!sum.name.compare_exchange_strong(its, name, std::memory_order_relaxed) && its != name) continue;
    sum.what.store(what, std::memory_order_relaxed);
    sum.calls.fetch_add(1, std::memory_order_relaxed);
    sum.nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
    return;
  }
}

const char* recorder::keep(const std::string& name) {
  const lock_guard lock(mutex_);
  return names_.insert(name).first->c_str();
}

void recorder::name_group(std::uint32_t group, const std::string& name) {
  const lock_guard lock(mutex_);
  groups_[group] = name;
}

void recorder::name_row(track where, const std::string& name) {
  const lock_guard lock(mutex_);
  rows_[{where.group, where.row}] = name;
}

void recorder::before_writing(std::function<void()> tell) {
  const lock_guard lock(mutex_);
  tellers_.push_back(std::move(tell));
}

std::string recorder::text() const {
  std::string result = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  const char* separator = "";
  const auto line = [&](const std::string& l) {
    result += separator + l;
    separator = ",\n";
  };
  const lock_guard lock(mutex_);
  for (const auto& [group, name] : groups_) {
    line(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", process_of(group),
                     json_text(name)));
    line(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})",
                     process_of(group), group));
  }
  for (const auto& [where, name] : rows_)
    line(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                     process_of(where.first), where.second, json_text(name)));
  const std::size_t used = used_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::min(used, capacity_); ++i) {
    const event& e = events_[i];
    const char* const name = e.name.load(std::memory_order_acquire);
    if (name == nullptr) continue;
    line(fmt::format(
        R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"bytes":{}}}}})",
        json_text(name), categories[static_cast<std::size_t>(e.what)], process_of(e.where.group), e.where.row,
        static_cast<double>(e.begin) / 1e3, static_cast<double>(e.end - e.begin) / 1e3, e.bytes));
  }
  const std::size_t lost = used - std::min(used, capacity_);
  std::string sums;
  for (const left_out& sum : left_out_) {
    const char* const name = sum.name.load(std::memory_order_relaxed);
    if (name == nullptr) break;
    sums += fmt::format(R"({}{{"name":{},"cat":"{}","calls":{},"seconds":{:.9f}}})", sums.empty() ? "" : ",",
                        json_text(name), categories[static_cast<std::size_t>(sum.what.load(std::memory_order_relaxed))],
                        sum.calls.load(std::memory_order_relaxed),
                        static_cast<double>(sum.nanoseconds.load(std::memory_order_relaxed)) / 1e9);
  }
  return result + fmt::format("\n],\"otherData\":{{\"events_without_room\":{},\"without_room\":[{}]}}}}\n", lost, sums);
}

std::string recorder::complete_text() {
  std::vector<std::function<void()>> tellers;
  {
    const lock_guard lock(mutex_);
    tellers = tellers_;
  }
  for (const auto& tell : tellers) tell();
  return text();
}

void recorder::write() {
  if (file_.empty()) return;
  const std::string all = complete_text();
  os::write_file(file_, all);
  const std::size_t used = used_.load(std::memory_order_relaxed);
  if (used > capacity_)
    log(log_level::warn, "the trace {} contains the first {} events; {} later events did not fit", file_, capacity_,
        used - capacity_);
}

track this_thread() noexcept {
  static thread_local const auto number = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  return {0, number};
}

}  // namespace hpe::trace
