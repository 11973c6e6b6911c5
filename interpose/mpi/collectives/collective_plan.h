#pragma once

/// The messages of one rank in a collective call: which block the rank sends to each other rank, and which block it
/// receives from each. The blocking and the non-blocking form of a function use the same plan.

#include <algorithm>
#include <cstddef>
#include <memory>

#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/collectives/near_group.h"
#include "interpose/mpi/layout.h"

namespace hpe::interpose::mpi {

/// Whether a block of `count` elements has fewer than `least` bytes. Also returns true for arguments that MPI rejects,
/// so that MPI's own function reports the error.
[[nodiscard]] bool is_smaller(std::size_t least, int count, MPI_Datatype type);

/// The blocks of one buffer argument, and the ranks to which they are sent or from which they are received.
class blocks {
 public:
  /// Contains no blocks.
  blocks() = default;
  /// One block for each rank; the blocks follow each other without gaps.
  [[nodiscard]] static blocks equal(const void* buffer, int count, MPI_Datatype type);
  /// One block for each rank, at the given displacements. Displacements are in extents of the type. The arrays belong
  /// to the caller and must exist as long as the blocks are used.
  [[nodiscard]] static blocks listed(const void* buffer, const int* counts, const int* displacements,
                                     MPI_Datatype type);
  /// The same block for all ranks.
  [[nodiscard]] static blocks shared(const void* buffer, int count, MPI_Datatype type);

  /// Returns blocks in which every rank has the block of rank `which`.
  [[nodiscard]] blocks block_of(int which) const;
  /// Return the same blocks, but exchanged only with one rank (only_for) or with all ranks except one (without).
  [[nodiscard]] blocks only_for(int rank) const;
  [[nodiscard]] blocks without(int rank) const;

  [[nodiscard]] bool has(int rank) const noexcept {
    return !none_ && rank != left_out_ && (only_ == any || rank == only_);
  }
  [[nodiscard]] std::byte* place(int rank) const;
  [[nodiscard]] int count(int rank) const noexcept;
  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }

  /// Returns the kind of memory that the blocks of n ranks use; the highest value if there are several kinds. Throws
  /// left_to_mpi for arguments that MPI rejects.
  [[nodiscard]] near_group::memory memory(int n) const;
  /// Keeps the datatype until the last copy of these blocks is destroyed, even if the program frees the datatype.
  void keep_type();

 private:
  static constexpr int any = -1;

  [[nodiscard]] int index(int rank) const noexcept { return block_ == any ? rank : block_; }

  bool none_ = true;
  const void* buffer_ = nullptr;
  MPI_Datatype type_{};
  std::shared_ptr<MPI_Datatype> kept_;
  int count_ = 0;  // the number of elements of each block, unless counts_ is set
  const int* counts_ = nullptr;
  const int* displacements_ = nullptr;
  int block_ = any;
  int only_ = any;
  int left_out_ = any;
};

struct collective_plan {
  blocks from;
  blocks to;

  /// Returns the kind of memory that this rank uses. Throws left_to_mpi for arguments that MPI rejects.
  [[nodiscard]] near_group::memory memory(int n) const { return std::max(from.memory(n), to.memory(n)); }
  void keep_types() {
    from.keep_type();
    to.keep_type();
  }
  /// Adds the messages of the plan to a call.
  void post(exchange& call) const;
};

}  // namespace hpe::interpose::mpi
