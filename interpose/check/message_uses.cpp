// Each use of buffers is work in a line of its own, which no other work shares until the use has ended.

#include "interpose/check/message_uses.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/check/host_watch.h"

namespace hpe::interpose {

namespace {

constexpr int no_device = -1;

}  // namespace

std::uint64_t message_uses::begin(const char* function, std::span<const buffer> buffers) {
  try {
    return begin_use(function, buffers);
  } catch (const std::exception& caught) {
    log(log_level::warn, "HPE_CHECK: a call of {} is not checked: {}", function, caught.what());
    return 0;
  }
}

std::uint64_t message_uses::begin_use(const char* function, std::span<const buffer> buffers) {
  check::checker& to = started_checker();
  const auto place = std::make_shared<const check::call_place>(check::call_place::here(function));
  const std::uint32_t line = take_line(to);
  const check::operation_run run{std::make_shared<const check::checked_operation>(
                                     check::checked_operation{.what = function, .place = place, .is_message = true}),
                                 to.queue(line, 0, {}, {}, {}, place)};
  to.add(run, ranges_of(buffers, true));
  to.add_ordinary(run, ranges_of(buffers, false));
  for (const buffer& each : buffers) watch(each, run.work->when);
  active made{line, run, unwatched(buffers)};
  const lock_guard lock(mutex_);
  active_.emplace(++last_, std::move(made));
  return last_;
}

void message_uses::end(std::uint64_t use, bool is_new) {
  active ended;
  {
    const lock_guard lock(mutex_);
    const auto found = active_.find(use);
    if (found == active_.end()) return;
    ended = std::move(found->second);
    active_.erase(found);
  }
  check::checker& to = started_checker();
  if (!is_new) ended.unwatched.clear();
  for (const kept_bytes& each : ended.unwatched) {
    const std::size_t at = each.first_change();
    if (at != each.bytes.size())
      to.add_change(ended.run, reinterpret_cast<std::uintptr_t>(each.begin) + at,
                    check::call_place::here("the request was completed"));
  }
  to.wait(ended.run.work->when);
  check::host_watch::of_process()->end_waited(to);
  to.forget(ended.run);
  const lock_guard lock(mutex_);
  free_lines_.push_back(ended.line);
}

void message_uses::enter() noexcept { check::host_watch::enter_messages(); }
void message_uses::leave() noexcept { check::host_watch::leave_messages(); }

// In ordinary memory, only the pages that the buffer covers can be watched.
void message_uses::watch(const buffer& used, const check::past_ptr& work) const {
  const auto range = [&](const std::byte* begin, const std::byte* end) {
    return check::host_watch::use_of_memory{reinterpret_cast<std::uintptr_t>(begin),
                                            reinterpret_cast<std::uintptr_t>(end), used.is_written};
  };
  const auto* begin = static_cast<const std::byte*>(used.begin);
  const std::byte* end = begin + used.bytes;
  const buffer_memory its = memory_at(begin);
  check::host_watch& to = *check::host_watch::of_process();
  to.begin_message(range(begin, end));
  if (its == buffer_memory::ordinary) std::tie(begin, end) = check::pages_within(begin, end);
  if (begin < end && (its == buffer_memory::ordinary || its == buffer_memory::pinned))
    to.watch_message(range(begin, end), work);
}

// Returns the parts of buffers in ordinary memory, from which MPI reads, that are in pages with other memory.
std::vector<message_uses::kept_bytes> message_uses::unwatched(std::span<const buffer> buffers) const {
  constexpr std::size_t most = std::size_t{64} << 10;
  std::vector<kept_bytes> result;
  std::size_t sum = 0;
  const auto keep = [&](const std::byte* begin, const std::byte* end) {
    if (begin < end && (sum += static_cast<std::size_t>(end - begin)) <= most)
      result.push_back({begin, std::vector<std::byte>(begin, end)});
  };
  for (const buffer& each : buffers) {
    if (each.is_written || memory_at(each.begin) != buffer_memory::ordinary) continue;
    const auto* const begin = static_cast<const std::byte*>(each.begin);
    const std::byte* const end = begin + each.bytes;
    const auto [first, last] = check::pages_within(begin, end);
    keep(begin, first);
    keep(last, end);
  }
  return result;
}

std::size_t message_uses::kept_bytes::first_change() const {
  return static_cast<std::size_t>(std::mismatch(bytes.begin(), bytes.end(), begin).first - bytes.begin());
}

std::uint32_t message_uses::take_line(check::checker& to) {
  const lock_guard lock(mutex_);
  if (free_lines_.empty()) return to.add_line(no_device);
  const std::uint32_t line = free_lines_.back();
  free_lines_.pop_back();
  return line;
}

// Returns the buffers in CUDA's memory, or in ordinary memory. Overlapping buffers of a use are joined.
std::vector<check::access_range> message_uses::ranges_of(std::span<const buffer> buffers, bool in_cuda) const {
  const auto is_in_cuda = [this](const void* address) {
    const buffer_memory its = memory_at(address);
    return its == buffer_memory::pinned || its == buffer_memory::of_cuda;
  };
  std::vector<check::access_range> result;
  for (const bool writes : {false, true}) {
    const std::size_t first = result.size();
    for (const buffer& each : buffers) {
      if (each.is_written != writes || is_in_cuda(each.begin) != in_cuda) continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(each.begin);
      result.push_back({begin, begin + each.bytes, writes ? check::use::write : check::use::read, 0});
    }
    const auto from = result.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(from, result.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (std::size_t n = first + 1; n < result.size(); ++n) {
      check::access_range& before = result[n - 1];
      if (result[n].begin > before.end) continue;
      result[n] = {before.begin, std::max(before.end, result[n].end), before.how, 0};
      before.end = before.begin;
    }
    std::erase_if(result, [](const auto& r) { return r.begin == r.end; });
  }
  return result;
}

}  // namespace hpe::interpose
