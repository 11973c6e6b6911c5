// Each block is either in used_blocks_ or in free_blocks_. used_ is the number of requested bytes in used_blocks_,
// rounded up to the granularity for each block, and reserved_ is the number of bytes in both lists.

#include "interpose/soft/cudart/memory/memory_pool.h"

#include <algorithm>
#include <utility>

#include "interpose/soft/cudart/device/failure.h"
#include "interpose/soft/cudart/stream/checked_work.h"

namespace hpe::cudart {
namespace {

constexpr std::size_t granularity = 512;

/// Tells the checker of an allocation in stream order. The stream tells of a reused block when it has run the earlier
/// work on the block.
void tell_allocation(void* base, std::size_t bytes, bool is_new, cudart_stream& where) {
  const auto place = place_of_call();
  const auto what = std::make_shared<const check::checked_operation>(check::checked_operation{place->call, place});
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  if (is_new) {
    const bool is_fresh = fill_fresh_memory(base, bytes);
    return checker()->allocate_in_line(address, bytes, is_fresh, {what, where.queue_without_task()});
  }
  check(where.enqueue([what, base, address, bytes] {
    const bool is_fresh = fill_fresh_memory(base, bytes);
    checker()->allocate_in_line(address, bytes, is_fresh, run_of(what));
    return cudaSuccess;
  }));
}

std::size_t rounded(std::size_t bytes) { return (bytes + granularity - 1) / granularity * granularity; }

}  // namespace

memory_pool::memory_pool(std::unique_ptr<memory_source> source, int device, std::size_t max_size)
    : source_(std::move(source)), device_(device), max_size_(max_size) {}

memory_pool::~memory_pool() {
  const lock_guard lock(mutex_);
  give_back(0, true);
}

void* memory_pool::allocate(std::size_t bytes, cudart_stream& where) {
  require(bytes != 0 && bytes <= SIZE_MAX - granularity, cudaErrorInvalidValue);
  const std::size_t size = rounded(bytes);
  const lock_guard lock(mutex_);
  void* base = take_free(size, where);
  const bool is_new = base == nullptr;
  if (is_new) base = take_new(size);
  require(base != nullptr, cudaErrorMemoryAllocation);
  if (checker() != nullptr) tell_allocation(base, bytes, is_new, where);
  used_ += size;
  used_high_ = std::max(used_high_, used_);
  return base;
}

void* memory_pool::take_free(std::size_t bytes, const cudart_stream& where) {
  auto best = free_blocks_.end();
  for (auto each = free_blocks_.begin(); each != free_blocks_.end(); ++each) {
    const bool usable = each->stream == where.id() || (opportunistic_ && each->since.reached());
    const bool fits = each->size >= bytes && each->size / 2 <= bytes;  // at most half of a block is wasted
    if (usable && fits && (best == free_blocks_.end() || each->size < best->size)) best = each;
  }
  if (best == free_blocks_.end()) return nullptr;
  void* const base = best->base;
  used_blocks_[base] = {best->size, bytes};
  free_blocks_.erase(best);
  return base;
}

void* memory_pool::take_new(std::size_t bytes) {
  const auto try_to = [&]() HPE_REQUIRES(mutex_) -> void* {
    const bool is_too_much = max_size_ != 0 && (bytes > max_size_ || reserved_ > max_size_ - bytes);
    return is_too_much ? nullptr : source_->allocate(bytes);
  };
  void* base = try_to();
  if (base == nullptr) {
    give_back(0, true);
    base = try_to();
  }
  if (base == nullptr) return nullptr;
  used_blocks_[base] = {bytes, bytes};
  reserved_ += bytes;
  reserved_high_ = std::max(reserved_high_, reserved_);
  return base;
}

void memory_pool::put_free(void* block, point since, std::uint64_t stream) {
  const auto found = used_blocks_.find(block);
  require(found != used_blocks_.end(), cudaErrorInvalidValue);
  free_blocks_.push_back({block, found->second.size, std::move(since), stream});
  used_ -= found->second.requested;
  used_blocks_.erase(found);
}

void memory_pool::free(void* block, cudart_stream& where) {
  const lock_guard lock(mutex_);
  require(used_blocks_.count(block) != 0, cudaErrorInvalidValue);
  point since;
  const auto place = place_of_call();
  const auto tell = [block, place] {
    if (place == nullptr) return cudaSuccess;
    const auto what = std::make_shared<const check::checked_operation>(check::checked_operation{place->call, place});
    checker()->release_in_line(reinterpret_cast<std::uintptr_t>(block), run_of(what));
    return cudaSuccess;
  };
  check(where.enqueue(tell, {}, &since));
  put_free(block, std::move(since), where.id());
}

void memory_pool::free(void* block) {
  const lock_guard lock(mutex_);
  put_free(block, {}, 0);
  if (checker() != nullptr) checker()->release(reinterpret_cast<std::uintptr_t>(block), place_of_call());
}

void memory_pool::give_back(std::size_t keep, bool wait) {
  std::erase_if(free_blocks_, [&](const free_block& each) HPE_REQUIRES(mutex_) {
    if (reserved_ <= keep || (!wait && !each.since.reached())) return false;
    each.since.wait();
    source_->free(each.base);
    reserved_ -= each.size;
    return true;
  });
}

void memory_pool::trim(std::size_t keep) {
  const lock_guard lock(mutex_);
  give_back(keep, false);
}

void memory_pool::release_excess() {
  const lock_guard lock(mutex_);
  if (reserved_ > threshold_) give_back(threshold_, false);
}

std::uint64_t memory_pool::attribute(cudaMemPoolAttr which) const {
  const lock_guard lock(mutex_);
  switch (which) {
    case cudaMemPoolReuseFollowEventDependencies: return follow_events_ ? 1 : 0;
    case cudaMemPoolReuseAllowOpportunistic: return opportunistic_ ? 1 : 0;
    case cudaMemPoolReuseAllowInternalDependencies: return internal_dependencies_ ? 1 : 0;
    case cudaMemPoolAttrReleaseThreshold: return threshold_;
    case cudaMemPoolAttrReservedMemCurrent: return reserved_;
    case cudaMemPoolAttrReservedMemHigh: return reserved_high_;
    case cudaMemPoolAttrUsedMemCurrent: return used_;
    case cudaMemPoolAttrUsedMemHigh: return used_high_;
    default: throw failure(cudaErrorInvalidValue);
  }
}

void memory_pool::set_attribute(cudaMemPoolAttr which, std::uint64_t value) {
  const lock_guard lock(mutex_);
  switch (which) {
    case cudaMemPoolReuseFollowEventDependencies: follow_events_ = value != 0; break;
    case cudaMemPoolReuseAllowOpportunistic: opportunistic_ = value != 0; break;
    case cudaMemPoolReuseAllowInternalDependencies: internal_dependencies_ = value != 0; break;
    case cudaMemPoolAttrReleaseThreshold: threshold_ = value; break;
    case cudaMemPoolAttrReservedMemHigh:
      require(value == 0, cudaErrorInvalidValue);
      reserved_high_ = reserved_;
      break;
    case cudaMemPoolAttrUsedMemHigh:
      require(value == 0, cudaErrorInvalidValue);
      used_high_ = used_;
      break;
    default: throw failure(cudaErrorInvalidValue);
  }
}

}  // namespace hpe::cudart
