#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "interpose/soft/cudart/stream/cudart_stream.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// The allocator for a pool's memory.
class memory_source {
 public:
  memory_source() = default;
  virtual ~memory_source() = default;
  memory_source(const memory_source&) = delete;
  memory_source& operator=(const memory_source&) = delete;

  virtual void* allocate(std::size_t bytes) = 0;  ///< null if there is not enough memory
  virtual void free(void* block) = 0;
};

/// A pool of memory that the program allocates and frees in stream order. After a block is freed on a stream, the same
/// stream can reuse the block at once; other streams can reuse it when the first stream has reached the position of the
/// free, if cudaMemPoolReuseAllowOpportunistic is set. release_excess() returns free blocks to the source while the
/// pool has more bytes than the release threshold. Thread safe. The functions throw `failure`.
class memory_pool {
 public:
  /// `max_size` is the limit in bytes; if it is 0, only the source limits the size of the pool.
  memory_pool(std::unique_ptr<memory_source> source, int device, std::size_t max_size);
  ~memory_pool();  ///< all blocks must have been freed; waits for the streams that freed them
  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;

  int device() const { return device_; }

  /// Allocates a block for work that is queued on the stream after this call. Throws cudaErrorMemoryAllocation.
  void* allocate(std::size_t bytes, cudart_stream& where);

  /// Frees a block after the work that is queued on the stream so far. Throws cudaErrorInvalidValue for an address that
  /// is not an allocated block of this pool.
  void free(void* block, cudart_stream& where);
  void free(void* block);  ///< frees a block that no queued work uses

  /// Returns free blocks to the source, except blocks that queued work uses, until at most `keep` bytes are reserved.
  void trim(std::size_t keep);
  void release_excess();

  /// Return and set the value of an attribute, which is a number or a flag. Both functions throw cudaErrorInvalidValue
  /// for unknown attributes and invalid values.
  std::uint64_t attribute(cudaMemPoolAttr which) const;
  void set_attribute(cudaMemPoolAttr which, std::uint64_t value);

 private:
  struct used_block {
    std::size_t size;
    std::size_t requested;  // at most `size`; a reused block may be larger than the request
  };
  struct free_block {
    void* base;
    std::size_t size;
    point since;           // reached when the stream has done all work that was queued before the free
    std::uint64_t stream;  // the id of the stream on which the block was freed, or 0
  };

  void* take_free(std::size_t bytes, const cudart_stream& where) HPE_REQUIRES(mutex_);
  void* take_new(std::size_t bytes) HPE_REQUIRES(mutex_);
  void give_back(std::size_t keep, bool wait) HPE_REQUIRES(mutex_);
  void put_free(void* block, point since, std::uint64_t stream) HPE_REQUIRES(mutex_);

  const std::unique_ptr<memory_source> source_;
  const int device_;
  const std::size_t max_size_;

  mutable mutex mutex_;
  std::map<const void*, used_block> used_blocks_ HPE_GUARDED_BY(mutex_);
  std::vector<free_block> free_blocks_ HPE_GUARDED_BY(mutex_);
  std::uint64_t used_ HPE_GUARDED_BY(mutex_) = 0;  // the number of requested bytes in used_blocks_
  std::uint64_t used_high_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t reserved_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t reserved_high_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t threshold_ HPE_GUARDED_BY(mutex_) = 0;
  bool follow_events_ HPE_GUARDED_BY(mutex_) = true;
  bool opportunistic_ HPE_GUARDED_BY(mutex_) = true;
  bool internal_dependencies_ HPE_GUARDED_BY(mutex_) = true;
};

}  // namespace hpe::cudart
