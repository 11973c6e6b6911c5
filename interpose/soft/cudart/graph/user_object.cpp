#include "interpose/soft/cudart/graph/user_object.h"

#include <cuda_runtime_api.h>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/graph/graph.h"

namespace hpe::cudart {

user_object::user_object(void* value, cudaHostFn_t destroy, unsigned references)
    : value_(value, destroy), references_(references) {}

void user_object::retain(unsigned count) {
  const lock_guard lock(mutex_);
  references_ += count;
}

bool user_object::release(unsigned count) {
  const lock_guard lock(mutex_);
  require(count <= references_, cudaErrorInvalidValue);
  references_ -= count;
  return references_ == 0;
}

std::shared_ptr<void> user_object_table::release(cudaUserObject_t handle, unsigned count) {
  const auto it = find(handle);
  if (it->release(count)) destroy(handle);
  return it->value();
}

}  // namespace hpe::cudart

using namespace hpe::cudart;

extern "C" {

cudaError_t CUDARTAPI cudaUserObjectCreate(cudaUserObject_t* made, void* value, cudaHostFn_t destroy,
                                           unsigned references, unsigned flags) {
  return api_call(__func__, [&] {
    require(made != nullptr && destroy != nullptr && references != 0 && flags == cudaUserObjectNoDestructorSync,
            cudaErrorInvalidValue);
    *made = process().user_objects().adopt(std::make_shared<user_object>(value, destroy, references));
  });
}

cudaError_t CUDARTAPI cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return api_call(__func__, [&] {
    require(count != 0, cudaErrorInvalidValue);
    process().user_objects().find(object)->retain(count);
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
    keeper.keep(object, process().user_objects().release(object, flags == cudaGraphUserObjectMove ? count : 0), count);
  });
}

cudaError_t CUDARTAPI cudaGraphReleaseUserObject(cudaGraph_t handle, cudaUserObject_t object, unsigned count) {
  return api_call(__func__, [&] { process().graphs().find(handle).let_go(object, count); });
}
}
