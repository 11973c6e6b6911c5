#pragma once

#include <driver_types.h>

#include <memory>

#include "interpose/soft/cudart/device/handle_table.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// A user object of CUDA, which graphs keep alive. The object's destructor function runs when the last reference is
/// released. The program, graphs, executable graphs and launches own references. Thread safe.
class user_object {
 public:
  user_object(void* value, cudaHostFn_t destroy, unsigned references);

  void retain(unsigned count);
  bool release(unsigned count);  ///< returns whether no reference is left; throws `failure` if there are fewer than
                                 ///< `count` references

  const std::shared_ptr<void>& value() const { return value_; }

 private:
  const std::shared_ptr<void> value_;
  mutex mutex_;
  unsigned references_ HPE_GUARDED_BY(mutex_);  // the number of references that the program owns
};

class user_object_table : public handle_table<cudaUserObject_t, user_object, cudaErrorInvalidValue> {
 public:
  /// Releases `count` references of the program; removes the handle when the program has no reference left. Returns the
  /// value of the object.
  std::shared_ptr<void> release(cudaUserObject_t handle, unsigned count);
};

}  // namespace hpe::cudart
