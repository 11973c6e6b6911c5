#pragma once

/// Finds the bytes of a buffer argument, relative to the address in the call: converts counts, displacements and
/// datatypes to ranges. A layout stays valid even if the program frees the datatypes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// Thrown for an argument that hpe cannot interpret (a null handle, a negative count). The call is then passed to MPI
/// unchanged.
struct left_to_mpi {};

/// Computes p + by with integers: if a datatype's lower bound is not 0, the address that is passed to MPI can be
/// outside the buffer, where pointer arithmetic is undefined.
[[nodiscard]] inline std::byte* moved(const void* p, MPI_Aint by) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): pointer arithmetic is only defined inside an object
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(by));
}

/// The size and the extents of a datatype, in bytes. `measures_of` requires a valid datatype.
struct type_measures {
  MPI_Count size = 0;
  MPI_Count extent = 0;
  MPI_Count true_lower = 0;
  MPI_Count true_extent = 0;
};
[[nodiscard]] type_measures measures_of(MPI_Datatype type);

/// The stretches of data in one element of a datatype, in the order of its type map; adjacent stretches are merged.
class type_map : public std::vector<stretch> {
 public:
  type_map() = default;
  explicit type_map(std::vector<stretch> all);

  /// The stretches as rows of a box; nullopt if their widths or distances are not equal.
  [[nodiscard]] const std::optional<placed_box>& rows() const noexcept { return rows_; }

 private:
  std::optional<placed_box> rows_;
};

/// The type map of a datatype. The first call stores the map in an attribute of the datatype. Throws left_to_mpi for a
/// null handle and for an unknown type constructor.
[[nodiscard]] std::shared_ptr<const type_map> map_of(MPI_Datatype type);

class layout {
 public:
  /// Adds `count` elements of a type at a displacement, which is in bytes. Throws left_to_mpi for a negative count or a
  /// null type.
  void add(MPI_Aint displacement, MPI_Count count, MPI_Datatype type);
  void add_bytes(MPI_Aint displacement, std::size_t bytes);

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// The offset of the lowest byte (begin), and the number of bytes from the lowest byte to the end of the highest byte
  /// (extent).
  [[nodiscard]] MPI_Aint begin() const noexcept { return begin_; }
  [[nodiscard]] std::size_t extent() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  /// The number of data bytes; gaps do not count.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// The whole layout as rows of a box; nullopt if the widths or distances of its stretches are not equal.
  [[nodiscard]] std::optional<placed_box> rows() const;

  /// The layout as elements of one type; nullopt if the layout does not have this form.
  struct elements_of_type {
    MPI_Aint displacement;
    scattered_bytes which;
  };
  [[nodiscard]] std::optional<elements_of_type> scattered() const;

  /// Calls each(stretch) for the first `bytes` bytes of data, in the order of the type maps; adjacent stretches are
  /// merged.
  void visit(std::size_t bytes, const std::function<void(stretch)>& each) const;

 private:
  struct part {
    MPI_Aint displacement;
    MPI_Count count;
    MPI_Aint extent;
    std::shared_ptr<const type_map> map;  // nullptr: the part is one stretch of `bytes` bytes
    std::size_t bytes = 0;
  };

  void cover(MPI_Aint begin, MPI_Aint end);

  std::vector<part> parts_;
  MPI_Aint begin_ = 0;
  MPI_Aint end_ = 0;
  std::size_t size_ = 0;
};

// ---- the expressions of functions.txt ----

/// `count` elements of a type.
[[nodiscard]] layout elements(MPI_Count count, MPI_Datatype type);
/// `count` elements of a type for each of n processes; the elements of each process follow those of the one before.
[[nodiscard]] layout each(int n, MPI_Count count, MPI_Datatype type);
/// n pieces at the given displacements. Displacements count extents of the type if all pieces have one type, and bytes
/// if each piece has its own type. Counts are int, or MPI_Count in MPI 4's functions for large counts; displacements
/// are int or MPI_Aint.
template <class Count, class Displacement>
[[nodiscard]] layout pieces(int n, const Count* counts, const Displacement* displacements, MPI_Datatype type);
template <class Count, class Displacement>
[[nodiscard]] layout pieces(int n, const Count* counts, const Displacement* displacements, const MPI_Datatype* types);
template <class Count>
[[nodiscard]] MPI_Count total(int n, const Count* counts);
/// Up to `size` bytes, beginning at `position`, in a buffer of `room` bytes for packed data.
[[nodiscard]] layout packed(MPI_Aint position, MPI_Aint room, MPI_Aint size);
[[nodiscard]] MPI_Aint pack_size(MPI_Count count, MPI_Datatype type, MPI_Comm comm);
[[nodiscard]] MPI_Aint pack_external_size(const char* representation, MPI_Count count, MPI_Datatype type);

}  // namespace hpe::interpose::mpi
