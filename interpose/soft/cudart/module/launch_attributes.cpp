#include "interpose/soft/cudart/module/launch_attributes.h"

#include "interpose/soft/cudart/device/failure.h"

namespace hpe::cudart {

launch_attributes launch_attributes::of(const cudaLaunchConfig_t* config) {
  require(config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr), cudaErrorInvalidValue);
  launch_attributes result;
  for (unsigned i = 0; i < config->numAttrs; ++i) result.set(config->attrs[i].id, config->attrs[i].val);
  return result;
}

launch_attributes launch_attributes::of_cooperative_launch() {
  launch_attributes result;
  cudaLaunchAttributeValue yes{};
  yes.cooperative = 1;
  result.set(cudaLaunchAttributeCooperative, yes);
  return result;
}

void launch_attributes::set(cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue& value) {
  if (attribute != cudaLaunchAttributeIgnore) values_[attribute] = value;
}

cudaLaunchAttributeValue launch_attributes::get(cudaLaunchAttributeID attribute) const {
  const auto found = values_.find(attribute);
  return found == values_.end() ? cudaLaunchAttributeValue{} : found->second;
}

bool launch_attributes::cooperative() const { return get(cudaLaunchAttributeCooperative).cooperative != 0; }

dim3 launch_attributes::cluster() const {
  const auto value = get(cudaLaunchAttributeClusterDimension).clusterDim;
  return {value.x, value.y, value.z};
}

dim3 launch_attributes::preferred_cluster() const {
  const auto value = get(cudaLaunchAttributePreferredClusterDimension).preferredClusterDim;
  return {value.x, value.y, value.z};
}

}  // namespace hpe::cudart
