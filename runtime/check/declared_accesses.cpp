// Accesses are compared in parts: a part lies in one allocation, and every declared range contains either all of it or
// nothing of it. For each launch and allocation, a write is reported rather than a read.

#include "runtime/check/declared_accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpe::check {

namespace {

struct declaration {
  bool reads = false;
  bool writes = false;
};

declaration declared_for(std::span<const declared_range> all, std::uint64_t address) {
  declaration result;
  for (const declared_range& each : all) {
    if (address < each.begin || address >= each.end) continue;
    result.reads = result.reads || each.reads;
    result.writes = result.writes || each.writes;
  }
  return result;
}

bool is_read(use how) { return how == use::read || how == use::strong_read; }

// A strong read may follow a write by another thread, so it is no read of old bytes.
bool allows(const declaration& it, use how) {
  return how == use::read ? it.reads : how == use::strong_read ? it.reads || it.writes : it.writes;
}

// Returns the first address behind `begin` at which a declared range begins or ends; at most `end`.
std::uint64_t next_border(std::span<const declared_range> all, std::uint64_t begin, std::uint64_t end) {
  for (const declared_range& each : all)
    for (const std::uint64_t border : {each.begin, each.end})
      if (border > begin && border < end) end = border;
  return end;
}

const declared_range* nearest_before(std::span<const declared_range> all, std::uint64_t address) {
  const declared_range* result = nullptr;
  for (const declared_range& each : all)
    if (each.begin <= address && (result == nullptr || each.end > result->end)) result = &each;
  return result;
}

std::string sum_of(std::span<const declared_range> all, const memory_extent& in) {
  std::string result;
  for (const declared_range& each : all) {
    if (each.end <= in.base || each.begin >= in.base + in.bytes) continue;
    if (!result.empty()) result += " and ";
    result += fmt::format("[{}, {})", each.begin - in.base, each.end - in.base);
  }
  return result;
}

}  // namespace

declared_accesses::declared_accesses(ignored_findings ignored, std::function<memory_extent(std::uint64_t)> find,
                                     std::function<bool(std::uint64_t)> is_in_space)
    : find_(std::move(find)), is_in_space_(std::move(is_in_space)), findings_(std::move(ignored)) {}

void declared_accesses::allocated(std::uint64_t base, std::shared_ptr<const call_place> place) {
  const lock_guard lock(mutex_);
  places_[base] = std::move(place);
}

void declared_accesses::compare(const operation_ptr& launch, std::span<const declared_range> declared,
                                std::span<const access_range> recorded) {
  const lock_guard lock(mutex_);
  last_ = launch;
  for (const bool reads : {false, true})
    for (const access_range& each : recorded) {
      if (is_read(each.how) != reads) continue;
      for (access_range rest = each; rest.begin < rest.end;) {
        access_range part = rest;
        part.end = next_border(declared, part.begin, part.end);
        if (const memory_extent in = find_(part.begin); in.bytes != 0)
          part.end = std::min(part.end, in.base + in.bytes);
        rest.begin = part.end;
        if (!allows(declared_for(declared, part.begin), part.how)) add(launch, declared, part);
      }
    }
}

void declared_accesses::add(const operation_ptr& launch, std::span<const declared_range> declared,
                            const access_range& part) {
  if (!is_in_space_(part.begin)) return;
  const declaration it = declared_for(declared, part.begin);
  const memory_extent in = find_(part.begin);
  const auto overlaps = [&](const declared_range& r) { return r.begin < in.base + in.bytes && r.end > in.base; };
  const bool in_range = it.reads || it.writes;
  const char* kind = is_read(part.how) ? "undeclared-read" : "undeclared-write";
  if (in.bytes == 0)
    kind = "out-of-range";
  else if (!in_range && std::any_of(declared.begin(), declared.end(), overlaps))
    kind = "beyond-range";
  const std::string key = fmt::format("{} {} {} {}", kind, launch->what, launch->place->hash(),
                                      places_.contains(in.base) ? places_.at(in.base)->hash() : in.base);
  findings_.report(key, launch.get(), [&]() HPE_NO_THREAD_SAFETY_ANALYSIS {
    finding f;
    f.kind = kind;
    f.address = part.begin;
    f.bytes = part.end - part.begin;
    const std::string does = fmt::format("{} {}", launch->what, present_of(part.how));
    if (in.bytes == 0) {
      const declared_range* const near = nearest_before(declared, part.begin);
      const memory_extent before = near != nullptr ? find_(near->begin) : memory_extent();
      f.sentence = fmt::format("{} {} bytes outside of all allocations", does, f.bytes);
      if (before.bytes != 0) {
        f.sentence = fmt::format("{} {} bytes, {} bytes behind the end of an allocation of {} bytes", does, f.bytes,
                                 part.begin - (before.base + before.bytes), before.bytes);
        describe(f, before);
      }
      f.missing = "a test of the index, or a larger allocation";
    } else if (!in_range && f.kind == "beyond-range") {
      f.sentence = fmt::format("{} {} bytes from byte {} of an allocation, and its launch declares only {}", does,
                               f.bytes, part.begin - in.base, sum_of(declared, in));
      f.missing = "a larger range in the access of the launch, or a test of the index in the kernel";
    } else if (!in_range) {
      f.sentence = fmt::format("{} memory that its launch does not declare", does);
      f.missing = is_read(part.how)
                      ? "an access to the memory in the launch: hpe::in (HPE_IN)"
                      : "an access to the memory in the launch: hpe::inout (HPE_INOUT), or hpe::out (HPE_OUT) if the "
                        "kernel writes all bytes";
    } else if (it.reads) {
      f.sentence = fmt::format("{} memory that its launch declares as only read (HPE_IN)", does);
      f.missing =
          "hpe::inout (HPE_INOUT) in the launch, or hpe::out (HPE_OUT) if the kernel writes all bytes and reads none "
          "of the old values";
    } else {
      f.sentence = fmt::format("{} old bytes of memory that its launch declares as only written (HPE_OUT)", does);
      f.missing = "hpe::inout (HPE_INOUT) in the launch, or a write of the bytes before the kernel reads them";
    }
    if (in.bytes != 0) describe(f, in);
    const memory_extent argument_of = in.bytes != 0 ? in : memory_extent{f.address - f.offset, f.allocation_bytes};
    f.now = launch->side(part.how, part.site, argument_of.base, argument_of.bytes);
    return f;
  });
}

void declared_accesses::add(const operation_ptr& launch, std::span<const launch_race> races) {
  const lock_guard lock(mutex_);
  last_ = launch;
  for (const launch_race& each : races) {
    const memory_extent in = each.is_shared ? memory_extent() : find_(each.begin);
    const std::string key = fmt::format("{} {} {:x}", each.key(in.base), launch->what, launch->place->hash());
    findings_.report(key, launch.get(), [&]() HPE_NO_THREAD_SAFETY_ANALYSIS {
      finding f = each.describe(*launch, in.base, in.bytes);
      if (in.bytes != 0) describe(f, in);
      return f;
    });
  }
}

void declared_accesses::describe(finding& to, const memory_extent& in) const {
  to.offset = to.address - in.base;
  to.allocation_bytes = in.bytes;
  const auto known = places_.find(in.base);
  if (known == places_.end()) return;
  to.allocation = finding_side{.how = "allocate", .what = known->second->call, .place = known->second->text()};
}

std::vector<finding> declared_accesses::take() {
  const lock_guard lock(mutex_);
  return findings_.take();
}

}  // namespace hpe::check
