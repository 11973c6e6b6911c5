// A region with exports is alive: a thread that frees it checks its exports under its mutex first.
#include "runtime/core/sharing/exports.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/node/peer.h"

namespace hpe::core {

using coherence::byte_range;
using coherence::point_set;
using coherence::region;

node::memory_description exports::describe(const region& r) {
  node::memory_description result;
  if (r.single_copy()) {
    result.host = true;
    result.parts.push_back({space_.shadow_file(), space_.offset(r.layout.base), r.layout.extent});
    return result;
  }
  for (const device::shared_part& part : with_.devices.share(r.layout.base, round_up(r.layout.bytes, granule_size)))
    result.parts.push_back({part.file, part.offset, part.bytes});
  return result;
}

node::handle exports::begin(const void* p, std::size_t bytes) {
  HPE_REQUIRE(bytes != 0, HPE_ERROR_INVALID_ARGUMENT, "0 bytes at {} were to be exported; the least is 1", p);
  const allocation found = memory_.require(p, bytes);
  region& r = *found.region;
  HPE_REQUIRE(space_.segment_of(p).kind != memory::segment_kind::foreign, HPE_ERROR_NOT_SUPPORTED,
              "{} is memory of another process, opened here; the process that allocated it can export it", p);
  const byte_range range{r.offset_of(p), r.offset_of(p) + bytes};
  const work::region_range bytes_used{&r, range};
  const byte_range object{r.offset_of(found.base), r.offset_of(found.base) + found.bytes};
  bool written_by_others = false;
  {
    const lock_guard lock(r.mutex);
    written_by_others = others_.is_open(r.shared);
  }
  point_set writers;
  std::vector<timepoint> uploads;
  node::handle result;
  {
    // Released as for a kernel that reads the bytes or, if other processes may write them, as for one that writes them.
    work::submission use(with_, {{&r, range, written_by_others ? HPE_INOUT : HPE_IN}},
                         [&](const work::device_access&) { bytes_used.require_homes(with_.devices); });
    r.mutex.assert_held();
    r.order.before_read(range, writers);
    uploads.assign(use.uploads().begin(), use.uploads().end());
    if (r.shared == 0) r.shared = others_.add(describe(r));
    std::map<std::uint64_t, live_export> made;  // made before publication, after which nothing may fail
    made[0] = {&r, object, {static_cast<const std::byte*>(p), bytes}};
    r.exports.push_back(object);
    try {
      result = others_.publish({r.shared, range.begin, bytes});
    } catch (...) {
      r.exports.pop_back();
      throw;
    }
    auto node = made.extract(made.begin());
    node.key() = result.token;
    {
      const lock_guard lock(mutex_);
      exported_.insert(std::move(node));
    }
    use.hand_over();
  }
  work::wait_for(writers.points(), with_.devices);
  try {
    bytes_used.require_homes(with_.devices);
    work::require_success(uploads, with_.devices);
  } catch (...) {
    forget(result);
    throw;
  }
  return result;
}

void exports::end(const node::handle& h) {
  const auto what = live(h);
  const auto named = others_.find(h);
  if (!what || !named) node::peer::throw_ended();
  // Writes of other processes are at the home only. Drop the host's copy first, because that can fail.
  if (others_.is_open(named->memory)) {
    work::submission use(with_, {{what->region, {named->offset, named->offset + named->bytes}, HPE_INOUT}});
    use.hand_over();
  }
  if (!forget(h)) node::peer::throw_ended();
}

bool exports::forget(const node::handle& h) noexcept {
  if (!others_.end(h)) return false;
  decltype(exported_)::node_type ended;
  {
    const lock_guard lock(mutex_);
    ended = exported_.extract(h.token);
  }
  region& r = *ended.mapped().region;
  const lock_guard lock(r.mutex);
  r.exports.erase(std::find(r.exports.begin(), r.exports.end(), ended.mapped().object));
  return true;
}

std::optional<exports::live_export> exports::live(const node::handle& h) const {
  if (!others_.find(h)) return std::nullopt;
  const lock_guard lock(mutex_);
  const auto found = exported_.find(h.token);
  if (found == exported_.end()) return std::nullopt;
  return found->second;
}

std::optional<exports::range> exports::find(const node::handle& h) const {
  const auto found = live(h);
  if (!found) return std::nullopt;
  return found->bytes;
}

}  // namespace hpe::core
