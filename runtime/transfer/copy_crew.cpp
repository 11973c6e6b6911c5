#include "runtime/transfer/copy_crew.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/os/copy.h"

namespace hpe::transfer {

namespace {

// What a thread takes at once. Small, so that nobody waits long for the last one; but memory written past the caches
// is slower in small slices.
constexpr std::size_t slice_of(copy_crew::writing how) {
  return std::size_t{how == copy_crew::writing::cached ? 128U : 256U} << 10;
}
constexpr unsigned most_threads = 8;
// How long a helper waits awake for the next copy. Longer than from one piece of a long copy to the next, and where
// cores are many, than from one copy to the next: helpers that sleep come 20 to 200 microseconds late.
std::chrono::microseconds patience() {
  constexpr unsigned enough_cores = 8;
  static const bool patient = std::thread::hardware_concurrency() >= enough_cores;
  return std::chrono::microseconds(patient ? 2000 : 100);
}

void relax() { __builtin_ia32_pause(); }

}  // namespace

unsigned copy_crew::threads_for_this_machine() {
  return std::min(most_threads, std::max(1U, std::thread::hardware_concurrency() / 2));
}

void copy_crew::copy_alone(void* to, const void* from, std::size_t bytes, writing how) {
  how == writing::cached ? void(std::memcpy(to, from, bytes)) : os::copy_past_caches(to, from, bytes);
}

copy_crew::copy_crew(unsigned helpers) : helpers_(helpers) {}

copy_crew::~copy_crew() {
  stop_.store(true);
  job_.fetch_add(1);
  job_.notify_all();
}

void copy_crew::copy(void* to, const void* from, std::size_t bytes, writing how) {
  if (helpers_ == 0 || bytes < worth_helping || !turn_.try_lock()) {
    copy_alone(to, from, bytes, how);
    return;
  }
  const std::lock_guard mine(turn_, std::adopt_lock);
  if (threads_.empty())
    for (unsigned i = 0; i < helpers_; ++i) threads_.emplace_back([this] { help(); });

  const std::uint32_t job = job_.load() + 1;
  next_.store(std::uint64_t{job} << 32 | 0xffffffff);  // nobody takes a slice while the job is written
  to_.store(static_cast<std::byte*>(to));
  from_.store(static_cast<const std::byte*>(from));
  bytes_.store(bytes);
  how_.store(how);
  finished_.store(0);
  next_.store(std::uint64_t{job} << 32);
  job_.store(job);
  job_.notify_all();
  work(job);
  const std::size_t slices = (bytes + slice_of(how) - 1) / slice_of(how);
  while (finished_.load() != slices) relax();
}

void copy_crew::work(std::uint32_t job) {
  for (;;) {
    std::uint64_t next = next_.load();
    std::byte* const to = to_.load();
    const std::byte* const from = from_.load();
    const std::size_t bytes = bytes_.load();
    const writing how = how_.load();
    const std::size_t slice = slice_of(how);
    const std::size_t begin = (next & 0xffffffff) * slice;
    if (next >> 32 != job || begin >= bytes) return;
    if (!next_.compare_exchange_strong(next, next + 1)) continue;
    copy_alone(to + begin, from + begin, std::min(slice, bytes - begin), how);
    finished_.fetch_add(1);
  }
}

std::uint32_t copy_crew::next_job(std::uint32_t done) {
  const auto end = std::chrono::steady_clock::now() + patience();
  while (job_.load() == done && std::chrono::steady_clock::now() < end) relax();
  job_.wait(done);
  return job_.load();
}

void copy_crew::help() {
  std::uint32_t job = 0;
  for (;;) {
    job = next_job(job);
    if (stop_.load()) return;
    work(job);
  }
}

}  // namespace hpe::transfer
