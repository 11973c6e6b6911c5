#pragma once

#include <driver_types.h>
#include <vector_types.h>

#include <map>

namespace hpe::cudart {

/// What a launch asks for beyond its shape, and a kernel node of a graph has. Of these, cooperative launches and
/// clusters change what runs on a soft device; the others are told back.
class launch_attributes {
 public:
  /// Those of a configuration; of several that are the same, the last counts. Throws cudaErrorInvalidValue for one that
  /// is missing.
  [[nodiscard]] static launch_attributes of(const cudaLaunchConfig_t* config);

  void set(cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue& value);
  /// Zeros for what was not set.
  [[nodiscard]] cudaLaunchAttributeValue get(cudaLaunchAttributeID attribute) const;

  [[nodiscard]] bool cooperative() const;
  /// In blocks; zeros where none is asked for.
  [[nodiscard]] dim3 cluster() const;
  [[nodiscard]] dim3 preferred_cluster() const;

 private:
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> values_;
};

}  // namespace hpe::cudart
