#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cudart/stream/stream.h"

namespace hpe::cudart {

/// The allocator from which a pool gets its memory.
class memory_source {
 public:
  memory_source() = default;
  virtual ~memory_source() = default;
  memory_source(const memory_source&) = delete;
  memory_source& operator=(const memory_source&) = delete;

  virtual void* allocate(std::size_t bytes) = 0;  ///< null if there is no memory
  virtual void free(void* block) = 0;
};

/// Memory that is allocated and freed in stream order. A freed block can be reused at once in the stream that freed it,
/// and in other streams when that stream has reached the free. Blocks above the release threshold return to the source
/// when release_excess() finds them unused. Thread safe. Members throw failure.
class memory_pool {
 public:
  /// max_size 0: limited by the source only.
  memory_pool(std::unique_ptr<memory_source> source, int device, std::size_t max_size);
  ~memory_pool();  ///< all blocks must be free; waits for the streams that freed them
  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;

  int device() const { return device_; }

  /// Allocates for work that is queued in the stream after this call. Throws cudaErrorMemoryAllocation.
  void* allocate(std::size_t bytes, stream& where);

  /// Frees a block after the stream's work so far. Throws cudaErrorInvalidValue for a block that is not allocated here.
  void free(void* block, stream& where);
  void free(void* block);  ///< frees a block that no work uses any more

  std::size_t size_of(const void* block) const;
  void trim(std::size_t keep);  ///< returns free memory until at most `keep` bytes are reserved
  void release_excess();

  /// The value of an attribute: a number or a flag. Both throw cudaErrorInvalidValue for unknown attributes and invalid
  /// values.
  std::uint64_t attribute(cudaMemPoolAttr which) const;
  void set_attribute(cudaMemPoolAttr which, std::uint64_t value);

 private:
  struct free_block {
    void* base;
    std::size_t size;
    point since;           // reached when the stream has executed the free
    std::uint64_t stream;  // the stream that freed it; 0 if the program freed it without a stream
  };

  void* take_free(std::size_t bytes, const stream& where);  // these need the mutex
  void* take_new(std::size_t bytes);
  void give_back(std::size_t keep, bool wait);
  void put_free(void* block, point since, std::uint64_t stream);

  const std::unique_ptr<memory_source> source_;
  const int device_;
  const std::size_t max_size_;

  mutable std::mutex mutex_;
  std::map<const void*, std::size_t> used_blocks_;
  std::vector<free_block> free_blocks_;
  std::uint64_t used_ = 0;  // bytes
  std::uint64_t used_high_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t reserved_high_ = 0;
  std::uint64_t threshold_ = 0;
  bool follow_events_ = true;
  bool opportunistic_ = true;
  bool internal_dependencies_ = true;
};

}  // namespace hpe::cudart
