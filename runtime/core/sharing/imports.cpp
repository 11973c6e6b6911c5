// A copy keeps its import alive until the copy is complete, so imports may be dropped from the table at any time. The
// handle is checked before and after the copy: if the memory was freed during the copy, the copied bytes are not
// mistaken for the exported bytes.
#include "runtime/core/sharing/imports.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/core/operations/arrivals.h"

namespace hpe::core {

using coherence::byte_range;
using coherence::point_set;
using coherence::region;

namespace {

// Copies between homes are queued in parts, so that other threads can lock the region in between.
constexpr std::uint64_t largest_part = std::uint64_t{256} << 20;

constexpr std::chrono::milliseconds between_looks{100};

std::uint64_t size_of(const node::memory_description& memory) {
  std::uint64_t bytes = 0;
  for (const node::memory_part& part : memory.parts) bytes += part.bytes;
  return bytes;
}

// Returns the parts of a memory that contain the pages of the exported bytes.
std::vector<device::shared_part> pages_of(const node::answer& told) {
  const std::uint64_t begin = told.what.offset / os::page_size() * os::page_size();
  const std::uint64_t end = round_up(told.what.offset + told.what.bytes, os::page_size());
  std::vector<device::shared_part> result;
  std::uint64_t at = 0;
  for (const node::memory_part& part : told.memory.parts) {
    const std::uint64_t from = std::max(at, begin);
    const std::uint64_t to = std::min(at + part.bytes, end);
    if (from < to) result.push_back({part.file, part.offset + (from - at), to - from});
    at += part.bytes;
  }
  HPE_REQUIRE(at >= end, HPE_ERROR_INTERNAL, "another process exports more bytes than it has");
  return result;
}

}  // namespace

class imports::imported_memory {
 public:
  imported_memory(device::device_set& devices, memory::segment_allocator& segment,
                  const node::memory_description& memory)
      : devices_(devices), segment_(segment), bytes_(size_of(memory)) {
    memory.host ? map_here(memory) : map_for_devices(memory);
  }
  imported_memory(const imported_memory&) = delete;
  imported_memory& operator=(const imported_memory&) = delete;
  ~imported_memory() {
    if (base_ == nullptr) return;
    try {
      devices_.drop_import(base_, bytes_);
      segment_.free(base_, granules());
    } catch (const error& e) {
      log(log_level::debug, "dropping memory of another process: {}", e.what());
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_; }
  /// For host memory, returns the address at which this process reads it; nullptr for device memory.
  [[nodiscard]] std::byte* on_host() const noexcept { return here_.data(); }
  /// For device memory, returns its address on this process's devices; nullptr for host memory.
  [[nodiscard]] std::byte* on_devices() const noexcept { return base_; }
  [[nodiscard]] bool reached_by(unsigned device) const noexcept { return (reached_ >> device & 1U) != 0; }

 private:
  [[nodiscard]] std::size_t granules() const { return round_up(bytes_, granule_size) / granule_size + 1; }

  void map_here(const node::memory_description& memory) {
    here_ = os::reservation(0, bytes_, os::page_size());
    std::byte* at = here_.data();
    for (const node::memory_part& part : memory.parts) {
      os::map_file(at, part.bytes, os::page_protection::read, part.file, part.offset);
      at += part.bytes;
    }
  }

  void map_for_devices(const node::memory_description& memory) {
    std::vector<device::shared_part> parts;
    for (const node::memory_part& part : memory.parts) parts.push_back({part.file, part.offset, part.bytes});
    std::byte* const address = segment_.allocate(granules());
    HPE_REQUIRE(address != nullptr, HPE_ERROR_OUT_OF_MEMORY,
                "no address space is left for {} bytes of memory of other processes (HPE_SEGMENT_SIZE)", bytes_);
    try {
      reached_ = devices_.import_memory(address, parts);
    } catch (...) {
      segment_.free(address, granules());
      throw;
    }
    base_ = address;
  }

  device::device_set& devices_;
  memory::segment_allocator& segment_;
  const std::uint64_t bytes_;
  os::reservation here_;
  std::byte* base_ = nullptr;
  std::uint32_t reached_ = 0;
};

imports::imports(const work::resources& with, const memory::uvas& space, allocator& memory, copier& copies,
                 exports& own, node::neighbours& others, memory::segment_allocator& foreign)
    : with_(with), space_(space), memory_(memory), copies_(copies), own_(own), others_(others), segment_(foreign) {}

imports::~imports() = default;

bool imports::reachable(const hpeExport& handle) {
  const auto h = node::decode(handle);
  if (!h) return false;
  if (own_.find(*h)) return true;
  drop_ended();
  const auto from = others_.find(*h);
  return from != nullptr && from->find(*h);
}

void imports::drop_ended() {
  std::vector<std::shared_ptr<const imported_memory>> dropped;  // destroyed after the mutex is released
  const lock_guard lock(mutex_);
  const auto drop_if = [&](auto condition) HPE_REQUIRES(mutex_) {
    for (auto at = kept_.begin(); at != kept_.end();)
      if (condition(at->first)) {
        dropped.push_back(std::move(at->second.memory));
        at = kept_.erase(at);
      } else {
        ++at;
      }
  };
  for (const auto& [process, exporter] : others_.all()) {
    const auto gone = exporter->retired();
    if (!gone.all && gone.memories.empty()) continue;
    drop_if([&, &process = process](const key& k) {
      return k.first == process &&
             (gone.all || std::find(gone.memories.begin(), gone.memories.end(), k.second) != gone.memories.end());
    });
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + between_looks;
  for (const node::process_key& dead : others_.forget_dead()) drop_if([&](const key& k) { return k.first == dead; });
}

std::shared_ptr<const imports::imported_memory> imports::find(const node::handle& h, node::peer& from,
                                                              std::uint64_t memory) {
  std::shared_ptr<const imported_memory> dropped;
  const lock_guard lock(mutex_);
  const auto known = kept_.find({h.process, memory});
  if (known != kept_.end()) {
    known->second.used = ++uses_;
    return known->second.memory;
  }
  const node::answer told = from.describe(h);
  if (told.what.memory != memory) node::peer::throw_ended();
  auto made = std::make_shared<const imported_memory>(with_.devices, segment_, told.memory);
  if (kept_.size() >= most_kept) {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    dropped = std::move(oldest->second.memory);
    kept_.erase(oldest);
  }
  kept_[{h.process, memory}] = {made, ++uses_};
  return made;
}

void imports::copy(void* destination, const hpeExport& handle, std::size_t offset, std::size_t bytes) {
  const auto h = node::decode(handle);
  if (!h) node::peer::throw_ended();
  const auto require_inside = [&](std::size_t size) {
    HPE_REQUIRE(offset <= size && bytes <= size - offset, HPE_ERROR_INVALID_ARGUMENT,
                "a copy of {} bytes from offset {} is not inside the {} bytes that are exported", bytes, offset, size);
    HPE_REQUIRE(destination != nullptr || bytes == 0, HPE_ERROR_INVALID_ARGUMENT,
                "a copy of {} bytes has a null destination", bytes);
  };
  if (const auto own = own_.find(*h)) {
    require_inside(own->bytes);
    return copy_here(destination, own->base + offset, bytes);
  }
  const auto from = others_.find(*h);
  const auto what = from != nullptr ? from->find(*h) : std::nullopt;
  if (!what) node::peer::throw_ended();
  require_inside(what->bytes);
  if (bytes == 0) return;
  drop_ended();
  const auto mapped = find(*h, *from, what->memory);
  HPE_REQUIRE(what->offset + what->bytes <= mapped->size(), HPE_ERROR_INTERNAL,
              "another process exports more bytes than it has");
  copy_in(destination, *mapped, what->offset + offset, bytes);
  if (from->find(*h) != what) node::peer::throw_ended();
}

std::byte* imports::open(const hpeExport& handle) {
  HPE_REQUIRE(
      with_.devices.at(0).info().kind == HPE_DEVICE_SOFT, HPE_ERROR_NOT_SUPPORTED,
      "memory of another process is opened on soft devices only; hpeExportCopy copies from it, and programs that "
      "use CUDA can use CUDA's IPC handles");
  const auto h = node::decode(handle);
  if (!h) node::peer::throw_ended();
  HPE_REQUIRE(!own_.find(*h), HPE_ERROR_NOT_SUPPORTED,
              "the memory is this process's own: use the pointer that was exported");
  drop_ended();
  const auto from = others_.find(*h);
  if (from == nullptr) node::peer::throw_ended();
  const node::answer told = from->open(*h);
  const std::shared_ptr<const void> lease(from.get(), [from, opened = told.what](const void*) { from->close(opened); });
  return memory_.adopt(pages_of(told), told.what.offset % os::page_size(), told.what.bytes, lease);
}

void imports::copy_in(void* destination, const imported_memory& from, std::uint64_t source, std::size_t bytes) {
  if (from.on_host() != nullptr) return copy_here(destination, from.on_host() + source, bytes);
  if (!space_.contains(destination)) {
    return copy_to_host(static_cast<std::byte*>(destination), from, source, bytes);
  }
  const allocation to = memory_.require(destination, bytes);
  const std::uint64_t begin = to.region->offset_of(destination);
  if (!to.region->single_copy()) return copy_to_homes(to, begin, from, source, bytes);
  work::wait_for_users({to.region, {begin, begin + bytes}}, true, with_.devices);
  copy_to_host(space_.alias(destination), from, source, bytes);
}

// copier::copy returns as soon as a copy to hpe memory is queued. But other processes may write the source after
// hpeExportCopy has returned, and this process cannot order their writes after the copy.
void imports::copy_here(void* destination, const std::byte* source, std::size_t bytes) {
  copies_.copy(destination, source, bytes);
  if (bytes == 0 || !space_.contains(destination)) return;
  region& r = *memory_.require(destination, bytes).region;
  const std::uint64_t begin = r.offset_of(destination);
  const point_set writers = work::users_of({&r, {begin, begin + bytes}}, false);
  work::wait_for(writers.points(), with_.devices);
  work::require_success(writers.points(), with_.devices);
}

void imports::copy_to_homes(const allocation& to, std::uint64_t begin, const imported_memory& from,
                            std::uint64_t source, std::size_t bytes) {
  region& r = *to.region;
  bool all_reach = true;
  for (unsigned d = 0; d < with_.devices.size(); ++d) all_reach = all_reach && from.reached_by(d);
  const unsigned reader = all_reach ? 0 : reader_of(from);  // the device that reads for homes that do not reach the
                                                            // memory
  std::vector<timepoint> copies;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t first = done;
    std::uint64_t stop = std::min<std::uint64_t>(done + largest_part, bytes);
    // Take the buffer before the submission locks the region.
    std::optional<transfer::staged> through;
    if (!all_reach) {
      through.emplace(with_.engine.borrow(reader));
      stop = std::min<std::uint64_t>(stop, done + through->size());
    }
    const work::region_range into{&r, {begin + first, begin + stop}};
    work::submission work(with_, {{&r, into.range, HPE_OUT}},
                          [&](const work::device_access&) { into.require_homes(with_.devices); });
    work.submit_by_home([&](unsigned home, byte_range part, const point_set& after) {
      const std::uint64_t offset = part.begin - into.range.begin;
      const std::byte* const out_of = from.on_devices() + source + first + offset;
      std::byte* const target = r.layout.base + part.begin;
      copies.reserve(copies.size() + 1);
      const timepoint copied =
          from.reached_by(home)
              ? with_.engine.copy_foreign(home, target, out_of, part.size(), after.points())
              : with_.engine.copy(home, target, reader, out_of, part.size(), after.points(), *through, offset);
      copies.push_back(copied);
      return copied;
    });
    done = stop;
  }
  work::wait_for(copies, with_.devices);
  work::require_success(copies, with_.devices);
}

unsigned imports::reader_of(const imported_memory& from) const {
  unsigned reader = 0;
  while (reader < with_.devices.size() && (!from.reached_by(reader) || with_.devices.at(reader).lost())) ++reader;
  HPE_REQUIRE(reader < with_.devices.size(), HPE_ERROR_DEVICE_LOST,
              "no device is left that reaches the memory of the other process");
  return reader;
}

void imports::copy_to_host(std::byte* to, const imported_memory& from, std::uint64_t source, std::size_t bytes) {
  const unsigned reader = reader_of(from);
  arrivals under_way(with_.engine);
  for (std::size_t done = 0; done < bytes;) {
    transfer::staged buffer = under_way.next_buffer(reader);
    const std::size_t size = std::min(bytes - done, with_.engine.staging_size());
    with_.engine.read(reader, buffer, from.on_devices() + source + done, size);
    under_way.add(reader, std::move(buffer), to + done, size);
    done += size;
  }
  under_way.finish();
}

}  // namespace hpe::core
