#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/graph/graph_operations.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

class condition_table;

/// The value that determines which body (graph) a conditional node runs. Kernels set the value through the condition's
/// handle, which is the address of the value.
class graph_condition {
 public:
  graph_condition(condition_table& table, std::uint32_t* value, unsigned initial, bool is_set_by_launches)
      : table_(table), value_(value), initial_(initial), is_set_by_launches_(is_set_by_launches) {}
  ~graph_condition();
  graph_condition(const graph_condition&) = delete;
  graph_condition& operator=(const graph_condition&) = delete;

  cudaGraphConditionalHandle handle() const { return reinterpret_cast<cudaGraphConditionalHandle>(value_); }
  unsigned value() const { return *static_cast<const volatile std::uint32_t*>(value_); }
  void begin_launch() const;  ///< sets the value to the initial value if is_set_by_launches is true
  void claim();               ///< to be called for the condition's node; a second call throws cudaErrorInvalidValue

 private:
  condition_table& table_;
  std::uint32_t* const value_;
  const unsigned initial_;
  const bool is_set_by_launches_;
  bool is_claimed_ = false;
};

/// The conditions of a process, whose values are in host memory that all devices can use. Thread safe. The functions
/// throw `failure` and hpe::error.
class condition_table {
 public:
  explicit condition_table(memory_table& memory) : memory_(memory) {}

  std::shared_ptr<graph_condition> make(unsigned initial, bool is_set_by_launches);
  std::shared_ptr<graph_condition> find(cudaGraphConditionalHandle handle) const;

 private:
  friend class graph_condition;
  void release(std::uint32_t* value);

  memory_table& memory_;
  mutable mutex mutex_;
  std::vector<std::uint32_t*> free_ HPE_GUARDED_BY(mutex_);
  std::map<cudaGraphConditionalHandle, std::weak_ptr<graph_condition>> known_ HPE_GUARDED_BY(mutex_);
};

class conditional_operation final : public branch_operation {
 public:
  conditional_operation(std::shared_ptr<graph_condition> decides, cudaGraphConditionalNodeType kind)
      : decides_(std::move(decides)), kind_(kind) {}

  void begin_launch() const override { decides_->begin_launch(); }
  std::size_t choose() const override;
  bool is_loop() const noexcept override { return kind_ == cudaGraphCondTypeWhile; }

 private:
  const std::shared_ptr<graph_condition> decides_;
  const cudaGraphConditionalNodeType kind_;
};

}  // namespace hpe::cudart
