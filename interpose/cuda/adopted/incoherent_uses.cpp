#include "interpose/cuda/adopted/incoherent_uses.h"

#include "runtime/base/log.h"
#include "runtime/trace/call_stack.h"

namespace hpe::cuda_hooks {

namespace {

using kind = incoherent_uses::kind;

bool meet(adopted_region::bytes a, adopted_region::bytes b) { return a.begin < b.end && b.begin < a.end; }

const char* words_of(kind how) {
  switch (how) {
    case kind::exported:
      return "is shared with other processes: what they write is seen by CPU code here after the next device "
             "work of this process, and what CPU code writes is seen by them after that";
    case kind::opened:
      return "belongs to another process: what that writes is seen by CPU code here after the next device work "
             "of this process, and what CPU code writes is seen there after that";
    case kind::external:
      return "is memory of another API: what that writes is seen by CPU code after the next device work of CUDA, and "
             "what CPU code writes is seen there after that";
    case kind::graphics:
      return "is a mapped graphics resource: CPU code may use it between mapping and unmapping only, and what it "
             "writes is seen by graphics after the next device work of CUDA";
    case kind::awaited:
      return "is waited for by a stream: a value that CPU code writes later is not seen by the stream, which may wait "
             "for ever; write it with cuStreamWriteValue32 or cuMemcpy";
    case kind::capture:
      return "is read by CPU code while a stream is captured, when the driver does not let anybody wait for the "
             "devices: work that is still queued may not be seen";
  }
  return "";
}

}  // namespace

void incoherent_uses::tell(kind how, adopted_region::bytes region, const std::string& place) {
  if (!told_.insert({how, region.begin}).second) return;
  any_.store(true, std::memory_order_relaxed);
  log(log_level::warn, "device memory that CPU code uses, {} bytes at {:#x}, {} (at {})", region.end - region.begin,
      region.begin, words_of(how), place);
}

void incoherent_uses::warn(kind how, adopted_region::bytes region) {
  const lock_guard lock(mutex_);
  if (!told_.contains({how, region.begin})) tell(how, region, trace::location_of_caller());
}

void incoherent_uses::shares(kind how, adopted_region::bytes range, adopted_region::bytes region) {
  const std::string place = trace::location_of_caller();
  const lock_guard lock(mutex_);
  any_.store(true, std::memory_order_relaxed);
  notes_.push_back({how, range, place});
  if (meet(range, region)) tell(how, region, place);
}

void incoherent_uses::touched(adopted_region::bytes region) {
  const lock_guard lock(mutex_);
  for (const note& n : notes_)
    if (meet(n.range, region)) tell(n.how, region, n.place);
}

void incoherent_uses::forget(adopted_region::bytes range) {
  const lock_guard lock(mutex_);
  std::erase_if(notes_, [&](const note& n) { return meet(n.range, range); });
  std::erase_if(mapped_, [&](const auto& m) { return meet(m.second, range); });
  std::erase_if(told_, [&](const auto& t) { return range.begin <= t.second && t.second < range.end; });
}

std::vector<adopted_region::bytes> incoherent_uses::shares_handle(kind how, allocation handle) {
  const lock_guard lock(mutex_);
  handles_[handle] = how;
  std::vector<adopted_region::bytes> result;
  const auto [first, last] = mapped_.equal_range(handle);
  for (auto m = first; m != last; ++m) result.push_back(m->second);
  return result;
}

std::optional<incoherent_uses::kind> incoherent_uses::maps(allocation handle, adopted_region::bytes range) {
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
