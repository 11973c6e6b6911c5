// A region with exports stays alive, because a thread that frees a region first checks, under the region's mutex, that
// no bytes of the region are exported.
#include "runtime/core/sharing/exports.h"

#include "runtime/base/error.h"
#include "runtime/node/peer.h"

namespace hpe::core {

using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using coherence::shared_parts;

node::memory_description exports::describe(const region& r, byte_range range) {
  node::memory_description result;
  if (r.single_copy()) {
    result.host = true;
    result.parts.push_back({space_.shadow_file(), space_.offset(r.layout.base), r.layout.extent});
    return result;
  }
  for (const device::shared_part& part : with_.devices.share(r.layout.base + range.begin, range.size()))
    result.parts.push_back({part.file, part.offset, part.bytes});
  return result;
}

const shared_parts::exported_part& exports::part_around(region& r, byte_range range) {
  if (const auto* const known = r.shared.around(range)) return *known;
  const byte_range whole = r.single_copy() ? r.whole() : r.resident.around(range);
  sharing_.forget(with_, r, whole);  // forgets parts made when less of the region was in device memory
  const std::uint64_t memory = others_.add(describe(r, whole));
  r.shared.add(memory, whole);
  return *r.shared.around(range);
}

node::handle exports::begin(const void* p, std::size_t bytes) {
  HPE_REQUIRE(bytes != 0, HPE_ERROR_INVALID_ARGUMENT,
              "an export of 0 bytes at {} was asked for; the smallest has 1 byte", p);
  const allocation found = memory_.require(p, bytes);
  region& r = *found.region;
  HPE_REQUIRE(!r.layout.mapped, HPE_ERROR_NOT_SUPPORTED,
              "{} is in a mapped file, which cannot be exported; send the descriptor of the file to the other process",
              p);
  HPE_REQUIRE(space_.segment_of(p).kind != memory::segment_kind::foreign, HPE_ERROR_NOT_SUPPORTED,
              "{} is memory of another process, opened here; the process that allocated it can export it", p);
  const byte_range range{r.offset_of(p), r.offset_of(p) + bytes};
  const work::region_range bytes_used{&r, range};
  const byte_range object{r.offset_of(found.base), r.offset_of(found.base) + found.bytes};
  point_set writers;
  std::vector<timepoint> uploads;
  node::handle result;
  {
    // The submission queues the uploads of bytes that the host wrote, as for a kernel that reads these bytes.
    work::submission use(with_, {{&r, range, HPE_IN}}, [&](const work::device_access&) {
      bytes_used.require_homes(with_.devices);
      r.mutex.assert_held();
      sharing_.see_writes(with_, r, range);
    });
    r.mutex.assert_held();
    r.order.before_read(range, writers);
    uploads.assign(use.uploads().begin(), use.uploads().end());
    const shared_parts::exported_part part = part_around(r, range);
    std::map<std::uint64_t, live_export> made;  // allocated before publication, because nothing may fail afterwards
    made[0] = {&r, part.memory, object, {static_cast<const std::byte*>(p), bytes}};
    r.shared.begin_export(part.memory, object);
    try {
      result = others_.publish({part.memory, range.begin - part.range.begin, bytes});
    } catch (...) {
      r.shared.end_export(part.memory, object);
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
  if (!what) node::peer::throw_ended();
  {
    // see_writes() can fail, so it is called before the export ends.
    region& r = *what->region;
    const lock_guard lock(r.mutex);
    const std::uint64_t begin = r.offset_of(what->bytes.base);
    sharing_.see_writes(with_, r, {begin, begin + what->bytes.bytes});
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
  const live_export& was = ended.mapped();
  const lock_guard lock(was.region->mutex);
  was.region->shared.end_export(was.memory, was.object);
  return true;
}

std::optional<exports::live_export> exports::live(const node::handle& h) const {
  if (!others_.find(h)) return std::nullopt;
  const lock_guard lock(mutex_);
  const auto found = exported_.find(h.token);
  if (found == exported_.end()) return std::nullopt;
  return found->second;
}

std::optional<exports::exported_bytes> exports::find(const node::handle& h) const {
  const auto found = live(h);
  if (!found) return std::nullopt;
  return found->bytes;
}

}  // namespace hpe::core
