#pragma once

/// Memory that the program itself maps (cuMemMap): ranges of addresses, memory objects, and mappings of objects to
/// ranges.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "interpose/soft/libcuda/memory/object_memory.h"
#include "runtime/base/thread_safety.h"

namespace hpe::libcuda {

/// A reserved range is a range of hpeReserve, and a memory object is a part of a file, which hpeMapFile maps. The
/// program can map an object to several addresses, and can share it with other processes by a file descriptor.
/// Thread-safe. The functions throw `failure`, mostly with cudaErrorInvalidValue, and hpe::error.
class virtual_memory {
 public:
  static constexpr std::size_t granularity = std::size_t{2} << 20;  // as on GPUs

  CUdeviceptr reserve(std::size_t bytes, std::size_t alignment);
  void free(CUdeviceptr base, std::size_t bytes);

  CUmemGenericAllocationHandle create(std::size_t bytes, const CUmemAllocationProp& properties);
  void release(CUmemGenericAllocationHandle handle);
  /// Returns a handle of the object that is mapped at the address.
  CUmemGenericAllocationHandle retain(CUdeviceptr address);
  CUmemAllocationProp properties(CUmemGenericAllocationHandle handle);
  /// Returns a file descriptor of an object (object_memory::descriptor).
  int descriptor(CUmemGenericAllocationHandle handle);
  /// Returns a handle of the object with this file descriptor, which any process may have returned.
  CUmemGenericAllocationHandle open(int descriptor);

  void map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle);
  void unmap(CUdeviceptr address, std::size_t bytes);  ///< the range must consist of whole mappings; waits for all work

  /// Set and return which devices may use a mapping. Read-only access is not possible: a device that may read a mapping
  /// can also write it.
  void set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc& who);
  bool may_access(CUdeviceptr address, int device);
  /// Returns the types of handles by which the program can export the object that is mapped at the address.
  CUmemAllocationHandleType handle_types(CUdeviceptr address);

  /// Returns the only object of this class in the process, which is never destroyed.
  static virtual_memory& of_process();

 private:
  struct object {
    object_memory memory;
    int handles = 1;  // the number of references that the program owns
    template <class... From>
    explicit object(const From&... from) : memory(from...) {}
  };
  using pointer = std::shared_ptr<object>;
  struct mapping {
    std::size_t size = 0;
    pointer what;
    unsigned devices = 0;  // contains a bit for each device that may use the mapping
  };
  struct reservation {
    void* addresses = nullptr;  // the range of hpeReserve that contains the aligned range
    std::size_t size = 0;
    std::map<CUdeviceptr, mapping> mappings;
    std::vector<void*> entered;  // the mappings that were added to the memory table
  };

  std::pair<const CUdeviceptr, reservation>& around(CUdeviceptr address, std::size_t bytes) HPE_REQUIRES(mutex_);
  const mapping& mapping_at(CUdeviceptr address) HPE_REQUIRES(mutex_);
  std::vector<std::map<CUdeviceptr, mapping>::iterator> whole_mappings(reservation& in, CUdeviceptr address,
                                                                       std::size_t bytes) HPE_REQUIRES(mutex_);
  pointer find(CUmemGenericAllocationHandle handle) HPE_REQUIRES(mutex_);
  CUmemGenericAllocationHandle enter(pointer made);
  static void enter_again(reservation& changed);

  mutex mutex_;
  std::map<CUdeviceptr, reservation> reservations_ HPE_GUARDED_BY(mutex_);
  std::map<CUmemGenericAllocationHandle, pointer> objects_ HPE_GUARDED_BY(mutex_);
  CUmemGenericAllocationHandle made_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::libcuda
