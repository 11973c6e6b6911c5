#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "interpose/cuda/spread/joined_gpus.h"
#include "runtime/spread/decision.h"

namespace hpe::cuda_hooks {

/// Device memory of the program that lies on several GPUs: ranges of addresses, mapped in pieces that can change their
/// GPU. All GPUs use all pieces. For one thread at a time; joined_gpus must have been entered.
class dealt_memory {
 public:
  dealt_memory(const device::cuda::driver& cu, const joined_gpus& gpus);

  /// The unit in which homes change, in bytes.
  [[nodiscard]] std::uint64_t granule() const { return granule_; }

  struct piece {
    std::uint64_t offset = 0, bytes = 0;
    unsigned gpu = 0;
    CUmemGenericAllocationHandle memory = 0;
  };
  struct range {
    CUdeviceptr base = 0;
    std::uint64_t bytes = 0;      // that the program asked for
    std::uint64_t extent = 0;     // a multiple of the granule
    std::vector<piece> pieces;    // ascending, without gaps
    std::uint64_t homes = 0;      // a number that follows from the extent and the place of each byte
    std::uint64_t contents = 0;   // another number after each write that has been queued
    bool is_empty = true;         // nothing has been written
    bool has_no_replica = false;  // memory was too short for copies of it
  };

  /// Allocates memory with these homes, elsewhere if a GPU has too little memory. Returns the driver's error.
  CUresult allocate(CUdeviceptr& made, std::uint64_t bytes, const spread::placement& where);
  /// The range that contains an address; null if there is none. Lives until it is freed.
  [[nodiscard]] range* find(CUdeviceptr address);
  /// Frees the range. No work may use it.
  void free(range& r);
  void free_all();

  /// Gives the bytes these homes. No work may use the range meanwhile. `copies`: with their contents. Returns an error
  /// of the driver; the range is then usable, partly with other homes.
  CUresult move(range& r, const std::vector<spread::home_run>& homes, bool copies);

  /// Calls visit(range) for each range.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [base, r] : ranges_) visit(r);
  }

 private:
  CUresult create(unsigned gpu, std::uint64_t bytes, CUmemGenericAllocationHandle& made) const;
  CUresult fill(range& r, const std::vector<spread::home_run>& homes);
  CUresult replace(range& r, const piece& old, const std::vector<piece>& by, bool copies);
  CUresult copy_to(const std::vector<piece>& fresh, const piece& old, CUdeviceptr from);
  [[nodiscard]] std::uint64_t rounded(std::uint64_t bytes) const {
    return (bytes + granule_ - 1) / granule_ * granule_;
  }

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  std::uint64_t granule_ = 0;
  std::map<CUdeviceptr, range> ranges_;  // by their ends
};

}  // namespace hpe::cuda_hooks
