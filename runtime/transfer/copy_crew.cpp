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

// Slices of one row, or of several rows, as many as make about one slice.
std::size_t rows_of_slice(const copy_crew::rows& what, copy_crew::writing how) {
  return std::max<std::size_t>(1, slice_of(how) / std::max<std::size_t>(1, what.width));
}

std::size_t slices_of(const copy_crew::rows& what, copy_crew::writing how) {
  const std::size_t unit = what.count == 1 ? slice_of(how) : rows_of_slice(what, how);
  return ((what.count == 1 ? what.width : what.count) + unit - 1) / unit;
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

void copy_crew::copy_slice(std::byte* to, const std::byte* from, rows what, writing how, std::size_t slice) {
  if (what.count == 1) {
    const std::size_t begin = slice * slice_of(how);
    copy_alone(to + begin, from + begin, std::min(slice_of(how), what.width - begin), how);
    return;
  }
  const std::size_t unit = rows_of_slice(what, how);
  const std::size_t end = std::min(what.count, (slice + 1) * unit);
  for (std::size_t row = slice * unit; row < end; ++row)
    copy_alone(to + row * what.to_pitch, from + row * what.from_pitch, what.width, how);
}

void copy_crew::copy_rows(void* to, const void* from, rows what, writing how) {
  const std::size_t slices = slices_of(what, how);
  if (helpers_ == 0 || what.width * what.count < worth_helping || !turn_.try_lock()) {
    for (std::size_t row = 0; row < what.count; ++row)
      copy_alone(static_cast<std::byte*>(to) + row * what.to_pitch,
                 static_cast<const std::byte*>(from) + row * what.from_pitch, what.width, how);
    return;
  }
  const std::lock_guard mine(turn_, std::adopt_lock);
  if (threads_.empty())
    for (unsigned i = 0; i < helpers_; ++i) threads_.emplace_back([this] { help(); });

  const std::uint32_t job = job_.load() + 1;
  next_.store(std::uint64_t{job} << 32 | 0xffffffff);  // nobody takes a slice while the job is written
  to_.store(static_cast<std::byte*>(to));
  from_.store(static_cast<const std::byte*>(from));
  width_.store(what.width);
  count_.store(what.count);
  to_pitch_.store(what.to_pitch);
  from_pitch_.store(what.from_pitch);
  how_.store(how);
  finished_.store(0);
  next_.store(std::uint64_t{job} << 32);
  job_.store(job);
  job_.notify_all();
  work(job);
  while (finished_.load() != slices) relax();
}

void copy_crew::work(std::uint32_t job) {
  for (;;) {
    std::uint64_t next = next_.load();
    std::byte* const to = to_.load();
    const std::byte* const from = from_.load();
    const rows what{width_.load(), count_.load(), to_pitch_.load(), from_pitch_.load()};
    const writing how = how_.load();
    const std::size_t slice = next & 0xffffffff;
    if (next >> 32 != job || slice >= slices_of(what, how)) return;
    if (!next_.compare_exchange_strong(next, next + 1)) continue;
    copy_slice(to, from, what, how, slice);
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
