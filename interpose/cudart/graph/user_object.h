#pragma once

#include <driver_types.h>

#include <memory>
#include <mutex>

#include "interpose/cudart/device/handle_table.h"

namespace hpe::cudart {

/// A user object, which graphs keep alive. Its destructor function runs when the last reference is gone: those of the
/// program, of graphs, and of executable graphs and launches. Thread safe.
class user_object {
 public:
  user_object(void* value, cudaHostFn_t destroy, unsigned references);

  void retain(unsigned count);
  bool release(unsigned count);  ///< true if the program has no reference left; throws failure if it has too few

  const std::shared_ptr<void>& value() const { return value_; }

 private:
  const std::shared_ptr<void> value_;
  std::mutex mutex_;
  unsigned references_;  // held by the program
};

class user_object_table : public handle_table<cudaUserObject_t, user_object, cudaErrorInvalidValue> {
 public:
  /// Releases references of the program; the last one also destroys the handle. Returns the value.
  std::shared_ptr<void> release(cudaUserObject_t handle, unsigned count);
};

}  // namespace hpe::cudart
