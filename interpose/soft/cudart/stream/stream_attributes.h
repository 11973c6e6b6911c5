#pragma once

#include <driver_types.h>

#include <map>
#include <mutex>

namespace hpe::cudart {

/// Stream attributes, which are hints. Soft devices store and return the attributes, but do not use them. Thread safe.
class stream_attributes {
 public:
  /// Both functions return false for an attribute that streams do not have.
  bool set(cudaStreamAttrID attribute, const cudaStreamAttrValue& value);
  bool get(cudaStreamAttrID attribute, cudaStreamAttrValue& value) const;
  void copy_from(const stream_attributes& other);

 private:
  mutable std::mutex mutex_;
  std::map<cudaStreamAttrID, cudaStreamAttrValue> values_;
};

}  // namespace hpe::cudart
