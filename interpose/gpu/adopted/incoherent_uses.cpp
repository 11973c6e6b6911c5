#include "interpose/gpu/adopted/incoherent_uses.h"

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/trace/location.h"

namespace hpe::cuda_hooks {

namespace {

bool meet(adopted_region::bytes a, adopted_region::bytes b) { return a.begin < b.end && b.begin < a.end; }

const char* words_of(incoherent_use how) {
  switch (how) {
    case incoherent_use::exported:
      return "is shared with other processes: CPU code here sees their writes, and they see the writes of CPU code, "
             "only after the next work of this process on a device";
    case incoherent_use::opened:
      return "belongs to another process: CPU code here sees that process's writes, and it sees the writes of CPU "
             "code, only after the next work of this process on a device";
    case incoherent_use::external:
      return "is memory of another API: CPU code sees that API's writes, and the API sees the writes of CPU code, only "
             "after the next CUDA work on a device";
    case incoherent_use::graphics:
      return "is a mapped graphics resource: CPU code may use it only while it is mapped, and the graphics API sees "
             "the writes of CPU code only after the next CUDA work on a device";
    case incoherent_use::awaited:
      return "holds a value for which a stream waits: the stream does not see values that CPU code writes later, and "
             "may wait for ever; write the value with cuStreamWriteValue32 or cuMemcpy";
    case incoherent_use::messages:
      return "was left to the MPI library, which transfers it without hpe: CPU code and other ranks may see old bytes; "
             "with HPE_MPI=on, hpe transfers the memory";
    case incoherent_use::capture:
      return "is read by CPU code while a stream is captured: the driver then forbids waiting for the devices, so CPU "
             "code may not see the results of queued work";
  }
  return "";
}

}  // namespace

void incoherent_uses::tell(incoherent_use how, adopted_region::bytes region, const std::string& place) {
  if (!told_.insert({how, region.begin}).second) return;
  any_.store(true, std::memory_order_relaxed);
  log(log_level::warn, "device memory that CPU code uses, {} bytes at {:#x}, {} (at {})", region.end - region.begin,
      region.begin, words_of(how), place);
}

void incoherent_uses::warn(incoherent_use how, adopted_region::bytes region) {
  const lock_guard lock(mutex_);
  if (!told_.contains({how, region.begin})) tell(how, region, trace::location_of_caller());
}

void incoherent_uses::shares(incoherent_use how, adopted_region::bytes range, adopted_region::bytes region) {
  const auto same = [&](const note& n) {
    return n.how == how && n.range.begin == range.begin && n.range.end == range.end;
  };
  {
    const lock_guard lock(mutex_);
    const auto known = std::ranges::find_if(notes_, same);
    if (known != notes_.end()) {
      if (meet(range, region)) tell(how, region, known->place);
      return;
    }
  }
  const std::string place = trace::location_of_caller();  // takes long, so only for a new note
  const lock_guard lock(mutex_);
  any_.store(true, std::memory_order_relaxed);
  if (std::ranges::none_of(notes_, same)) notes_.push_back({how, range, place});
  if (meet(range, region)) tell(how, region, place);
}

void incoherent_uses::touched(adopted_region::bytes region) {
  const lock_guard lock(mutex_);
  for (const note& n : notes_)
    if (meet(n.range, region)) tell(n.how, region, n.place);
}

bool incoherent_uses::concern(CUdeviceptr address) const {
  if (!any()) return false;
  const auto has = [address](adopted_region::bytes range) { return range.begin <= address && address < range.end; };
  const lock_guard lock(mutex_);
  return std::ranges::any_of(notes_, [&](const note& n) { return has(n.range); }) ||
         std::ranges::any_of(mapped_, [&](const auto& m) { return has(m.second); }) ||
         std::ranges::any_of(told_, [&](const auto& t) { return t.second == address; });
}

void incoherent_uses::forget(adopted_region::bytes range) {
  const lock_guard lock(mutex_);
  std::erase_if(notes_, [&](const note& n) { return meet(n.range, range); });
  std::erase_if(mapped_, [&](const auto& m) { return meet(m.second, range); });
  std::erase_if(told_, [&](const auto& t) { return range.begin <= t.second && t.second < range.end; });
}

std::vector<adopted_region::bytes> incoherent_uses::shares_handle(incoherent_use how, allocation handle) {
  const lock_guard lock(mutex_);
  handles_[handle] = how;
  std::vector<adopted_region::bytes> result;
  const auto [first, last] = mapped_.equal_range(handle);
  for (auto m = first; m != last; ++m) result.push_back(m->second);
  return result;
}

std::optional<incoherent_use> incoherent_uses::maps(allocation handle, adopted_region::bytes range) {
  const lock_guard lock(mutex_);
  any_.store(true, std::memory_order_relaxed);
  mapped_.emplace(handle, range);
  const auto found = handles_.find(handle);
  return found != handles_.end() ? std::optional(found->second) : std::nullopt;
}

void incoherent_uses::releases(allocation handle) {
  const lock_guard lock(mutex_);
  handles_.erase(handle);
  mapped_.erase(handle);
}

void incoherent_uses::add_texture(CUtexObject object, CUdeviceptr address) {
  const lock_guard lock(mutex_);
  textures_[object] = address;
}

void incoherent_uses::remove_texture(CUtexObject object) {
  const lock_guard lock(mutex_);
  textures_.erase(object);
}

}  // namespace hpe::cuda_hooks
