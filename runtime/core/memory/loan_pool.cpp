#include "runtime/core/memory/loan_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/work/accesses.h"

// All addresses in free_ are alias addresses. Loans smaller than a granule are cut from whole granules, and these parts
// are never joined again.

namespace hpe::core {

namespace {

constexpr std::uintptr_t page = 4096;
constexpr std::size_t most_idle = std::size_t{512} << 20;

std::size_t size_of(unsigned size_class) { return std::size_t{1} << size_class; }

// Returns how many granules at the beginning of the runtime segment are not lent: half of the segment, or more if the
// staging buffers need more.
std::size_t first_granule(const memory::uvas& space, std::size_t staging) {
  return std::max<std::size_t>(space.layout().segment_size / 2, round_up(staging, granule_size)) / granule_size;
}

}  // namespace

loan::loan(loan&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)),
      size_class_(other.size_class_),
      busy_(std::move(other.busy_)) {}

loan& loan::operator=(loan&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(memory_, other.memory_);
  std::swap(size_class_, other.size_class_);
  std::swap(busy_, other.busy_);
  return *this;
}

loan::~loan() {
  if (pool_ != nullptr) pool_->give_back(memory_, size_class_, std::move(busy_));
}

loan_pool::loan_pool(device::device_set& devices, memory::uvas& space, std::size_t staging)
    : devices_(devices),
      space_(space),
      segment_(space.segment_begin(memory::segment_kind::runtime) + first_granule(space, staging) * granule_size,
               space.layout().segment_size / granule_size - first_granule(space, staging)) {}

loan loan_pool::take(std::size_t bytes, const void* like) {
  const std::uintptr_t remainder = reinterpret_cast<std::uintptr_t>(like) % page;
  HPE_REQUIRE(bytes <= size_of(largest) / 2, HPE_ERROR_OUT_OF_MEMORY,
              "{} bytes of host memory for a copy of device memory cannot be allocated", bytes);
  const unsigned size_class = std::max(smallest, static_cast<unsigned>(std::bit_width(bytes + remainder - 1)));
  loan result;
  std::byte* memory = take_free(size_class);
  if (memory == nullptr) memory = make(size_class);
  result.pool_ = this;
  result.memory_ = memory;
  result.data_ = memory + remainder;
  result.size_class_ = size_class;
  return result;
}

std::byte* loan_pool::take_free(unsigned size_class) {
  returned_loan found{nullptr, {}};
  {
    const lock_guard lock(mutex_);
    auto& candidates = free_[size_class];
    if (candidates.empty()) return nullptr;
    auto best = std::find_if(candidates.begin(), candidates.end(),
                             [&](const returned_loan& e) { return work::reached(e.busy.points(), devices_); });
    if (best == candidates.end()) {
      // If little memory is idle, allocate more memory instead of waiting.
      if (idle_ < most_idle / 2) return nullptr;
      best = candidates.begin();
    }
    found = std::move(*best);
    candidates.erase(best);
    idle_ -= size_of(size_class);
  }
  work::wait_for(found.busy.points(), devices_);
  return found.memory;
}

std::byte* loan_pool::make(unsigned size_class) {
  const std::size_t bytes = size_of(size_class);
  const std::size_t granules = std::max<std::size_t>(bytes / granule_size, 1);
  std::byte* const address = segment_.allocate(granules);
  HPE_REQUIRE(address != nullptr, HPE_ERROR_OUT_OF_MEMORY,
              "no address space is left for {} bytes of copies of device memory (HPE_SEGMENT_SIZE)", bytes);
  try {
    space_.open_alias(address, bytes);
  } catch (...) {
    segment_.free(address, granules);
    throw;
  }
  std::byte* const memory = space_.alias(address);
  if (bytes < granule_size) {
    const lock_guard lock(mutex_);
    for (std::size_t at = bytes; at < granule_size; at += bytes) {
      free_[size_class].push_front({memory + at, {}});
      idle_ += bytes;
    }
  }
  return memory;
}

void loan_pool::give_back(std::byte* memory, unsigned size_class, coherence::point_set busy) noexcept {
  try {
    {
      const lock_guard lock(mutex_);
      if (size_of(size_class) < granule_size || idle_ + size_of(size_class) <= most_idle) {
        free_[size_class].push_front({memory, std::move(busy)});
        idle_ += size_of(size_class);
        return;
      }
    }
    discard(memory, size_class, busy);
  } catch (const std::exception& e) {
    log(log_level::error, "hpe can no longer use {} bytes of host memory: {}", size_of(size_class), e.what());
  }
}

void loan_pool::discard(std::byte* memory, unsigned size_class, const coherence::point_set& busy) {
  work::wait_for(busy.points(), devices_);
  std::byte* const address = space_.view(memory);
  const bool unmapped = space_.unmap_view(address, size_of(size_class));
  devices_.release_host(memory, size_of(size_class));
  if (unmapped) segment_.free(address, size_of(size_class) / granule_size);
}

}  // namespace hpe::core
