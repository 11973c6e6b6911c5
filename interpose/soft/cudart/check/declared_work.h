#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/check/operation.h"

namespace hpe::cudart {

/// While an object exists, the check compares the accesses of work in a stream with those that the program declares
/// (hpeEnqueue). A stream may have one object at a time.
class declared_work {
 public:
  /// stream: the number of cudaStreamGetId. The accesses must outlive the object.
  declared_work(std::uint64_t stream, const hpeAccess* accesses, std::size_t count);
  ~declared_work();
  declared_work(const declared_work&) = delete;
  declared_work& operator=(const declared_work&) = delete;

 private:
  const std::uint64_t stream_;
};

/// Compares accesses of the work that the calling thread runs, if the program has declared this work's accesses.
void compare_with_declared(const check::operation_ptr& what, const std::vector<check::access_range>& ranges);

}  // namespace hpe::cudart
