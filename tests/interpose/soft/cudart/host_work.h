#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "interpose/soft/cudart/graph/graph_operations.h"

namespace hpe::cudart::testing {

/// Creates host functions, and records the numbers of the functions in the order in which they run.
class journal {
 public:
  std::shared_ptr<const stream_operation> note(int number) {
    entries_.push_back(std::make_unique<entry>(entry{this, number}));
    cudaHostNodeParams parameters{};
    parameters.fn = [](void* data) {
      const auto& it = *static_cast<const entry*>(data);
      const std::scoped_lock lock(it.owner->mutex_);
      it.owner->seen_.push_back(it.number);
    };
    parameters.userData = entries_.back().get();
    return std::make_shared<host_operation>(parameters);
  }

  /// Returns the numbers of the functions that have run since the last call.
  std::vector<int> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(seen_, {});
  }

 private:
  struct entry {
    journal* owner;
    int number;
  };
  std::mutex mutex_;
  std::vector<int> seen_;
  std::vector<std::unique_ptr<entry>> entries_;
};

}  // namespace hpe::cudart::testing
