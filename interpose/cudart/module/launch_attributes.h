#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <map>

namespace hpe::cudart {

/// The attributes of a launch or of a kernel node. Only cooperative launches and clusters change how a soft device runs
/// the kernel; the other attributes are stored and returned.
class launch_attributes {
 public:
  /// The attributes of a launch configuration; the last of several with the same id counts. Throws
  /// cudaErrorInvalidValue if the configuration or its list is null.
  [[nodiscard]] static launch_attributes of(const cudaLaunchConfig_t* config);

  /// Of a cooperative launch without further attributes.
  [[nodiscard]] static launch_attributes of_cooperative_launch();

  void set(cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue& value);
  /// Zeros if the attribute was not set.
  [[nodiscard]] cudaLaunchAttributeValue get(cudaLaunchAttributeID attribute) const;

  [[nodiscard]] bool cooperative() const;
  /// In blocks; zeros if not set.
  [[nodiscard]] dim3 cluster() const;
  [[nodiscard]] dim3 preferred_cluster() const;

 private:
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> values_;
};

}  // namespace hpe::cudart
