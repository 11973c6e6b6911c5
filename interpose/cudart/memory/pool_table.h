#pragma once

#include <driver_types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cudart/device/handle_table.h"
#include "interpose/cudart/memory/memory_table.h"
#include "interpose/cudart/memory/pool.h"

namespace hpe::cudart {

/// The memory pools of a process, and the pool of each block. A destroyed pool lives on until its blocks are freed.
/// Thread safe. Members throw failure.
class pool_table {
 public:
  /// Registers the memory of all pools in `memory`.
  pool_table(memory_table& memory, int devices);

  cudaMemPool_t create(int device, std::size_t max_size, bool is_shareable);

  /// A pool that stands for one of another process: it has only the memory that pointers of that process name.
  cudaMemPool_t import_from(int device);
  void destroy(cudaMemPool_t handle);  ///< cudaErrorInvalidValue for a default one
  std::shared_ptr<memory_pool> find(cudaMemPool_t handle) const;
  bool is_shareable(cudaMemPool_t handle) const;
  bool is_imported(cudaMemPool_t handle) const;
  bool is_in_shareable(const void* block) const;  ///< whether a block in use is of such a pool

  cudaMemPool_t default_of(int device) const;
  cudaMemPool_t current_of(int device) const;
  void set_current(int device, cudaMemPool_t handle);

  void* allocate(std::shared_ptr<memory_pool> from, std::size_t bytes, stream& where);
  bool owns(const void* block) const;
  void free(void* block, stream& where);
  void free(void* block);  ///< frees a block that no work uses any more

  /// Whether kernels on another device may use the memory of a pool.
  void set_access(cudaMemPool_t handle, int device, bool allowed);
  bool access(cudaMemPool_t handle, int device) const;

  void release_excess();   ///< returns free memory above the thresholds
  void release_all();      ///< returns all free memory
  void reset(int device);  ///< drops all pools of the device with their blocks, and makes a new default pool

 private:
  struct entry {
    std::shared_ptr<memory_pool> pool;
    std::shared_ptr<unsigned> access;  // a bit for each device; the pool's source stores it with new blocks
    bool is_shareable = false;         // with other processes
    bool is_imported = false;
  };

  cudaMemPool_t add(int device, std::size_t max_size, bool is_shareable);  // needs the mutex
  std::shared_ptr<memory_pool> owner_of(const void* block, bool forget);

  memory_table& memory_;
  mutable std::mutex mutex_;
  handle_table<cudaMemPool_t, entry, cudaErrorInvalidValue> pools_;
  std::vector<cudaMemPool_t> defaults_;
  std::vector<cudaMemPool_t> current_;
  std::map<const void*, std::shared_ptr<memory_pool>> owners_;  // for blocks in use
};

}  // namespace hpe::cudart
