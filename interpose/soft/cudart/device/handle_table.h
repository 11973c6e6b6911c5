#pragma once

#include <driver_types.h>

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/device/failure.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

/// Maps the program's handles to objects. A handle is valid until the program destroys it; the object exists until its
/// last reference is released. The table releases its lock before it destroys removed objects, because their
/// destructors may wait or call functions of the program. Thread safe.
template <class Handle, class Object, cudaError_t unknown_handle>
class handle_table {
 public:
  using pointer = std::shared_ptr<Object>;

  void enter(Handle handle, pointer made) {
    const lock_guard lock(mutex_);
    std::swap(objects_[handle], made);  // the parameter destroys the previous object after the lock is released
  }

  /// Adds an object and returns its handle, which is the object's address. Most kinds of handles are addresses.
  Handle adopt(pointer made) {
    const auto handle = reinterpret_cast<Handle>(made.get());
    enter(handle, std::move(made));
    return handle;
  }

  /// find() and destroy() throw failure(unknown_handle) for a handle that was never returned to the program or has been
  /// destroyed.
  pointer find(Handle handle) const {
    auto found = find_or_null(handle);
    require(found != nullptr, unknown_handle);
    return found;
  }

  pointer find_or_null(Handle handle) const {
    const shared_lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  /// If several threads destroy the same handle, the call of one thread returns the object, and the calls of the other
  /// threads throw failure(unknown_handle).
  pointer destroy(Handle handle) {
    auto gone = take_or_null(handle);
    require(gone != nullptr, unknown_handle);
    return gone;
  }

  pointer take_or_null(Handle handle) {
    const lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto gone = std::move(found->second);
    objects_.erase(found);
    return gone;
  }

  /// Removes and returns all objects for which choice(object) is true. `choice` must not use the table.
  template <class Choice>
  std::vector<pointer> take_if(const Choice& choice) {
    std::vector<pointer> gone;
    const lock_guard lock(mutex_);
    for (auto each = objects_.begin(); each != objects_.end();) {
      if (choice(*each->second)) {
        gone.push_back(std::move(each->second));
        each = objects_.erase(each);
      } else {
        ++each;
      }
    }
    return gone;
  }

  std::vector<pointer> all() const {
    std::vector<pointer> result;
    const shared_lock_guard lock(mutex_);
    for (const auto& [_, each] : objects_) result.push_back(each);
    return result;
  }

 private:
  mutable shared_mutex mutex_;
  std::unordered_map<Handle, pointer> objects_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cudart
