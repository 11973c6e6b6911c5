#include "runtime/coherence/region_table.h"

#include "runtime/base/error.h"

namespace hpe::coherence {

namespace {
constexpr std::size_t remembered = 256;
constexpr std::size_t rest_before_reuse = 64;
}  // namespace

struct region_table::chunk {
  std::array<std::unique_ptr<region>, chunk_size> regions;
};

region_table::region_table(unsigned lanes) : unused_(lanes), untouched_(lanes) {}
region_table::~region_table() = default;

region& region_table::take(unsigned lane) {
  const std::lock_guard lock(mutex_);
  lane %= unused_.size();
  std::deque<std::uint32_t>& used_before = unused_[lane];
  const bool again = used_before.size() > rest_before_reuse;
  while (!again && untouched_[lane].empty()) add_number();
  std::deque<std::uint32_t>& from = again ? used_before : untouched_[lane];
  region& r = at(from.front());
  from.pop_front();
  return r;
}

void region_table::add_number() {
  const std::uint32_t number = limit_.load(std::memory_order_relaxed);
  const std::size_t index = number / chunk_size;
  HPE_REQUIRE(index < chunk_count, HPE_ERROR_OUT_OF_MEMORY, "there are {} allocations, more than hpe can number",
              chunk_count * chunk_size);
  if (owned_[index] == nullptr) {
    owned_[index] = std::make_unique<chunk>();
    chunks_[index].store(owned_[index].get(), std::memory_order_release);
  }
  owned_[index]->regions[number % chunk_size] = std::make_unique<region>(number);
  limit_.store(number + 1, std::memory_order_release);
  untouched_[number % untouched_.size()].push_back(number);
}

void region_table::give_back(region& r) {
  const std::lock_guard lock(mutex_);
  unused_[r.id % unused_.size()].push_back(r.id);
  freed_.push_back({r.is.base, r.is.bytes});
  if (freed_.size() > remembered) freed_.pop_front();
}

region& region_table::at(std::uint32_t number) const noexcept {
  return *chunks_[number / chunk_size].load(std::memory_order_acquire)->regions[number % chunk_size];
}

std::optional<region_table::freed_range> region_table::freed_at(const void* p) const {
  const std::lock_guard lock(mutex_);
  const auto* byte = static_cast<const std::byte*>(p);
  for (auto at = freed_.rbegin(); at != freed_.rend(); ++at)
    if (byte >= at->base && byte < at->base + at->bytes) return *at;
  return std::nullopt;
}

}  // namespace hpe::coherence
