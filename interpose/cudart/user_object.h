#pragma once

#include <driver_types.h>

#include <memory>
#include <mutex>

#include "interpose/cudart/handle_table.h"

namespace hpe::cudart {

/// Something of the program's that graphs keep alive. Its destructor function runs when the last reference is gone:
/// those of the program, of graphs, and of what was made of them. Thread safe.
class user_object {
 public:
  user_object(void* value, cudaHostFn_t destroy, unsigned references);

  void retain(unsigned count);
  bool release(unsigned count);  ///< true if the program has no reference left; throws failure for more than it has

  const std::shared_ptr<void>& value() const { return value_; }

 private:
  const std::shared_ptr<void> value_;
  std::mutex mutex_;
  unsigned references_;  // of the program
};

class user_object_table : public handle_table<cudaUserObject_t, user_object, cudaErrorInvalidValue> {
 public:
  /// Takes references from the program, and the handle with the last one. The value is for a graph to keep.
  std::shared_ptr<void> release(cudaUserObject_t handle, unsigned count);
};

}  // namespace hpe::cudart
