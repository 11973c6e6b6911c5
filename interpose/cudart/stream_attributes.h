#pragma once

#include <driver_types.h>

#include <map>
#include <mutex>

namespace hpe::cudart {

/// What a program sets on a stream for the hardware's sake. Soft devices make nothing of it; it is told back. Thread
/// safe.
class stream_attributes {
 public:
  /// False for an attribute that streams do not have.
  bool set(cudaStreamAttrID attribute, const cudaStreamAttrValue& value);
  bool get(cudaStreamAttrID attribute, cudaStreamAttrValue& value) const;
  void copy_from(const stream_attributes& other);

 private:
  mutable std::mutex mutex_;
  std::map<cudaStreamAttrID, cudaStreamAttrValue> values_;
};

}  // namespace hpe::cudart
