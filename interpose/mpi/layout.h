#pragma once

/// Converts the counts, displacements and datatypes of a buffer argument to the byte ranges that the call uses,
/// relative to the buffer's address. A layout stays valid even if the program frees the datatypes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/real.h"
#include "interpose/mpi/type_map.h"

namespace hpe::interpose::mpi {

class layout {
 public:
  /// Adds `count` elements of a type at a displacement in bytes, as one part. Throws left_to_mpi for a negative count,
  /// hpe::error for bytes beyond the address space, and the same as map_of.
  void add(MPI_Aint displacement, MPI_Count count, MPI_Datatype type);
  void add_bytes(MPI_Aint displacement, std::size_t bytes);

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// begin() returns the offset of the lowest byte; extent() returns the number of bytes from the lowest to the highest
  /// byte, both included.
  [[nodiscard]] MPI_Aint begin() const noexcept { return begin_; }
  [[nodiscard]] std::size_t extent() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  /// Returns the number of data bytes, without gaps.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Returns the whole layout as rows of a box; nullopt if the layout has several parts, or if its stretches do not
  /// form rows of one width at equal distances.
  [[nodiscard]] std::optional<placed_box> rows() const;

  /// A layout that consists of consecutive elements of one type. scattered() returns nullopt if the layout does not
  /// have this form.
  struct elements_of_type {
    MPI_Aint displacement;
    scattered_bytes which;
  };
  [[nodiscard]] std::optional<elements_of_type> scattered() const;

  /// Calls each(stretch) for the first `bytes` bytes of data, in the order of the type maps; adjacent stretches are
  /// merged.
  void visit(std::size_t bytes, const std::function<void(stretch)>& each) const;

 private:
  struct layout_part {
    MPI_Aint displacement;
    MPI_Count count;
    MPI_Aint extent;
    std::shared_ptr<const type_map> map;  // nullptr if the part is one stretch of `bytes` bytes
    std::size_t bytes = 0;
  };

  void cover(MPI_Aint begin, MPI_Aint end, std::size_t bytes);

  std::vector<layout_part> parts_;
  MPI_Aint begin_ = 0;
  MPI_Aint end_ = 0;
  std::size_t size_ = 0;
};

// ---- functions for the expressions in functions.txt ----

/// `count` elements of a type.
[[nodiscard]] layout elements(MPI_Count count, MPI_Datatype type);
/// `count` elements of a type for each of n processes, one process after the other without gaps.
[[nodiscard]] layout each(int n, MPI_Count count, MPI_Datatype type);
/// n blocks of elements at the given displacements. Displacements are in extents of the type if all blocks have one
/// type, and in bytes if each block has its own type. Counts are int, or MPI_Count in the functions of MPI 4 for large
/// counts. Displacements are int or MPI_Aint.
template <class Count, class Displacement>
[[nodiscard]] layout pieces(int n, const Count* counts, const Displacement* displacements, MPI_Datatype type);
template <class Count, class Displacement>
[[nodiscard]] layout pieces(int n, const Count* counts, const Displacement* displacements, const MPI_Datatype* types);
template <class Count>
[[nodiscard]] MPI_Count total(int n, const Count* counts);
/// The bytes from `position` on in a buffer of `room` bytes for packed data: `size` bytes, or fewer if the buffer ends
/// before.
[[nodiscard]] layout packed(MPI_Aint position, MPI_Aint room, MPI_Aint size);
[[nodiscard]] MPI_Aint pack_size(MPI_Count count, MPI_Datatype type, MPI_Comm comm);
[[nodiscard]] MPI_Aint pack_external_size(const char* representation, MPI_Count count, MPI_Datatype type);

}  // namespace hpe::interpose::mpi
