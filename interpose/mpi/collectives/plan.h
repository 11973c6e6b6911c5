#pragma once

/// The messages of a collective call as one rank sees them: which block of which buffer goes to which rank, and which
/// one comes from which rank. The blocking and the non-blocking form of a function have the same plan.

#include <algorithm>
#include <cstddef>
#include <memory>

#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/collectives/near_group.h"
#include "interpose/mpi/layout.h"

namespace hpe::interpose::mpi {

/// Whether a block has fewer bytes than `least`. One whose arguments MPI refuses has.
[[nodiscard]] bool is_smaller(std::size_t least, int count, MPI_Datatype type);

/// The blocks of one buffer argument, and the ranks that they are exchanged with.
class blocks {
 public:
  /// No blocks.
  blocks() = default;
  /// One block for each rank, one behind the other.
  [[nodiscard]] static blocks equal(const void* buffer, int count, MPI_Datatype type);
  /// One block for each rank. Displacements are in extents of the type. The arrays belong to the caller.
  [[nodiscard]] static blocks listed(const void* buffer, const int* counts, const int* displacements,
                                     MPI_Datatype type);
  /// One block for all ranks.
  [[nodiscard]] static blocks shared(const void* buffer, int count, MPI_Datatype type);

  /// The block of rank `which` alone, for all ranks.
  [[nodiscard]] blocks block_of(int which) const;
  /// The same blocks, for one rank only, or for all ranks but one.
  [[nodiscard]] blocks only_for(int rank) const;
  [[nodiscard]] blocks without(int rank) const;

  [[nodiscard]] bool has(int rank) const noexcept {
    return !none_ && rank != left_out_ && (only_ == any || rank == only_);
  }
  [[nodiscard]] std::byte* place(int rank) const;
  [[nodiscard]] int count(int rank) const noexcept;
  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }

  /// The memory that all blocks of n ranks use. Throws left_to_mpi for arguments that MPI refuses.
  [[nodiscard]] near_group::memory memory(int n) const;
  /// Keeps the datatype until the last copy of these blocks is gone, also if the program frees it.
  void keep_type();

 private:
  static constexpr int any = -1;

  [[nodiscard]] int index(int rank) const noexcept { return block_ == any ? rank : block_; }

  bool none_ = true;
  const void* buffer_ = nullptr;
  MPI_Datatype type_{};
  std::shared_ptr<MPI_Datatype> kept_;
  int count_ = 0;  // of each block, without lists
  const int* counts_ = nullptr;
  const int* displacements_ = nullptr;
  int block_ = any;
  int only_ = any;
  int left_out_ = any;
};

struct plan {
  blocks from;
  blocks to;

  /// The memory that this rank uses. Throws like blocks::memory().
  [[nodiscard]] near_group::memory memory(int n) const { return std::max(from.memory(n), to.memory(n)); }
  void keep_types() {
    from.keep_type();
    to.keep_type();
  }
  /// Adds the messages to a call.
  void post(exchange& call) const;
};

}  // namespace hpe::interpose::mpi
