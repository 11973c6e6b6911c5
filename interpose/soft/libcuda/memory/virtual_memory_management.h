#pragma once

/// Memory that the program itself maps (cuMemMap): ranges of addresses, memory objects, and mappings of objects to
/// ranges.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace hpe::libcuda {

/// On soft devices, there is no memory without an address. So a reserved range is an allocation of hpe, whose pages are
/// allocated when they are first touched, and a mapped memory object uses the memory of the range. If the program
/// unmaps an object but keeps its handle, hpe keeps the object's bytes in another allocation until the program maps the
/// object again. An object can be mapped only once at a time. Unlike GPUs, soft devices do not refuse copies to a part
/// of a reserved range that is not mapped. Thread-safe. The functions throw `failure`, mostly with
/// cudaErrorInvalidValue, and hpe::error.
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

  void map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle);
  void unmap(CUdeviceptr address, std::size_t bytes);  ///< the range must consist of whole mappings; waits for all work

  /// Set and return which devices may use a mapping. Read-only access is not possible: a device that may read a mapping
  /// can also write it.
  void set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc& who);
  bool may_access(CUdeviceptr address, int device);

 private:
  struct object {
    std::size_t size = 0;
    CUmemAllocationProp properties{};
    int handles = 1;  // the number of references that the program owns
    bool is_mapped = false;
    void* kept = nullptr;  // the bytes of an object that was unmapped; null if it is mapped or has never been mapped
    ~object();
  };
  using pointer = std::shared_ptr<object>;
  struct mapping {
    std::size_t size = 0;
    pointer what;
    unsigned devices = 0;  // contains a bit for each device that may use the mapping
  };
  struct reservation {
    void* memory = nullptr;  // the allocation of hpe that contains the aligned range
    std::size_t size = 0;
    int device = 0;
    std::map<CUdeviceptr, mapping> mappings;
    std::vector<void*> entered;  // the mappings that were added to the memory table
  };

  // The functions below require the mutex.
  std::pair<const CUdeviceptr, reservation>& around(CUdeviceptr address, std::size_t bytes);
  const mapping& mapping_at(CUdeviceptr address);
  std::vector<std::map<CUdeviceptr, mapping>::iterator> whole_mappings(reservation& in, CUdeviceptr address,
                                                                       std::size_t bytes);
  pointer find(CUmemGenericAllocationHandle handle);
  static void enter_again(reservation& changed);

  std::mutex mutex_;
  std::map<CUdeviceptr, reservation> reservations_;
  std::map<CUmemGenericAllocationHandle, pointer> objects_;
  CUmemGenericAllocationHandle made_ = 0;
};

}  // namespace hpe::libcuda
