#include "interpose/soft/cudart/check/checked_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <map>

#include "hpe/announce.h"
#include "hpe/check.h"
#include "interpose/soft/cudart/check/declared_work.h"
#include "interpose/soft/cudart/check/watched_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/module/cudart_module.h"
#include "runtime/base/demangled.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

namespace {

constexpr unsigned char fresh_value = 0xe5;
// Memory beyond this size is not filled, because programs may allocate much memory and use little of it.
constexpr std::size_t most_filled = std::size_t{256} << 20;
constexpr std::size_t behind = 1024;
constexpr std::size_t most_kept = std::size_t{64} << 20;

/// Freed memory that is kept, in the order of the frees.
struct kept_memory {
  hpe::mutex mutex;
  std::deque<std::pair<void*, std::size_t>> blocks HPE_GUARDED_BY(mutex);
  std::size_t bytes HPE_GUARDED_BY(mutex) = 0;

  hpeStatus free_first() HPE_REQUIRES(mutex) {
    const auto [base, size] = blocks.front();
    blocks.pop_front();
    bytes -= size;
    return ::hpeFreeFinished(base);
  }
};
kept_memory kept;

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// The places of a kernel, and whether all of its writes are recorded.
struct kernel_places {
  check::site_places all;
  bool is_complete = true;
};

/// Returns the places of a kernel. They are looked up once.
std::shared_ptr<const kernel_places> places_of(kernel& what) {
  static std::mutex mutex;
  static auto* const known = new std::map<hpeKernel, std::shared_ptr<const kernel_places>>;
  const hpeKernel handle = what.handle();
  const std::lock_guard lock(mutex);
  auto& found = (*known)[handle];
  if (found == nullptr) {
    auto made = std::make_shared<kernel_places>();
    int complete = 1;
    const auto add = [](std::uint32_t site, std::uint32_t use, const char* place, void* to) {
      static_cast<kernel_places*>(to)->all.add(site, static_cast<check::use>(use), place);
    };
    if (::hpeGetRecordedSites(handle, add, made.get(), &complete) != HPE_SUCCESS) return made;
    made->is_complete = complete != 0;
    found = std::move(made);
  }
  return found;
}

/// Whether CPU code or other processes can use the memory at an address.
bool is_used_by_others(std::uint64_t address) {
  using enum allocation_kind;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
  const auto found = process().memory().find(reinterpret_cast<const void*>(address));
  const bool is_private = found && (found->kind == device || found->kind == pool || found->kind == variable);
  return !is_private || checker()->shared().contains(address);
}

/// Whether a kernel with these accesses may wait for CPU code or other processes, or tell them something.
bool may_signal(const std::vector<check::access_range>& ranges) {
  if (checker()->shared().is_empty()) return false;
  return std::any_of(ranges.begin(), ranges.end(), [](const check::access_range& each) {
    const bool is_strong = each.how == check::use::atomic || each.how == check::use::strong_read;
    return is_strong && is_used_by_others(each.begin);
  });
}

/// One side of a copy, or a memset.
struct box_access {
  const char* begin;
  box shape;
  check::use how;
};

void tell(std::initializer_list<box_access> accesses, const std::shared_ptr<const check::call_place>& place) {
  std::vector<check::access_range> all, of_cuda;
  for (const box_access& each : accesses) {
    const std::size_t first = all.size();
    each.shape.joined().for_each_row([&](std::size_t at) {
      const std::uint64_t row = number(each.begin) + at;
      all.push_back({row, row + each.shape.joined().extent.width, each.how, 0});
    });
    const bool is_known =
        process().memory().find(each.begin).has_value();  // not memory of the program itself, or an array
    if (is_known) of_cuda.insert(of_cuda.end(), all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
  }
  const auto what = std::make_shared<const check::checked_operation>(check::checked_operation{place->call, place});
  compare_with_declared(what, all);
  add_accesses(what, of_cuda);
}

}  // namespace

std::size_t bytes_behind_allocations() noexcept { return checker() != nullptr ? behind : 0; }

bool fill_with_fresh_value(void* base, std::size_t bytes) {
  if (bytes > most_filled) return false;
  check(::hpeMemset(base, fresh_value, bytes));
  return true;
}

hpeStatus free_device_memory(void* base, std::size_t bytes) {
  if (checker() == nullptr || bytes > most_kept) return ::hpeFreeFinished(base);
  const lock_guard lock(kept.mutex);
  kept.blocks.emplace_back(base, bytes);
  kept.bytes += bytes;
  while (kept.bytes > most_kept)
    if (const hpeStatus status = kept.free_first(); status != HPE_SUCCESS) return status;
  return HPE_SUCCESS;
}

void free_kept_memory() {
  const lock_guard lock(kept.mutex);
  while (!kept.blocks.empty()) static_cast<void>(kept.free_first());
}

bool is_kept_memory(const void* base) {
  const lock_guard lock(kept.mutex);
  return std::any_of(kept.blocks.begin(), kept.blocks.end(), [&](const auto& each) { return each.first == base; });
}

bool is_fresh_memory(std::uint64_t begin, std::uint64_t end) {
  std::array<unsigned char, 4096> bytes{};
  const std::size_t size = std::min<std::size_t>(bytes.size(), end - begin);
  if (::hpeMemcpy(bytes.data(), reinterpret_cast<const void*>(begin), size) != HPE_SUCCESS) return false;
  return std::all_of(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size),
                     [](unsigned char each) { return each == fresh_value; });
}

void tell_added(const cudart_allocation& made) {
  if (checker() == nullptr || made.registered != nullptr) return;
  using enum allocation_kind;
  const bool is_fresh = made.kind == device && made.size <= most_filled;
  const bool must_be_freed = made.kind == device || made.kind == managed || made.kind == host;
  checker()->allocate(number(made.base), made.size, is_fresh, must_be_freed, place_of_call());
}

void tell_removed(const cudart_allocation& gone) {
  if (checker() == nullptr || gone.registered != nullptr) return;
  checker()->release(number(gone.base), place_of_call());
  forget_pages(gone);
}

void tell_shared(const cudart_allocation& memory, const hpeExport& handle) {
  if (checker() == nullptr) return;
  fnv1a hash;
  for (const unsigned char each : handle.bytes) hash.add(each);
  checker()->share(number(memory.base), fmt::format("hpe-check-{:016x}", hash.value()),
                   memory.kind != allocation_kind::imported);
}

void tell_copy(const char* to, const char* from, const box_copy& shape,
               const std::shared_ptr<const check::call_place>& place) {
  if (checker() == nullptr || place == nullptr) return;
  tell({{from, shape.read(), check::use::read}, {to, shape.written(), check::use::write}}, place);
}

void tell_set(const char* to, const box& shape, const std::shared_ptr<const check::call_place>& place) {
  if (checker() == nullptr || place == nullptr) return;
  tell({{to, shape, check::use::write}}, place);
}

checked_launch::checked_launch(kernel& what, int device, const std::vector<std::byte>& arguments,
                               const std::shared_ptr<const check::call_place>& place)
    : device_(device) {
  if (checker() == nullptr || place == nullptr) return;
  const auto places = places_of(what);
  const hpeKernelInfo info = what.info();
  const std::span offsets(info.parameter_offsets, info.parameter_count);
  const std::span sizes(info.parameter_sizes, info.parameter_count);
  check::checked_operation made{fmt::format("kernel {}", demangled(what.name())), place, true,
                                check::pointers_in(offsets, sizes, arguments)};
  made.source_of = [places](std::uint32_t site, check::use how) { return places->all.find(site, how); };
  made.writes_elsewhere = [places](std::uint32_t site) { return places->all.has_writes_besides(site); };
  what_ = std::make_shared<const check::checked_operation>(std::move(made));
  writes_unrecorded_ = !places->is_complete;
  check(::hpeRecordLaunches(device));
  fresh_ = checker()->find_fresh(what_->pointers);
}

checked_launch::~checked_launch() {
  if (what_ == nullptr) return;
  std::vector<check::access_range> ranges;
  const auto add = [](const hpeRecordedRange* range, void* to) {
    static_cast<std::vector<check::access_range>*>(to)->push_back(
        {range->begin, range->end, static_cast<check::use>(range->use), range->site});
  };
  if (::hpeTakeRecordedRanges(device_, add, &ranges) != HPE_SUCCESS)
    log(log_level::warn, "HPE_CHECK: the accesses of a kernel are not known: {}", ::hpeGetLastErrorMessage());
  std::vector<check::launch_race> races;
  const auto add_race = [](const hpeRecordedRace* race, void* to) {
    static_cast<std::vector<check::launch_race>*>(to)->push_back(
        {race->shared != 0,
         race->begin,
         race->end,
         {static_cast<check::use>(race->earlier_use), race->earlier_site, race->earlier_place},
         {static_cast<check::use>(race->later_use), race->later_site, race->later_place},
         race->variable});
  };
  static_cast<void>(::hpeTakeRecordedRaces(device_, add_race, &races));
  compare_with_declared(what_, ranges);
  // To the checker, registered memory is at the program's addresses.
  for (check::access_range& each : ranges) {
    const std::optional<cudart_allocation> its = registered_behind(each.begin);
    if (!its) continue;
    const std::uint64_t distance = number(its->base) - number(its->device_base);
    each.begin += distance;
    each.end += distance;
  }
  if (may_signal(ranges)) tell_unknown_order("a kernel accesses memory that others use by atomic or volatile accesses");
  if (writes_unrecorded_)
    for (const auto& [argument, value] : what_->pointers) checker()->set_written(value);
  add_accesses(what_, ranges, fresh_);
  add_races(what_, races);
}

}  // namespace hpe::cudart
