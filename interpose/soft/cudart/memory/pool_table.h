#pragma once

#include <driver_types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "hpe/node.h"
#include "interpose/soft/cudart/device/handle_table.h"
#include "interpose/soft/cudart/memory/memory_pool.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// The key of a pool that processes share: a random number with as many bytes as the data of an exported pointer. The
/// key of a pool is the same in all processes that share the pool. The exporting process combines the handle of each
/// pointer with the key of its pool, so that only processes that have imported the pool can read the handle.
class pool_key {
 public:
  /// Returns a new random key. Throws cudaErrorOperatingSystem.
  [[nodiscard]] static pool_key make();

  [[nodiscard]] cudaMemPoolPtrExportData combine(const hpeExport& handle) const;
  /// Returns the handle of an exported pointer. If the data was combined with the key of another pool, the result is
  /// not a valid handle, and hpeExportOpen fails.
  [[nodiscard]] hpeExport separate(const cudaMemPoolPtrExportData& data) const;

 private:
  std::array<unsigned char, sizeof(hpeExport)> bytes_{};
};

/// The memory pools of a process, and the pool to which each allocated block belongs. A destroyed pool continues to
/// exist until its blocks are freed. Thread safe. The functions throw `failure`.
class pool_table {
 public:
  /// The pools add all memory that they allocate to `memory`.
  pool_table(memory_table& memory, int devices);

  /// The program can share a pool with other processes if the pool has a key.
  cudaMemPool_t create(int device, std::size_t max_size, std::optional<pool_key> key);

  /// Creates a pool that represents a pool of another process. The new pool contains only memory whose pointers that
  /// process has exported.
  cudaMemPool_t import_from(int device, const pool_key& key);
  void destroy(cudaMemPool_t handle);  ///< throws cudaErrorInvalidValue for a default pool
  std::shared_ptr<memory_pool> find(cudaMemPool_t handle) const;

  /// key_of_shareable throws cudaErrorInvalidValue for a pool that cannot be shared, key_of_imported for a pool that
  /// was not imported.
  pool_key key_of_shareable(cudaMemPool_t handle) const;
  pool_key key_of_imported(cudaMemPool_t handle) const;
  pool_key key_of_block(const void* block) const;  ///< the key of the shareable pool that contains an allocated block

  cudaMemPool_t default_of(int device) const;
  cudaMemPool_t current_of(int device) const;
  void set_current(int device, cudaMemPool_t handle);

  void* allocate(std::shared_ptr<memory_pool> from, std::size_t bytes, cudart_stream& where);
  bool owns(const void* block) const;
  void free(void* block, cudart_stream& where);
  void free(void* block);  ///< frees a block that no queued work uses

  /// Set and return whether kernels on another device may use the memory of a pool.
  void set_access(cudaMemPool_t handle, int device, bool allowed);
  bool access(cudaMemPool_t handle, int device) const;

  void release_excess();   ///< frees the unused memory of the pools above their release thresholds
  void release_all();      ///< frees all unused memory of the pools
  void reset(int device);  ///< removes all pools of the device, including their blocks, and creates a new default pool

 private:
  struct registered_pool {
    std::shared_ptr<memory_pool> pool;
    // Contains a bit for each device; the pool's source stores these bits with each new block.
    std::shared_ptr<unsigned> access;
    std::optional<pool_key> key;  // set if processes share the pool
    bool is_imported = false;
  };

  cudaMemPool_t add(int device, std::size_t max_size, std::optional<pool_key> key) HPE_REQUIRES(mutex_);
  std::shared_ptr<memory_pool> owner_of(const void* block, bool forget);

  memory_table& memory_;
  mutable mutex mutex_;
  handle_table<cudaMemPool_t, registered_pool, cudaErrorInvalidValue> pools_;
  std::vector<cudaMemPool_t> defaults_ HPE_GUARDED_BY(mutex_);
  std::vector<cudaMemPool_t> current_ HPE_GUARDED_BY(mutex_);
  std::map<const void*, std::shared_ptr<memory_pool>> owners_
      HPE_GUARDED_BY(mutex_);  // the pool of each allocated block
};

}  // namespace hpe::cudart
