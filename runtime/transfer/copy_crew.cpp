#include "runtime/transfer/copy_crew.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/os/copy.h"
#include "runtime/os/cores.h"

namespace hpe::transfer {

namespace {

// What a thread takes at once. Small, so that nobody waits long for the last one.
constexpr std::size_t slice_bytes = std::size_t{64} << 10;
// Copies by one thread alone that fit into its caches stay there: what was copied is likely to be read from them.
constexpr std::size_t worth_passing_caches = std::size_t{256} << 10;
// Seen on H200s: four threads are too few for a source that is in no cache, and eight keep a link busy.
constexpr unsigned most_threads = 8;
// How long a helper waits awake for the next copy. Longer than from one piece of a long copy to the next, and where
// cores are many, than from one copy to the next: helpers that sleep come 20 to 200 microseconds late.
std::chrono::microseconds patience() {
  constexpr unsigned enough_cores = 8;
  static const bool patient = os::usable_cores() >= enough_cores;
  return std::chrono::microseconds(patient ? 2000 : 100);
}

// Slices of one row, or of several rows, as many as make about one slice.
std::size_t rows_of_slice(const copy_crew::rows& what) {
  return std::max<std::size_t>(1, slice_bytes / std::max<std::size_t>(1, what.width));
}

std::size_t slices_of(const copy_crew::rows& what) {
  const std::size_t unit = what.count == 1 ? slice_bytes : rows_of_slice(what);
  return ((what.count == 1 ? what.width : what.count) + unit - 1) / unit;
}

// Part p of that many begins here, and the next one where it ends.
std::size_t first_slice(const copy_crew::rows& what, unsigned p, unsigned parts) { return slices_of(what) * p / parts; }

void relax() { __builtin_ia32_pause(); }

void copy_bytes(void* to, const void* from, std::size_t bytes, copy_crew::writing how) {
  how == copy_crew::writing::cached ? void(std::memcpy(to, from, bytes)) : os::copy_past_caches(to, from, bytes);
}

}  // namespace

copy_crew::writing copy_crew::to_stage(std::size_t whole) {
  constexpr std::size_t long_copy = std::size_t{64} << 20;
  return whole <= long_copy ? writing::past_caches : writing::cached;
}

unsigned copy_crew::threads_for_this_machine() {
  // Of two cores both: one thread is no faster than the driver's copies, two are twice as fast.
  const unsigned cores = os::usable_cores();
  return std::min(most_threads, std::max(std::min(cores, 2U), cores / 2));
}

void copy_crew::copy_alone(void* to, const void* from, std::size_t bytes, writing how) {
  copy_bytes(to, from, bytes, bytes < worth_passing_caches ? writing::cached : how);
}

copy_crew::copy_crew(unsigned helpers, std::function<void()> settle)
    : helpers_(helpers), parts_(std::min(helpers + 1, most_parts)), settle_(std::move(settle)) {}

copy_crew::~copy_crew() {
  stop_.store(true);
  posted_.fetch_add(1);
  posted_.notify_all();
}

void copy_crew::start_helpers() {
  for (unsigned i = 0; i < helpers_; ++i) threads_.emplace_back([this, i] { help(i); });
}

copy_crew::job* copy_crew::take_job() noexcept {
  for (job& j : jobs_)
    if (!j.taken.load(std::memory_order_relaxed) && !j.taken.exchange(true)) return &j;
  return nullptr;
}

void copy_crew::copy_slice(std::byte* to, const std::byte* from, const rows& what, writing how, std::size_t slice) {
  if (what.count == 1) {
    const std::size_t begin = slice * slice_bytes;
    copy_bytes(to + begin, from + begin, std::min(slice_bytes, what.width - begin), how);
    return;
  }
  const std::size_t unit = rows_of_slice(what);
  const std::size_t end = std::min(what.count, (slice + 1) * unit);
  for (std::size_t row = slice * unit; row < end; ++row)
    copy_bytes(to + row * what.to_pitch, from + row * what.from_pitch, what.width, how);
}

copy_crew::pending copy_crew::begin_rows(void* to, const void* from, rows what, writing how) {
  if (what.width * what.count >= worth_helping && helpers_ != 0) {
    std::call_once(started_, [this] { start_helpers(); });
    if (job* const mine = take_job()) {
      post(*mine, static_cast<std::byte*>(to), static_cast<const std::byte*>(from), what, how);
      return {*this, *mine, slices_of(what)};
    }
  }
  for (std::size_t row = 0; row < what.count; ++row)
    copy_alone(static_cast<std::byte*>(to) + row * what.to_pitch,
               static_cast<const std::byte*>(from) + row * what.from_pitch, what.width, how);
  return {};
}

void copy_crew::post(job& mine, std::byte* to, const std::byte* from, const rows& what, writing how) {
  const std::uint64_t number = ((mine.parts[0].next.load() >> 32) + 1) << 32;
  for (unsigned p = 0; p < parts_; ++p)
    mine.parts[p].next.store(number | nothing_left);  // nobody takes a slice while the job is written
  mine.to.store(to);
  mine.from.store(from);
  mine.width.store(what.width);
  mine.count.store(what.count);
  mine.to_pitch.store(what.to_pitch);
  mine.from_pitch.store(what.from_pitch);
  mine.how.store(how);
  mine.finished.store(0);
  for (unsigned p = 0; p < parts_; ++p) mine.parts[p].next.store(number | first_slice(what, p, parts_));
  posted_.fetch_add(1);
  posted_.notify_all();
}

void copy_crew::pending::finish() noexcept {
  job* const mine = std::exchange(job_, nullptr);
  if (mine == nullptr) return;
  while (crew_->take_any_slice(*mine, crew_->parts_ - 1)) {
  }
  while (mine->finished.load() != slices_) relax();
  mine->taken.store(false);
}

bool copy_crew::take_slice(job& j, unsigned part) const noexcept {
  std::atomic<std::uint64_t>& its = j.parts[part].next;
  for (;;) {
    std::uint64_t next = its.load();
    std::byte* const to = j.to.load();
    const std::byte* const from = j.from.load();
    const rows what{j.width.load(), j.count.load(), j.to_pitch.load(), j.from_pitch.load()};
    const writing how = j.how.load();
    const std::size_t slice = next & nothing_left;
    if (slice >= first_slice(what, part + 1, parts_)) return false;
    if (!its.compare_exchange_weak(next, next + 1)) continue;
    copy_slice(to, from, what, how, slice);
    j.finished.fetch_add(1);
    return true;
  }
}

bool copy_crew::take_any_slice(job& j, unsigned part) const noexcept {
  for (unsigned p = 0; p < parts_; ++p)
    if (take_slice(j, (part + p) % parts_)) return true;
  return false;
}

std::uint32_t copy_crew::next_post(std::uint32_t seen) const {
  const auto end = std::chrono::steady_clock::now() + patience();
  while (posted_.load() == seen && std::chrono::steady_clock::now() < end) relax();
  posted_.wait(seen);
  return posted_.load();
}

void copy_crew::help(unsigned number) {
  settle_();
  const unsigned part = number % parts_;
  for (std::uint32_t seen = 0;;) {
    seen = next_post(seen);
    if (stop_.load()) return;
    // A slice of one copy, a slice of the next, so that copies at the same time are helped alike; and what others left
    // where nothing of this thread's own part is left in any, until a whole round finds nothing.
    for (bool found = true; found;) {
      found = false;
      for (job& j : jobs_) found |= take_slice(j, part);
      for (auto j = jobs_.begin(); !found && j != jobs_.end(); ++j) found = take_any_slice(*j, part);
    }
  }
}

}  // namespace hpe::transfer
