#include "runtime/coherence/region_table.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::coherence {

namespace {
constexpr std::size_t rest_before_reuse = 64;
}  // namespace

struct region_table::chunk {
  std::array<std::unique_ptr<region>, chunk_size> regions;
  std::array<std::uint32_t, chunk_size> next;  // for each number: its successor in the queue that contains it
};

region_table::region_table(unsigned lanes) : unused_(lanes), untouched_(lanes) {}
region_table::~region_table() = default;

region& region_table::take(unsigned lane) {
  const lock_guard lock(mutex_);
  lane %= unused_.size();
  const bool again = unused_[lane].length > rest_before_reuse;
  while (!again && untouched_[lane].length == 0) add_number();
  queue& from = again ? unused_[lane] : untouched_[lane];
  const std::uint32_t number = from.first;
  from.first = owned_[number / chunk_size]->next[number % chunk_size];
  --from.length;
  return at(number);
}

void region_table::put(queue& into, std::uint32_t number) noexcept {
  (into.length == 0 ? into.first : owned_[into.last / chunk_size]->next[into.last % chunk_size]) = number;
  into.last = number;
  ++into.length;
}

void region_table::add_number() {
  const std::uint32_t number = limit_.load(std::memory_order_relaxed);
  const std::size_t index = number / chunk_size;
  HPE_REQUIRE(index < chunk_count, HPE_ERROR_OUT_OF_MEMORY, "there are {} allocations already; more are not possible",
              chunk_count * chunk_size);
  if (owned_[index] == nullptr) {
    owned_[index] = std::make_unique<chunk>();
    chunks_[index].store(owned_[index].get(), std::memory_order_release);
  }
  owned_[index]->regions[number % chunk_size] = std::make_unique<region>(number, &anywhere_);
  limit_.store(number + 1, std::memory_order_release);
  put(untouched_[number % untouched_.size()], number);
}

void region_table::give_back(region& r) noexcept {
  const lock_guard lock(mutex_);
  put(unused_[r.id % unused_.size()], r.id);
}

void region_table::note_freed(freed_range range) noexcept {
  const lock_guard lock(mutex_);
  freed_[freed_count_++ % remembered] = range;
}

region& region_table::at(std::uint32_t number) const noexcept {
  return *chunks_[number / chunk_size].load(std::memory_order_acquire)->regions[number % chunk_size];
}

std::optional<region_table::freed_range> region_table::freed_at(const void* p) const {
  const lock_guard lock(mutex_);
  const auto* byte = static_cast<const std::byte*>(p);
  for (std::size_t n = 0; n < std::min(freed_count_, remembered); ++n) {
    const freed_range& range = freed_[(freed_count_ - 1 - n) % remembered];
    if (byte >= range.base && byte < range.base + range.bytes) return range;
  }
  return std::nullopt;
}

}  // namespace hpe::coherence
