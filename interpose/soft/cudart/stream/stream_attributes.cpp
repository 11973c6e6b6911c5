#include "interpose/soft/cudart/stream/stream_attributes.h"

namespace hpe::cudart {
namespace {

bool is_of_streams(cudaStreamAttrID attribute) {
  switch (attribute) {
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain: return true;
    default: return false;
  }
}

}  // namespace

bool stream_attributes::set(cudaStreamAttrID attribute, const cudaStreamAttrValue& value) {
  if (!is_of_streams(attribute)) return false;
  const std::scoped_lock lock(mutex_);
  values_[attribute] = value;
  return true;
}

bool stream_attributes::get(cudaStreamAttrID attribute, cudaStreamAttrValue& value) const {
  if (!is_of_streams(attribute)) return false;
  value = {};
  if (attribute == cudaLaunchAttributeSynchronizationPolicy) value.syncPolicy = cudaSyncPolicyAuto;
  const std::scoped_lock lock(mutex_);
  if (const auto found = values_.find(attribute); found != values_.end()) value = found->second;
  return true;
}

void stream_attributes::copy_from(const stream_attributes& other) {
  if (this == &other) return;
  const std::scoped_lock lock(mutex_, other.mutex_);
  values_ = other.values_;
}

}  // namespace hpe::cudart
