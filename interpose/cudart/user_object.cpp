#include "interpose/cudart/user_object.h"

#include <cuda_runtime_api.h>

#include "interpose/cudart/context.h"
#include "interpose/cudart/errors.h"

namespace hpe::cudart {

user_object::user_object(void* value, cudaHostFn_t destroy, unsigned references)
    : value_(value, destroy), references_(references) {}

bool user_object::release(unsigned count) {
  require(count <= references_, cudaErrorInvalidValue);
  references_ -= count;
  return references_ == 0;
}

cudaUserObject_t user_object_table::create(void* value, cudaHostFn_t destroy, unsigned references) {
  auto made = std::make_unique<user_object>(value, destroy, references);
  auto* const handle = reinterpret_cast<cudaUserObject_t>(made.get());
  const std::scoped_lock lock(mutex_);
  objects_[handle] = std::move(made);
  return handle;
}

user_object& user_object_table::find(cudaUserObject_t handle) {
  const auto found = objects_.find(handle);
  require(found != objects_.end(), cudaErrorInvalidValue);
  return *found->second;
}

void user_object_table::retain(cudaUserObject_t handle, unsigned count) {
  const std::scoped_lock lock(mutex_);
  find(handle).retain(count);
}

void user_object_table::release(cudaUserObject_t handle, unsigned count) {
  std::shared_ptr<void> last;  // the program's function is called without the lock
  const std::scoped_lock lock(mutex_);
  user_object& it = find(handle);
  last = it.value();
  if (it.release(count)) objects_.erase(handle);
}

std::shared_ptr<void> user_object_table::share(cudaUserObject_t handle, unsigned taken_over) {
  const std::scoped_lock lock(mutex_);
  user_object& it = find(handle);
  auto result = it.value();
  if (it.release(taken_over)) objects_.erase(handle);
  return result;
}

}  // namespace hpe::cudart

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaUserObjectCreate(cudaUserObject_t* made, void* value, cudaHostFn_t destroy,
                                           unsigned references, unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr && destroy != nullptr && references != 0 && flags == cudaUserObjectNoDestructorSync,
            cudaErrorInvalidValue);
    *made = process().user_objects().create(value, destroy, references);
  });
}

cudaError_t CUDARTAPI cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return api_call(__func__, [&] {
    require(count != 0, cudaErrorInvalidValue);
    process().user_objects().retain(object, count);
  });
}

cudaError_t CUDARTAPI cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return api_call(__func__, [&] {
    require(count != 0, cudaErrorInvalidValue);
    process().user_objects().release(object, count);
  });
}

cudaError_t CUDARTAPI cudaGraphRetainUserObject(cudaGraph_t handle, cudaUserObject_t object, unsigned count,
                                                unsigned flags) {
  return api_call(__func__, [&] {
    require(count != 0 && (flags & ~unsigned{cudaGraphUserObjectMove}) == 0, cudaErrorInvalidValue);
    graph& keeper = process().graphs().find(handle);
    keeper.keep(object, process().user_objects().share(object, flags == cudaGraphUserObjectMove ? count : 0), count);
  });
}

cudaError_t CUDARTAPI cudaGraphReleaseUserObject(cudaGraph_t handle, cudaUserObject_t object, unsigned count) {
  return api_call(__func__, [&] { process().graphs().find(handle).let_go(object, count); });
}
}
