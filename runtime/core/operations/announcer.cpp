#include "runtime/core/operations/announcer.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/trace/profile.h"

// An announcement is recorded before the views are closed, and no lane opens a view that an announcement forbids. So
// after the announcement, CPU code cannot use the bytes without waiting.

namespace hpe::core {

using coherence::announced_thread;
using coherence::region;
using coherence::this_announced_thread;

namespace {

constexpr std::uint64_t all_homes = ~std::uint64_t{0};

}  // namespace

std::vector<announcer::announced_use> announcer::resolve(std::span<const hpeAccess> accesses) const {
  std::vector<announced_use> uses;
  for (const hpeAccess& a : accesses) {
    HPE_REQUIRE(a.mode == HPE_IN || a.mode == HPE_OUT || a.mode == HPE_INOUT, HPE_ERROR_INVALID_ARGUMENT,
                "access mode {} is none of HPE_IN (1), HPE_OUT (2) and HPE_INOUT (3)", static_cast<int>(a.mode));
    if (!space_.contains(a.address)) continue;
    const allocation found = memory_.require(a.address, a.size);
    const std::uint64_t begin = found.region->offset_of(a.address);
    const std::uint64_t end = a.size != 0 ? begin + a.size : found.region->offset_of(found.base) + found.bytes;
    uses.push_back({found.region->id, {begin, end}, a.mode != HPE_IN});
  }
  return uses;
}

void announcer::release(std::uint64_t homes, std::span<const announced_use> uses) const {
  std::vector<work::device_access> accesses;
  for (std::uint32_t number = 1; homes != 0 && number < regions_.limit(); ++number) {
    region& r = regions_.at(number);
    if (!r.open_to_host) continue;
    const lock_guard lock(r.mutex);
    if (!r.alive || r.ordered_by_program()) continue;
    r.close_to_host();
    if (r.open_to_host && (r.layout.mapped || (r.home_set() & homes) != 0))
      accesses.push_back({&r, r.whole(), HPE_INOUT, true});
  }
  // Upload the host's bytes even if the work overwrites them: earlier work may still read them.
  for (const announced_use& each : uses) {
    region& r = regions_.at(each.region);
    if (r.open_to_host && !r.ordered_by_program())
      accesses.push_back({&r, each.range, each.write ? HPE_INOUT : HPE_IN, true});
  }
  if (accesses.empty()) return;
  work::submission use(with_, std::move(accesses), {}, work::submission::memory::as_it_is);
  use.hand_over();
}

template <class Prepare>
std::unique_ptr<hpeAnnouncement_st> announcer::record(std::uint64_t homes, std::vector<announced_use> uses,
                                                      const Prepare& prepare) const {
  auto made = std::make_unique<hpeAnnouncement_st>();
  if (trace::profile::active() != nullptr) {
    trace::call_stack::prepare();
    made->from = std::make_unique<trace::call_stack>(trace::call_stack::here());
  }
  if (homes == 0 && uses.empty()) return made;
  made->number = announced_.add(homes, std::move(uses));
  try {
    prepare();
  } catch (...) {
    if (announced_.remove(made->number)) faults_.look_again();
    throw;
  }
  return made;
}

std::unique_ptr<hpeAnnouncement_st> announcer::announce(std::uint64_t homes, std::span<const hpeAccess> accesses) {
  const std::vector<announced_use> uses = resolve(accesses);
  return record(homes, uses, [&] { release(homes, uses); });
}

std::unique_ptr<hpeAnnouncement_st> announcer::acquire(std::span<const hpeAccess> accesses) {
  const std::vector<announced_use> uses = resolve(accesses);
  std::vector<region*> acquired;
  std::vector<work::device_access> all;
  for (const announced_use& each : uses) {
    region& r = regions_.at(each.region);
    if (r.ordered_by_program()) continue;
    announced_.wait_before(r, each.range, each.write);
    acquired.push_back(&r);
    all.push_back({&r, each.range, each.write ? HPE_INOUT : HPE_IN});
  }
  auto made = record(0, uses, [&] {
    bool counted = false;
    try {
      std::vector<timepoint> uploads;
      {
        work::submission use(with_, all);
        for (region* r : acquired) ++r->acquired;  // the regions are locked
        counted = true;
        use.hand_over();
        uploads.assign(use.uploads().begin(), use.uploads().end());
      }
      for (const work::device_access& each : all)
        work::wait_for_users({each.region, each.range}, each.mode != HPE_IN, with_.devices);
      work::wait_for(uploads, with_.devices);
      work::require_success(uploads, with_.devices);
    } catch (...) {
      for (region* r : acquired) r->acquired -= counted ? 1 : 0;
      throw;
    }
  });
  made->acquired = std::move(acquired);
  return made;
}

void announcer::wait_for_region(const void* p) const {
  const region& r = *memory_.require(p).region;
  announced_.wait_before(r, r.whole(), true);
}

void announcer::wait_before_free(const void* p) const {
  if (!announced_.any()) return;
  const allocation found = memory_.find(p);
  if (found.region == nullptr || found.base != p) return;
  const std::uint64_t begin = found.region->offset_of(found.base);
  announced_.wait_before_free(*found.region, {begin, begin + found.bytes});
}

void announcer::begin(hpeAnnouncement_st& work) const {
  announced_thread& thread = this_announced_thread();
  HPE_REQUIRE(!thread.at_work, HPE_ERROR_INVALID_ARGUMENT, "the calling thread is already executing announced work");
  work.begun = true;
  thread = {.at_work = true};
  if (work.number != 0) trace::count_for(work.from.get());  // host functions (number 0) count for their own call sites
}

void announcer::close_again(bool opened) const {
  // A view that was opened for this thread also lets other threads access the memory. These threads must wait for
  // announced work, so the view is closed again.
  try {
    if (opened && announced_.any()) release(all_homes, {});
  } catch (const error& e) {
    log(log_level::debug, "the views were not closed after a host function: {}",
        e.what());  // if a device is lost; threads that use its memory get errors
  }
}

void announcer::end(const hpeAnnouncement_st& work) const {
  if (work.begun) {
    announced_thread& thread = this_announced_thread();
    const bool opened = std::exchange(thread, {}).used_a_view;
    trace::count_for(nullptr);
    close_again(opened);
  }
  for (region* r : work.acquired) --r->acquired;
  if (work.number != 0 && announced_.remove(work.number)) faults_.look_again();
}

}  // namespace hpe::core
