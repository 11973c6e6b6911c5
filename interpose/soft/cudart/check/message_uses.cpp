// Each use of buffers is work in a line of its own, which no other work shares until the use has ended.

#include "interpose/soft/cudart/check/message_uses.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "interpose/message_checks.h"
#include "interpose/soft/cudart/check/watched_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "runtime/base/log.h"
#include "runtime/check/host_watch.h"

namespace hpe::cudart {

namespace {

constexpr int no_device = -1;

class message_uses final : public interpose::message_checks {
 public:
  void make_known() noexcept { start(); }

  std::uint64_t begin(const char* function, std::span<const buffer> buffers) override try {
    static_cast<void>(process().devices());  // starts the checker
    const auto place = std::make_shared<const check::call_place>(check::call_place::here(function));
    const std::uint32_t line = take_line();
    const check::operation_run run{std::make_shared<const check::checked_operation>(
                                       check::checked_operation{.what = function, .place = place, .is_message = true}),
                                   checker()->queue(line, 0, {}, {}, {}, place)};
    checker()->add(run, ranges_of(buffers, true));
    checker()->add_ordinary(run, ranges_of(buffers, false));
    for (const buffer& each : buffers) watch_message(each.begin, each.bytes, each.is_written, run.work->when);
    active made{line, run, unwatched(buffers)};
    const std::lock_guard lock(mutex_);
    active_.emplace(++last_, std::move(made));
    return last_;
  } catch (const std::exception& caught) {
    log(log_level::warn, "HPE_CHECK: a call of {} is not checked: {}", function, caught.what());
    return 0;
  }

  void end(std::uint64_t use, bool is_new) override {
    active ended;
    {
      const std::lock_guard lock(mutex_);
      const auto found = active_.find(use);
      if (found == active_.end()) return;
      ended = std::move(found->second);
      active_.erase(found);
    }
    if (!is_new) ended.unwatched.clear();
    for (const kept_bytes& each : ended.unwatched) {
      const std::size_t at = first_change(each);
      if (at != each.bytes.size())
        checker()->add_change(ended.run, reinterpret_cast<std::uintptr_t>(each.begin) + at,
                              check::call_place::here("the request was completed"));
    }
    tell_wait(ended.run.work->when);
    checker()->forget(ended.run);
    const std::lock_guard lock(mutex_);
    free_lines_.push_back(ended.line);
  }

  void enter() noexcept override { check::host_watch::enter_messages(); }
  void leave() noexcept override { check::host_watch::leave_messages(); }

 private:
  /// Bytes that MPI reads, and that are not watched.
  struct kept_bytes {
    const std::byte* begin = nullptr;
    std::vector<std::byte> bytes;
  };
  struct active {
    std::uint32_t line = 0;
    check::operation_run run;
    std::vector<kept_bytes> unwatched;
  };

  // Returns the parts of buffers in ordinary memory, from which MPI reads, that are in pages with other memory.
  static std::vector<kept_bytes> unwatched(std::span<const buffer> buffers) {
    constexpr std::size_t most = std::size_t{64} << 10;
    std::vector<kept_bytes> result;
    std::size_t sum = 0;
    const auto keep = [&](const std::byte* begin, const std::byte* end) {
      if (begin < end && (sum += static_cast<std::size_t>(end - begin)) <= most)
        result.push_back({begin, std::vector<std::byte>(begin, end)});
    };
    for (const buffer& each : buffers) {
      if (each.is_written || process().memory().find_also_of_hpe(each.begin)) continue;
      const auto* const begin = static_cast<const std::byte*>(each.begin);
      const std::byte* const end = begin + each.bytes;
      const auto [first, last] = check::pages_within(begin, end);
      keep(begin, first);
      keep(last, end);
    }
    return result;
  }

  static std::size_t first_change(const kept_bytes& what) {
    return static_cast<std::size_t>(std::mismatch(what.bytes.begin(), what.bytes.end(), what.begin).first -
                                    what.bytes.begin());
  }

  std::uint32_t take_line() {
    const std::lock_guard lock(mutex_);
    if (free_lines_.empty()) return checker()->add_line(no_device);
    const std::uint32_t line = free_lines_.back();
    free_lines_.pop_back();
    return line;
  }

  static bool is_in_cuda(const void* address) { return process().memory().find(address).has_value(); }

  // Returns the buffers in CUDA's memory, or in ordinary memory. Overlapping buffers of a use are joined.
  static std::vector<check::access_range> ranges_of(std::span<const buffer> buffers, bool in_cuda) {
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

  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, active> active_;
  std::vector<std::uint32_t> free_lines_;
};

}  // namespace

void start_checking_messages() {
  static auto* const uses = new message_uses;  // never deleted: threads use it until the process ends
  uses->make_known();
}

}  // namespace hpe::cudart
