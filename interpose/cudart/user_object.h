#pragma once

#include <driver_types.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "interpose/cudart/graph.h"

namespace hpe::cudart {

/// Something of the program's that graphs keep alive. Its destructor function runs when the last reference is gone:
/// those of the program, of graphs, and of what was made of them.
class user_object {
 public:
  user_object(void* value, cudaHostFn_t destroy, unsigned references);

  void retain(unsigned count) { references_ += count; }
  bool release(unsigned count);  ///< true if the program has no reference left; throws failure for more than it has

  const std::shared_ptr<void>& value() const { return value_; }

 private:
  std::shared_ptr<void> value_;
  unsigned references_;  // of the program
};

/// From handles to user objects. Thread safe. Members throw failure(cudaErrorInvalidValue).
class user_object_table {
 public:
  cudaUserObject_t create(void* value, cudaHostFn_t destroy, unsigned references);
  void retain(cudaUserObject_t handle, unsigned count);
  void release(cudaUserObject_t handle, unsigned count);

  /// For a graph to keep, and the number of references that it takes over from the program instead of new ones.
  std::shared_ptr<void> share(cudaUserObject_t handle, unsigned taken_over);

 private:
  user_object& find(cudaUserObject_t handle);  // needs the mutex

  std::mutex mutex_;
  std::unordered_map<cudaUserObject_t, std::unique_ptr<user_object>> objects_;
};

}  // namespace hpe::cudart
