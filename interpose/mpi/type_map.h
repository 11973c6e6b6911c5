#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Thrown if hpe cannot interpret an argument (for example a null handle or a negative count). The wrapper then passes
/// the call to MPI unchanged, and MPI reports the error.
struct left_to_mpi {};

/// Returns p + by, computed with integers. If a datatype's lower bound is not 0, the address that the program passes to
/// MPI can be outside the buffer, where pointer arithmetic is undefined.
[[nodiscard]] inline std::byte* moved(const void* p, MPI_Aint by) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): pointer arithmetic is only defined inside an object
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(by));
}

/// a + b and a * b of counts, displacements, sizes and extents that the program gives. Throw hpe::error if the result
/// exceeds the range of MPI_Aint.
[[noreturn]] void throw_beyond_addresses();
[[nodiscard]] inline MPI_Aint checked_sum(MPI_Aint a, MPI_Aint b) {
  MPI_Aint result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw_beyond_addresses();
  return result;
}
[[nodiscard]] inline MPI_Aint checked_product(MPI_Aint a, MPI_Aint b) {
  MPI_Aint result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw_beyond_addresses();
  return result;
}

/// The size, the extent, the true lower bound and the true extent of a datatype, in bytes. `measures_of` requires a
/// valid datatype.
struct type_measures {
  MPI_Count size = 0;
  MPI_Count extent = 0;
  MPI_Count true_lower = 0;
  MPI_Count true_extent = 0;
};
[[nodiscard]] type_measures measures_of(MPI_Datatype type);

/// The contiguous byte ranges (stretches) of one element of a datatype, in the order of the type map. Adjacent
/// stretches are merged.
class type_map : public std::vector<stretch> {
 public:
  type_map() = default;
  explicit type_map(std::vector<stretch> all);

  /// Returns the stretches as rows of a box; nullopt if they do not form rows of one width at equal distances.
  [[nodiscard]] const std::optional<placed_box>& rows() const noexcept { return rows_; }
  /// The bounds of the stretches; both are 0 if there are none. MPI's true bounds can be wider: those of MPICH 4.0 for
  /// distributed arrays begin at bytes that do not belong to the datatype.
  [[nodiscard]] MPI_Aint lowest() const noexcept { return lowest_; }
  [[nodiscard]] MPI_Aint highest() const noexcept { return highest_; }

 private:
  std::optional<placed_box> rows_;
  MPI_Aint lowest_ = 0, highest_ = 0;
};

/// Returns the type map of a datatype. The first call for a datatype stores the map in an attribute of the datatype.
/// Throws left_to_mpi for a null handle and for an unknown type constructor, and hpe::error for displacements that
/// exceed the range of MPI_Aint.
[[nodiscard]] std::shared_ptr<const type_map> map_of(MPI_Datatype type);

}  // namespace hpe::interpose::mpi
