#include "runtime/transfer/copy_crew.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/os/copy.h"
#include "runtime/os/thread.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::transfer {

namespace {

// A single thread makes copies of fewer bytes through the caches of its core: the bytes fit there, and are likely to be
// read soon.
constexpr std::size_t worth_passing_caches = std::size_t{256} << 10;
// On H200 hosts, four threads are too few to keep a link busy if the source is in no cache; eight threads are enough.
constexpr unsigned most_threads = 8;
constexpr unsigned most_threads_for_new_pages =
    16;  // the rate grows up to 16 threads (H200 host, docs/measurements.md)
// The time for which a helper spins before it sleeps, because a sleeping helper wakes up 20 to 200 microseconds late.
// The time is longer than the pause between two chunks of a long copy and, if the machine has many cores, longer than
// the pause between two copies.
std::chrono::microseconds patience() {
  constexpr unsigned enough_cores = 8;
  static const bool patient = os::usable_cores() >= enough_cores;
  return std::chrono::microseconds(patient ? 2000 : 100);
}

void copy_bytes(void* to, const void* from, std::size_t bytes, writing how) {
  how == writing::cached ? void(std::memcpy(to, from, bytes)) : os::copy_past_caches(to, from, bytes);
}

void copy_slice(const posted_copy& what, std::size_t slice) {
  const auto& [extent, to, from] = what.shape;
  const std::size_t begin = slice * what.slice_unit();
  if (extent.rows == 1) {
    const std::size_t bytes = std::min(what.slice_unit(), extent.width - begin);
    if (what.how == writing::to_new_pages) os::populate_whole_pages(what.to + begin, bytes);
    copy_bytes(what.to + begin, what.from + begin, bytes, what.how);
    return;
  }
  for (std::size_t row = begin; row < std::min(extent.rows, begin + what.slice_unit()); ++row)
    copy_bytes(what.to + row * to.row, what.from + row * from.row, extent.width, what.how);
}

}  // namespace

copy_crew::writing copy_crew::to_stage(std::size_t whole) {
  constexpr std::size_t long_copy = std::size_t{64} << 20;
  return whole <= long_copy ? writing::past_caches : writing::cached;
}

unsigned copy_crew::threads_for_this_machine() {
  // If the machine has two cores, both are used: one thread is no faster than the driver's copies, but two threads are
  // twice as fast.
  const unsigned cores = os::usable_cores();
  return std::min(most_threads, std::max(std::min(cores, 2U), cores / 2));
}

unsigned copy_crew::threads_for_new_pages() { return std::min(most_threads_for_new_pages, os::usable_cores()); }

void copy_crew::copy_alone(void* to, const void* from, std::size_t bytes, writing how) {
  copy_bytes(to, from, bytes, bytes < worth_passing_caches ? writing::cached : how);
}

copy_crew::copy_crew(unsigned helpers, std::function<void()> settle)
    : helpers_(helpers), parts_(std::min(helpers + 1, job::most_parts)), settle_(std::move(settle)) {}

copy_crew::~copy_crew() {
  stop_.store(true);
  posted_.fetch_add(1);
  posted_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void copy_crew::start_helpers() noexcept {
  try {
    threads_.reserve(helpers_);
    for (unsigned i = 0; i < helpers_; ++i) threads_.push_back(os::start_thread("hpe-copy", [this, i] { help(i); }));
  } catch (const std::exception& e) {
    log(log_level::warn, "large copies go on with {} of {} threads: {}", threads_.size() + 1, helpers_ + 1, e.what());
  }
  helping_.store(!threads_.empty(), std::memory_order_release);
}

copy_crew::job* copy_crew::take_job() noexcept {
  for (job& j : jobs_)
    if (j.take()) return &j;
  return nullptr;
}

copy_crew::pending copy_crew::begin(void* to, const void* from, const box_copy& shape, writing how) {
  if (shape.bytes() >= worth_helping && helpers_ != 0) {
    start();
    if (job* const mine = threads_.empty() ? nullptr : take_job()) {
      const posted_copy all{static_cast<std::byte*>(to), static_cast<const std::byte*>(from), shape, how};
      mine->post(all, parts_);
      posted_.fetch_add(1);
      posted_.notify_all();
      return {*this, *mine, all.slices()};
    }
  }
  shape.for_each_row([&](std::size_t at_to, std::size_t at_from) {
    copy_alone(static_cast<std::byte*>(to) + at_to, static_cast<const std::byte*>(from) + at_from, shape.extent.width,
               how);
  });
  return {};
}

void copy_crew::pending::finish() noexcept {
  job* const mine = std::exchange(job_, nullptr);
  if (mine == nullptr) return;
  while (crew_->take_any_slice(*mine, crew_->parts_ - 1)) {
  }
  mine->finish(slices_);
}

bool copy_crew::take_slice(job& j, unsigned part) const noexcept { return j.take_slice(part, parts_, copy_slice); }

bool copy_crew::take_any_slice(job& j, unsigned part) const noexcept {
  for (unsigned p = 0; p < parts_; ++p)
    if (take_slice(j, (part + p) % parts_)) return true;
  return false;
}

std::uint32_t copy_crew::next_post(std::uint32_t seen) const {
  const auto end = std::chrono::steady_clock::now() + patience();
  while (posted_.load() == seen && std::chrono::steady_clock::now() < end) os::hardware::relax();
  posted_.wait(seen);
  return posted_.load();
}

void copy_crew::help(unsigned number) {
  os::leave_cores_of_creator();
  settle_();
  const unsigned part = number % parts_;
  for (std::uint32_t seen = 0;;) {
    seen = next_post(seen);
    if (stop_.load()) return;
    // Takes one slice of each copy in turn, so that simultaneous copies get equal help. When this thread's own part has
    // no slice left in any copy, takes slices of other parts, until a whole round finds none.
    for (bool found = true; found;) {
      found = false;
      for (job& j : jobs_) found |= take_slice(j, part);
      for (auto j = jobs_.begin(); !found && j != jobs_.end(); ++j) found = take_any_slice(*j, part);
    }
  }
}

}  // namespace hpe::transfer
