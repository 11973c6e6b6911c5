#pragma once

#include <vector>

#include "apps/gather/gather_plan.h"
#include "apps/sparse/rows.h"
#include "kernels/sparse_parameters.h"

namespace hpe::sparse {

/// The way in which y = A x reads x.
enum class form {
  fused,    ///< one kernel reads x[column] for each element
  gathered  ///< hpe::gather first writes x[column] of all elements to memory, in the order of the elements; one device
};

/// Products of one matrix with vectors. If several devices share a product, each has whole rows, with about the same
/// number of elements, and a copy of x. An object can run many times. Only one thread at a time may use it.
template <class T>
class product {
 public:
  /// gather_by: the method by which form::gathered gathers x. The matrix must outlive the product. Throws hpe::error.
  product(const compressed_rows<T>& matrix, form how, const gather::choice& gather_by, std::vector<int> devices);

  /// Returns the vector x of `columns` elements, on the first device. The caller writes it before run().
  [[nodiscard]] const array<T>& x() const { return parts_.front().x; }

  /// Queues copies of x to the other devices, and the products. Throws hpe::error.
  void run();

  /// Waits for the product, and copies its `rows` elements to y, which is memory of the caller.
  void result(T* y) const;

 private:
  struct part {
    int device;
    std::uint64_t row, rows;
    array<std::uint32_t> first, column;  ///< empty if the arrays of the matrix are used
    array<T> values;
    array<T> x, y;
  };
  const compressed_rows<T>& matrix_;
  const row_sharing sharing_;
  kernel<kernels::sparse_multiply_parameters> multiply_;
  std::vector<part> parts_;
  std::vector<gather::plan> gather_;  ///< one plan for form::gathered, else empty
  array<T> gathered_;
};

extern template class product<float>;
extern template class product<double>;

}  // namespace hpe::sparse
