#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/cudart/stream.h"

namespace hpe::cudart {

/// Where a pool gets memory from.
class memory_source {
 public:
  memory_source() = default;
  virtual ~memory_source() = default;
  memory_source(const memory_source&) = delete;
  memory_source& operator=(const memory_source&) = delete;

  virtual void* allocate(std::size_t bytes) = 0;  ///< null where there is none
  virtual void free(void* block) = 0;
};

/// Memory that is allocated and freed in the order of streams. A block that was freed serves again at once in the
/// stream that freed it, and in others when they have come that far. What is above the release threshold goes back to
/// the source when release_excess() finds that nobody uses it. Thread safe. Members throw failure.
class memory_pool {
 public:
  /// max_size 0: no limit but the source's.
  memory_pool(std::unique_ptr<memory_source> source, int device, std::size_t max_size);
  ~memory_pool();  ///< all blocks are free, and their streams have come that far
  memory_pool(const memory_pool&) = delete;
  memory_pool& operator=(const memory_pool&) = delete;

  int device() const { return device_; }

  /// For work that is queued behind this in the stream. cudaErrorMemoryAllocation.
  void* allocate(std::size_t bytes, stream& where);

  /// After the stream's work so far. cudaErrorInvalidValue for what is not allocated here.
  void free(void* block, stream& where);
  void free(void* block);  ///< by a program whose work with it has finished

  std::size_t size_of(const void* block) const;
  void trim(std::size_t keep);  ///< gives free memory back until no more than keep is reserved
  void release_excess();

  /// The value of an attribute: a number, or a flag. cudaErrorInvalidValue for unknown ones and values they cannot
  /// have.
  std::uint64_t attribute(cudaMemPoolAttr which) const;
  void set_attribute(cudaMemPoolAttr which, std::uint64_t value);

 private:
  struct free_block {
    void* base;
    std::size_t size;
    point since;           // reached when the work before the free has finished
    std::uint64_t stream;  // where it was freed; 0: by the program itself
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
