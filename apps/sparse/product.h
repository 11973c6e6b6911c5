#pragma once

#include <vector>

#include "apps/gather/plan.h"
#include "apps/sparse/rows.h"
#include "kernels/sparse.h"

namespace hpe::sparse {

/// How y = A x reads x.
enum class form {
  fused,    ///< one kernel reads x by the columns of the elements
  gathered  ///< hpe::gather first writes x[column] for each element, in their order; one device
};

/// Products of one matrix with vectors. On several devices each has whole rows, with about the same number of elements,
/// and a copy of x. Made once and run often; one thread at a time.
template <class T>
class product {
 public:
  /// `gather_by` is for form::gathered. The matrix must outlive the product. Throws hpe::error.
  product(const compressed_rows<T>& matrix, form how, const gather::choice& gather_by, std::vector<int> devices);

  /// x on the first device, of `columns` elements: written by the caller before run().
  [[nodiscard]] const array<T>& x() const { return parts_.front().x; }

  /// Queues copies of x to the other devices, and the products. Throws hpe::error.
  void run();

  /// y, of `rows` elements, into memory of the caller. Waits for the work.
  void result(T* y) const;

 private:
  struct part {
    int device;
    std::uint64_t row, rows;
    array<std::uint32_t> first, column;  ///< empty if the matrix's own serve
    array<T> values;
    array<T> x, y;
  };
  const compressed_rows<T>& matrix_;
  const row_sharing sharing_;
  kernel<kernels::sparse_multiply_parameters> multiply_;
  std::vector<part> parts_;
  std::vector<gather::plan> gather_;  ///< none or one
  array<T> gathered_;
};

extern template class product<float>;
extern template class product<double>;

}  // namespace hpe::sparse
