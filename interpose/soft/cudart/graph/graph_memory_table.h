#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/cudart/stream/stream_operation.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

class graph_memory_table;

/// Memory that a graph allocates in an allocation node. The memory exists from the creation of the node until no graph,
/// executable graph or launch contains this node or a node that frees the memory. Therefore a launch allocates and
/// frees no memory.
class graph_allocation {
 public:
  graph_allocation(graph_memory_table& table, void* base, std::size_t size, int device)
      : table_(table), base_(base), size_(size), device_(device) {}
  ~graph_allocation();
  graph_allocation(const graph_allocation&) = delete;
  graph_allocation& operator=(const graph_allocation&) = delete;

  void* base() const { return base_; }
  std::size_t size() const { return size_; }
  int device() const { return device_; }

 private:
  graph_memory_table& table_;
  void* const base_;
  const std::size_t size_;
  const int device_;
};

/// The memory that the allocation nodes of all graphs have allocated. Thread safe. The functions throw `failure` and
/// hpe::error.
class graph_memory_table {
 public:
  explicit graph_memory_table(memory_table& memory) : memory_(memory) {}

  std::shared_ptr<graph_allocation> allocate(std::size_t bytes, int device, unsigned access);
  /// Null if no graph has allocated memory at this address.
  std::shared_ptr<graph_allocation> find(const void* base) const;

  std::uint64_t bytes(int device) const;
  std::uint64_t most_bytes(int device) const;  ///< the largest value of bytes() since the last call of reset_most
  void reset_most(int device);

 private:
  friend class graph_allocation;
  void release(const graph_allocation& gone);

  struct amount {
    std::uint64_t now = 0;
    std::uint64_t most = 0;
  };

  memory_table& memory_;
  mutable mutex mutex_;
  std::map<const void*, std::weak_ptr<graph_allocation>> known_ HPE_GUARDED_BY(mutex_);
  std::map<int, amount> amounts_ HPE_GUARDED_BY(mutex_);
};

class alloc_operation final : public stream_operation {
 public:
  alloc_operation(cudaMemAllocNodeParams parameters, std::shared_ptr<graph_allocation> memory)
      : parameters_(parameters), memory_(std::move(memory)) {}
  const cudaMemAllocNodeParams& parameters() const { return parameters_; }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemAlloc; }
  cudaError_t prepare(int device, stream_task& out) const override;

 private:
  cudaMemAllocNodeParams parameters_;
  std::shared_ptr<graph_allocation> memory_;
};

class free_operation final : public stream_operation {
 public:
  explicit free_operation(std::shared_ptr<graph_allocation> memory) : memory_(std::move(memory)) {}
  void* address() const { return memory_->base(); }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeMemFree; }
  cudaError_t prepare(int device, stream_task& out) const override;

 private:
  std::shared_ptr<graph_allocation> memory_;
};

/// make_alloc returns the operation of an allocation node, and sets parameters.dptr to the address of the allocated
/// memory. make_free returns the operation of a node that frees the memory at an address.
std::shared_ptr<const stream_operation> make_alloc(cudaMemAllocNodeParams& parameters);
std::shared_ptr<const stream_operation> make_free(void* address);

}  // namespace hpe::cudart
