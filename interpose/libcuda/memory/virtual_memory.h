#pragma once

/// Memory that the program maps itself: ranges of addresses, memory objects, and mappings of one on the other.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace hpe::libcuda {

/// Soft devices have no memory without addresses: the memory of a mapping is that of the reserved range, which is an
/// allocation of hpe whose pages are taken when they are touched. A memory object that is unmapped while the program
/// has its handle keeps its bytes elsewhere until it is mapped again. One object cannot be mapped twice at the same
/// time. Copies to a reserved range that is not mapped are not refused, unlike on GPUs. Thread-safe. Members throw
/// failure, mostly cudaErrorInvalidValue, and hpe::error.
class virtual_memory {
 public:
  static constexpr std::size_t granularity = std::size_t{2} << 20;  // as on GPUs

  CUdeviceptr reserve(std::size_t bytes, std::size_t alignment);
  void free(CUdeviceptr base, std::size_t bytes);

  CUmemGenericAllocationHandle create(std::size_t bytes, const CUmemAllocationProp& properties);
  void release(CUmemGenericAllocationHandle handle);
  CUmemGenericAllocationHandle retain(CUdeviceptr address);  ///< of the object that is mapped there
  CUmemAllocationProp properties(CUmemGenericAllocationHandle handle);

  void map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle);
  void unmap(CUdeviceptr address, std::size_t bytes);  ///< whole mappings; waits for all work

  /// Which devices may use mappings. Reading alone cannot be allowed: such mappings can be written too.
  void set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc& who);
  bool may_access(CUdeviceptr address, int device);

 private:
  struct object {
    std::size_t size = 0;
    CUmemAllocationProp properties{};
    int handles = 1;  // references of the program
    bool is_mapped = false;
    void* kept = nullptr;  // its bytes while it is not mapped; null before it was mapped
    ~object();
  };
  using pointer = std::shared_ptr<object>;
  struct mapping {
    std::size_t size = 0;
    pointer what;
    unsigned devices = 0;  // a bit for each that may use it
  };
  struct reservation {
    void* memory = nullptr;  // hpe's allocation, which the range is aligned in
    std::size_t size = 0;
    int device = 0;
    std::map<CUdeviceptr, mapping> mappings;
    std::vector<void*> entered;  // in the table of memory
  };

  // These need the mutex.
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
