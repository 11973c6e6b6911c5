// Invariant: the pieces of a range cover its extent, each is one mapping of one allocation, and all GPUs have access.
// The driver unmaps whole mappings only, so pieces are small enough that a move which cuts one copies little of it for
// nothing.
#include "interpose/cuda/spread/dealt_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

constexpr std::uint64_t largest_piece = std::uint64_t{64} << 20;

/// The parts of [first, last) by their homes, none larger than a piece may be.
std::vector<dealt_memory::piece> parts_of(const std::vector<spread::home_run>& homes, std::uint64_t first,
                                          std::uint64_t last) {
  std::vector<dealt_memory::piece> parts;
  for (const spread::home_run& run : homes) {
    const std::uint64_t end = std::min(run.last, last);
    for (std::uint64_t at = std::max(run.first, first); at < end;) {
      const std::uint64_t bytes = std::min(end - at, largest_piece);
      parts.push_back({at, bytes, static_cast<unsigned>(std::max(run.home, 0)), 0});
      at += bytes;
    }
  }
  return parts;
}

/// Ranges that lie alike have the same number: decisions are kept when a program frees an array and allocates it again.
std::uint64_t number_of(const dealt_memory::range& r) {
  std::uint64_t number = 0xcbf29ce484222325ULL ^ r.extent;
  unsigned home = ~0U;
  for (const dealt_memory::piece& p : r.pieces) {
    if (p.gpu == std::exchange(home, p.gpu)) continue;
    number = (number ^ p.offset) * 0x100000001b3ULL;
    number = (number ^ p.gpu) * 0x100000001b3ULL;
  }
  return number;
}

}  // namespace

dealt_memory::dealt_memory(const device::cuda::driver& cu, const joined_gpus& gpus)
    : cu_(cu), gpus_(gpus), granule_(granule_size) {}

CUresult dealt_memory::create(unsigned gpu, std::uint64_t bytes, CUmemGenericAllocationHandle& made) const {
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  what.location.id = gpus_.device(gpu);
  return cu_.cuMemCreate(&made, bytes, &what, 0);
}

// The last homes of an allocation end at its last byte; pieces end at granules.
CUresult dealt_memory::fill(range& r, const std::vector<spread::home_run>& homes) {
  for (piece& p : parts_of(homes, 0, r.extent)) {
    CUresult result = create(p.gpu, p.bytes, p.memory);
    for (unsigned other = 0; result == CUDA_ERROR_OUT_OF_MEMORY && other < gpus_.count(); ++other) {
      if (other == p.gpu) continue;
      result = create(other, p.bytes, p.memory);
      if (result == CUDA_SUCCESS) p.gpu = other;
    }
    if (result == CUDA_SUCCESS) result = cu_.cuMemMap(r.base + p.offset, p.bytes, 0, p.memory, 0);
    if (result != CUDA_SUCCESS) {
      if (p.memory != 0) cu_.cuMemRelease(p.memory);
      return result;
    }
    r.pieces.push_back(p);
  }
  return cu_.cuMemSetAccess(r.base, r.extent, gpus_.access().data(), gpus_.access().size());
}

CUresult dealt_memory::allocate(CUdeviceptr& made, std::uint64_t bytes, const spread::placement& where) {
  if (bytes > ~std::uint64_t{0} - granule_) return CUDA_ERROR_OUT_OF_MEMORY;
  const entered here(cu_, gpus_.context(0));
  range r;
  r.bytes = bytes;
  r.extent = rounded(bytes);
  if (const CUresult result = cu_.cuMemAddressReserve(&r.base, r.extent, 0, 0, 0); result != CUDA_SUCCESS)
    return result;
  spread::allocation whole;
  whole.bytes = r.extent;
  const CUresult result = fill(r, spread::homes_under(where, whole, gpus_.count()));
  r.homes = number_of(r);
  if (result == CUDA_SUCCESS) made = r.base;
  range& kept = ranges_[r.base + r.extent] = std::move(r);
  if (result != CUDA_SUCCESS) free(kept);
  return result;
}

dealt_memory::range* dealt_memory::find(CUdeviceptr address) {
  const auto after = ranges_.upper_bound(address);
  return after != ranges_.end() && address >= after->second.base ? &after->second : nullptr;
}

void dealt_memory::free(range& r) {
  for (const piece& p : r.pieces) {
    cu_.cuMemUnmap(r.base + p.offset, p.bytes);
    cu_.cuMemRelease(p.memory);
  }
  cu_.cuMemAddressFree(r.base, r.extent);
  ranges_.erase(r.base + r.extent);
}

void dealt_memory::free_all() {
  while (!ranges_.empty()) free(ranges_.begin()->second);
}

// The memory of a piece can be mapped twice, so the copy goes to addresses aside.
CUresult dealt_memory::copy_to(const std::vector<piece>& fresh, const piece& old, CUdeviceptr from) {
  CUdeviceptr aside = 0;
  CUresult result = cu_.cuMemAddressReserve(&aside, old.bytes, 0, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  std::size_t mapped = 0;
  for (; mapped < fresh.size() && result == CUDA_SUCCESS; ++mapped) {
    const piece& p = fresh[mapped];
    result = cu_.cuMemMap(aside + (p.offset - old.offset), p.bytes, 0, p.memory, 0);
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS)
    result = cu_.cuMemSetAccess(aside, old.bytes, gpus_.access().data(), gpus_.access().size());
  if (result == CUDA_SUCCESS) result = cu_.cuMemcpyAsync(aside, from, old.bytes, CU_STREAM_PER_THREAD);
  if (result == CUDA_SUCCESS) result = cu_.cuStreamSynchronize(CU_STREAM_PER_THREAD);
  for (std::size_t n = 0; n < mapped; ++n) cu_.cuMemUnmap(aside + (fresh[n].offset - old.offset), fresh[n].bytes);
  cu_.cuMemAddressFree(aside, old.bytes);
  return result;
}

CUresult dealt_memory::replace(range& r, const piece& old, const std::vector<piece>& by, bool copies) {
  std::vector<piece> fresh = by;
  CUresult result = CUDA_SUCCESS;
  for (piece& p : fresh)
    if (result == CUDA_SUCCESS) result = create(p.gpu, p.bytes, p.memory);
  if (result == CUDA_SUCCESS && copies) result = copy_to(fresh, old, r.base + old.offset);
  if (result == CUDA_SUCCESS) result = cu_.cuMemUnmap(r.base + old.offset, old.bytes);
  if (result != CUDA_SUCCESS) {
    for (const piece& p : fresh)
      if (p.memory != 0) cu_.cuMemRelease(p.memory);
    return result;
  }
  cu_.cuMemRelease(old.memory);
  for (const piece& p : fresh) {
    if (result == CUDA_SUCCESS) result = cu_.cuMemMap(r.base + p.offset, p.bytes, 0, p.memory, 0);
    r.pieces.push_back(p);
  }
  if (result == CUDA_SUCCESS)
    result = cu_.cuMemSetAccess(r.base + old.offset, old.bytes, gpus_.access().data(), gpus_.access().size());
  return result;
}

CUresult dealt_memory::move(range& r, const std::vector<spread::home_run>& homes, bool copies) {
  const entered here(cu_, gpus_.context(0));
  std::vector<spread::home_run> granules = homes;
  if (!granules.empty()) granules.back().last = r.extent;
  std::vector<piece> before;
  before.swap(r.pieces);
  CUresult result = CUDA_SUCCESS;
  for (const piece& old : before) {
    const std::vector<piece> wanted = parts_of(granules, old.offset, old.offset + old.bytes);
    const bool stays = result != CUDA_SUCCESS || wanted.empty() || (wanted.size() == 1 && wanted[0].gpu == old.gpu);
    if (!stays) result = replace(r, old, wanted, copies);
    if (stays || (result != CUDA_SUCCESS && (r.pieces.empty() || r.pieces.back().offset < old.offset)))
      r.pieces.push_back(old);
  }
  r.homes = number_of(r);
  return result;
}

}  // namespace hpe::cuda_hooks
