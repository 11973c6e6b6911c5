#include "interpose/gpu/check/program_allocations.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/base/interval_map.h"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

void program_allocations::add(const program_memory& made, const check::operation_run& by) {
  if (made.base == 0 || made.bytes == 0) return;
  using enum program_memory::kind;
  const bool is_fresh = made.what == device;
  {
    const lock_guard lock(mutex_);
    all_[made.base] = {made.base, made.bytes, made.what, is_fresh, watched_part(made)};
  }
  if (by.work != nullptr)
    checker_.allocate_in_line(made.base, made.bytes, is_fresh, by);
  else
    checker_.allocate(made.base, made.bytes, is_fresh, made.what != registered, by.what->place);
}

// Pages of pinned memory may also contain data of the driver, and touches by the driver do not count. Pages of
// registered memory may also contain data of hpe, so only whole pages of the program are watched.
program_allocations::addresses program_allocations::watched_part(const program_memory& made) {
  using enum program_memory::kind;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's integer address
  const auto* const begin = reinterpret_cast<const std::byte*>(made.base);
  const std::byte* const end = begin + made.bytes;
  const auto part = [](const std::byte* first, const std::byte* last) {
    return addresses{reinterpret_cast<std::uintptr_t>(first), reinterpret_cast<std::uintptr_t>(last)};
  };
  if (made.what == pinned) return part(begin, end);
  if (made.what != registered) return {};
  if (!check::is_on_stack(begin, made.bytes)) {
    if (check::has_own_pages(begin, made.bytes)) return part(begin, end);
    if (const auto [first, last] = check::pages_within(begin, end); first != last) return part(first, last);
  }
  log(log_level::warn,
      "HPE_CHECK: CPU code that touches the registered memory at {} is not seen: its pages may contain other data; "
      "register whole pages",
      static_cast<const void*>(begin));
  return {};
}

bool program_allocations::remove(CUdeviceptr base, const check::operation_run& by) {
  allocation gone;
  {
    const lock_guard lock(mutex_);
    const auto found = all_.find(base);
    if (found == all_.end()) return false;
    gone = found->second;
    all_.erase(found);
  }
  if (gone.watched.end != 0) check::host_watch::of_process()->forget(gone.watched.begin, gone.watched.end);
  if (gone.what == program_memory::kind::registered)
    checker_.leave(base);
  else if (by.work != nullptr)
    checker_.release_in_line(base, by);
  else
    checker_.release(base, by.what->place);
  return true;
}

std::optional<program_allocations::allocation> program_allocations::find(CUdeviceptr address) const {
  const lock_guard lock(mutex_);
  const auto found = find_containing(all_, address, &allocation::bytes);
  return found != all_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<std::pair<check::access_range, CUdeviceptr>> program_allocations::take_outside(
    std::vector<check::access_range>& accesses, const std::vector<CUdeviceptr>& pointers) const {
  std::vector<std::pair<check::access_range, CUdeviceptr>> outside;
  if (pointers.empty()) return outside;
  // The allocations to which pointers point: at least one access of the pointer is inside.
  std::map<CUdeviceptr, allocation> known;
  for (std::size_t n = 0; n < accesses.size(); ++n) {
    const auto found = find(pointers[n]);
    if (found && accesses[n].begin < found->base + found->bytes && accesses[n].end > found->base)
      known.emplace(pointers[n], *found);
  }
  for (std::size_t n = 0; n < accesses.size(); ++n) {
    const auto found = known.find(pointers[n]);
    if (found == known.end()) continue;
    check::access_range& each = accesses[n];
    const CUdeviceptr base = found->second.base, stop = base + found->second.bytes;
    const auto cut = [&](std::uint64_t begin, std::uint64_t end) {
      if (begin < end) outside.push_back({{begin, end, each.how, each.site}, base});
    };
    cut(each.begin, std::min<std::uint64_t>(each.end, base));
    cut(std::max<std::uint64_t>(each.begin, stop), each.end);
    each.begin = std::clamp<std::uint64_t>(each.begin, base, stop);
    each.end = std::clamp<std::uint64_t>(each.end, base, stop);
  }
  std::erase_if(accesses, [](const check::access_range& each) { return each.begin >= each.end; });
  return outside;
}

bool program_allocations::is_known_to(const device::cuda::driver& cu, CUdeviceptr address) {
  unsigned type = 0;
  return cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS;
}

program_allocations::place program_allocations::place_of(CUdeviceptr address) const {
  if (const auto found = find(address))
    return found->what == program_memory::kind::device ? place::device : place::host;
  unsigned type = 0;
  if (cu_.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS)
    return place::pageable;
  return type == CU_MEMORYTYPE_HOST ? place::host : place::device;
}

bool program_allocations::is_of_host(CUdeviceptr address) const {
  const auto found = find(address);
  return found && found->what != program_memory::kind::device;
}

std::vector<check::host_watch::use_of_memory> program_allocations::host_memory_of(
    std::span<const check::access_range> accesses) {
  std::vector<check::host_watch::use_of_memory> result;
  std::vector<CUdeviceptr> bases;  // of the allocations
  for (const check::access_range& each : accesses) {
    const auto in = find(each.begin);
    if (!in) continue;
    const bool is_written = each.how == check::use::write || each.how == check::use::atomic;
    const std::uintptr_t begin = std::max<std::uintptr_t>(each.begin, in->watched.begin);
    const std::uintptr_t end = std::min<std::uintptr_t>(each.end, in->watched.end);
    if (begin >= end) continue;
    std::size_t n = 0;
    while (n < bases.size() && (bases[n] != in->base || result[n].is_written != is_written)) ++n;
    if (n == bases.size()) {
      bases.push_back(in->base);
      result.push_back({begin, end, is_written});
    }
    result[n].begin = std::min(result[n].begin, begin);
    result[n].end = std::max(result[n].end, end);
  }
  constexpr std::uintptr_t part = std::uintptr_t{4} << 20;
  for (std::size_t n = 0; n < bases.size(); ++n) {
    if (result[n].end - result[n].begin <= 2 * part || is_watched_whole(bases[n])) continue;
    result.push_back(result[n]);
    result.back().begin = result.back().end - part;
    result[n].end = result[n].begin + part;
  }
  return result;
}

bool program_allocations::is_watched_whole(CUdeviceptr base) {
  constexpr std::uint64_t first = 3;
  const lock_guard lock(mutex_);
  const auto found = all_.find(base);
  if (found == all_.end()) return false;
  const std::uint64_t number = ++found->second.large_uses;
  return number <= first || std::has_single_bit(number);
}

bool program_allocations::has_pages_of_host(CUdeviceptr address) const {
  const auto found = find(address);
  return found && address >= found->watched.begin && address < found->watched.end;
}

std::vector<CUdeviceptr> program_allocations::bases() const {
  std::vector<CUdeviceptr> result;
  const lock_guard lock(mutex_);
  for (const auto& [base, its] : all_) result.push_back(base);
  return result;
}

void program_allocations::set_written(CUdeviceptr address) {
  const auto found = find(address);
  if (!found || !found->is_fresh) return;
  {
    const lock_guard lock(mutex_);
    if (const auto its = all_.find(found->base); its != all_.end()) its->second.is_fresh = false;
  }
  checker_.set_written(found->base);
}

void program_allocations::set_all_written() {
  std::vector<CUdeviceptr> fresh;
  {
    const lock_guard lock(mutex_);
    for (auto& [base, its] : all_)
      if (std::exchange(its.is_fresh, false)) fresh.push_back(base);
  }
  for (const CUdeviceptr base : fresh) checker_.set_written(base);
}

template <class Value>
void program_allocations::remove_with(CUpointer_attribute attribute, Value value, const check::operation_run& by) {
  for (const CUdeviceptr base : bases()) {
    Value its{};
    if (cu_.cuPointerGetAttribute(&its, attribute, base) == CUDA_SUCCESS && its == value)
      static_cast<void>(remove(base, by));
  }
}

void program_allocations::remove_all(CUcontext of, const check::operation_run& by) {
  remove_with(CU_POINTER_ATTRIBUTE_CONTEXT, of, by);
}
void program_allocations::remove_all(CUdevice of, const check::operation_run& by) {
  remove_with(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, of, by);
}

std::vector<check::access_range> accesses_of(CUdeviceptr begin, const box& shape, check::use how) {
  std::vector<check::access_range> result;
  const box joined = shape.joined();
  if (joined.extent.is_empty()) return result;
  joined.for_each_row([&](std::size_t at) {
    result.push_back({begin + at, begin + at + joined.extent.width, how, 0});
  });
  return result;
}

}  // namespace hpe::cuda_hooks
