#include "interpose/soft/cudart/graph/graph_condition.h"

#include <utility>

#include "hpe/hpe.h"
#include "interpose/soft/cudart/device/errors.h"

namespace hpe::cudart {

graph_condition::~graph_condition() { table_.release(value_); }

void graph_condition::begin_launch() const {
  if (is_set_by_launches_) *static_cast<volatile std::uint32_t*>(value_) = initial_;
}

void graph_condition::claim() { require(!std::exchange(is_claimed_, true), cudaErrorInvalidValue); }

std::shared_ptr<graph_condition> condition_table::make(unsigned initial, bool is_set_by_launches) {
  const lock_guard lock(mutex_);
  if (free_.empty()) {
    constexpr std::size_t bytes = 4096;
    void* made = nullptr;
    check(::hpeMallocHost(&made, bytes));
    // The memory belongs to no device, so cudaDeviceReset does not free it.
    memory_.add({.base = made, .size = bytes, .kind = allocation_kind::host, .device = -1});
    auto* const values = static_cast<std::uint32_t*>(made);
    for (std::size_t n = bytes / sizeof *values; n > 0; --n) free_.push_back(values + n - 1);
  }
  auto made = std::make_shared<graph_condition>(*this, free_.back(), initial, is_set_by_launches);
  free_.pop_back();
  known_[made->handle()] = made;
  return made;
}

std::shared_ptr<graph_condition> condition_table::find(cudaGraphConditionalHandle handle) const {
  const lock_guard lock(mutex_);
  const auto found = known_.find(handle);
  auto result = found == known_.end() ? nullptr : found->second.lock();
  require(result != nullptr, cudaErrorInvalidValue);
  return result;
}

void condition_table::release(std::uint32_t* value) {
  const lock_guard lock(mutex_);
  known_.erase(reinterpret_cast<cudaGraphConditionalHandle>(value));
  free_.push_back(value);
}

std::size_t conditional_operation::choose() const {
  const unsigned value = decides_->value();
  if (kind_ == cudaGraphCondTypeSwitch) return value;
  return value != 0 ? 0 : 1;  // 1 is the index of the else body; a node without an else body runs no body
}

}  // namespace hpe::cudart
