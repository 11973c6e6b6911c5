#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <map>

namespace hpe::cudart {

/// The attributes of a launch or of a kernel node. Only the attributes for cooperative launches and clusters change how
/// a soft device runs the kernel; the other attributes are stored and returned without effect.
class launch_attributes {
 public:
  /// Returns the attributes of a launch configuration; if several attributes have the same id, the last one is used.
  /// Throws cudaErrorInvalidValue if the configuration or its list is null.
  [[nodiscard]] static launch_attributes of(const cudaLaunchConfig_t* config);

  /// Returns the attributes of a cooperative launch that has no other attributes.
  [[nodiscard]] static launch_attributes of_cooperative_launch();

  void set(cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue& value);
  /// Returns the value of an attribute; zeros if it was not set.
  [[nodiscard]] cudaLaunchAttributeValue get(cudaLaunchAttributeID attribute) const;

  [[nodiscard]] bool cooperative() const;
  /// Returns the cluster size in blocks; zeros if it was not set.
  [[nodiscard]] dim3 cluster() const;
  [[nodiscard]] dim3 preferred_cluster() const;

 private:
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> values_;
};

}  // namespace hpe::cudart
