#include "interpose/soft/cudart/memory/pool_table.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "hpe/announce.h"
#include "hpe/hpe.h"
#include "interpose/soft/cudart/device/failure.h"
#include "interpose/soft/cudart/spread/soft_spreading.h"

namespace hpe::cudart {
namespace {

/// Allocates the memory of a soft device. The memory table contains all blocks, used and unused ones.
class device_source final : public memory_source {
 public:
  device_source(memory_table& memory, int device, std::shared_ptr<const unsigned> access)
      : memory_(memory), device_(device), access_(std::move(access)) {}

  void* allocate(std::size_t bytes) override {
    void* made = nullptr;
    if (allocate_device_memory(&made, bytes, device_) != HPE_SUCCESS) return nullptr;
    memory_.add({.base = made, .size = bytes, .kind = allocation_kind::pool, .device = device_, .flags = *access_});
    return made;
  }

  void free(void* block) override {
    // If remove() finds no allocation, cudaDeviceReset has freed the block.
    if (memory_.remove(block)) ::hpeFreeFinished(block);
  }

 private:
  memory_table& memory_;
  const int device_;
  const std::shared_ptr<const unsigned> access_;
};

/// The source for an imported pool, which cannot allocate memory: only the process that created the pool can.
class no_source final : public memory_source {
 public:
  void* allocate(std::size_t /*bytes*/) override {
    throw failure(
        cudaErrorNotPermitted,
        "this pool was imported from another process; only the process that created the pool can allocate its memory");
  }
  void free(void* /*block*/) override {}
};

}  // namespace

pool_key pool_key::make() {
  pool_key made;
  const auto size = static_cast<ssize_t>(made.bytes_.size());
  require(::getrandom(made.bytes_.data(), made.bytes_.size(), 0) == size, cudaErrorOperatingSystem);
  return made;
}

cudaMemPoolPtrExportData pool_key::combine(const hpeExport& handle) const {
  cudaMemPoolPtrExportData data{};
  static_assert(sizeof data.reserved == sizeof handle.bytes);
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    data.reserved[i] = static_cast<unsigned char>(handle.bytes[i] ^ bytes_[i]);
  return data;
}

hpeExport pool_key::separate(const cudaMemPoolPtrExportData& data) const {
  hpeExport handle{};
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    handle.bytes[i] = static_cast<unsigned char>(data.reserved[i] ^ bytes_[i]);
  return handle;
}

pool_table::pool_table(memory_table& memory, int devices) : memory_(memory) {
  for (int device = 0; device < devices; ++device) defaults_.push_back(add(device, 0, std::nullopt));
  current_ = defaults_;
}

cudaMemPool_t pool_table::add(int device, std::size_t max_size, std::optional<pool_key> key) {
  const auto access = std::make_shared<unsigned>(0);
  auto made = std::make_shared<memory_pool>(std::make_unique<device_source>(memory_, device, access), device, max_size);
  return pools_.adopt(std::make_shared<registered_pool>(registered_pool{std::move(made), access, key}));
}

cudaMemPool_t pool_table::create(int device, std::size_t max_size, std::optional<pool_key> key) {
  const lock_guard lock(mutex_);
  return add(device, max_size, key);
}

cudaMemPool_t pool_table::import_from(int device, const pool_key& key) {
  const lock_guard lock(mutex_);
  auto made = std::make_shared<memory_pool>(std::make_unique<no_source>(), device, 0);
  return pools_.adopt(
      std::make_shared<registered_pool>(registered_pool{std::move(made), std::make_shared<unsigned>(0), key, true}));
}

pool_key pool_table::key_of_shareable(cudaMemPool_t handle) const {
  const auto found = pools_.find(handle);
  require(found->key.has_value() && !found->is_imported, cudaErrorInvalidValue);
  return *found->key;
}

pool_key pool_table::key_of_imported(cudaMemPool_t handle) const {
  const auto found = pools_.find(handle);
  require(found->is_imported, cudaErrorInvalidValue);
  return *found->key;
}

pool_key pool_table::key_of_block(const void* block) const {
  const lock_guard lock(mutex_);
  const auto owner = owners_.find(block);
  if (owner != owners_.end())
    for (const auto& each : pools_.all())
      if (each->pool == owner->second && each->key) return *each->key;
  throw failure(cudaErrorInvalidValue);
}

void pool_table::destroy(cudaMemPool_t handle) {
  // Destroyed after the lock is released, because the pool's destructor may wait for streams.
  std::shared_ptr<registered_pool> gone;
  const lock_guard lock(mutex_);
  require(std::find(defaults_.begin(), defaults_.end(), handle) == defaults_.end(), cudaErrorInvalidValue);
  gone = pools_.destroy(handle);
  const int device = gone->pool->device();
  if (current_[device] == handle) current_[device] = defaults_[device];
}

std::shared_ptr<memory_pool> pool_table::find(cudaMemPool_t handle) const { return pools_.find(handle)->pool; }

cudaMemPool_t pool_table::default_of(int device) const {
  const lock_guard lock(mutex_);
  return defaults_.at(device);
}

cudaMemPool_t pool_table::current_of(int device) const {
  const lock_guard lock(mutex_);
  return current_.at(device);
}

void pool_table::set_current(int device, cudaMemPool_t handle) {
  const lock_guard lock(mutex_);
  require(pools_.find(handle)->pool->device() == device, cudaErrorInvalidValue);
  current_.at(device) = handle;
}

void* pool_table::allocate(std::shared_ptr<memory_pool> from, std::size_t bytes, cudart_stream& where) {
  void* const made = from->allocate(bytes, where);
  const lock_guard lock(mutex_);
  owners_[made] = std::move(from);
  return made;
}

bool pool_table::owns(const void* block) const {
  const lock_guard lock(mutex_);
  return owners_.count(block) != 0;
}

std::shared_ptr<memory_pool> pool_table::owner_of(const void* block, bool forget) {
  const lock_guard lock(mutex_);
  const auto found = owners_.find(block);
  require(found != owners_.end(), cudaErrorInvalidValue);
  auto result = found->second;
  if (forget) owners_.erase(found);
  return result;
}

void pool_table::free(void* block, cudart_stream& where) { owner_of(block, true)->free(block, where); }
void pool_table::free(void* block) { owner_of(block, true)->free(block); }

void pool_table::set_access(cudaMemPool_t handle, int device, bool allowed) {
  const lock_guard lock(mutex_);
  const auto it = pools_.find(handle);
  const unsigned bit = 1U << device;
  *it->access = allowed ? *it->access | bit : *it->access & ~bit;
  for (const auto& [block, pool] : owners_) {
    if (pool != it->pool) continue;
    if (auto known = memory_.find(block)) {
      known->flags = *it->access;
      memory_.add(*known);
    }
  }
}

bool pool_table::access(cudaMemPool_t handle, int device) const {
  const lock_guard lock(mutex_);
  const auto it = pools_.find(handle);
  return it->pool->device() == device || (*it->access >> device & 1U) != 0;
}

void pool_table::release_excess() {
  for (const auto& each : pools_.all()) each->pool->release_excess();
}

void pool_table::release_all() {
  for (const auto& each : pools_.all()) each->pool->trim(0);
}

void pool_table::reset(int device) {
  std::vector<std::shared_ptr<registered_pool>> gone;  // destroyed after the lock is released
  const lock_guard lock(mutex_);
  std::erase_if(owners_, [&](const auto& each) { return each.second->device() == device; });
  gone = pools_.take_if([&](const registered_pool& each) { return each.pool->device() == device; });
  current_[device] = defaults_[device] = add(device, 0, std::nullopt);
}

}  // namespace hpe::cudart
