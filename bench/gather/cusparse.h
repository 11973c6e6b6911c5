#pragma once

/// Products by cuSPARSE, which is loaded at its first use.

#include "apps/sparse/rows.h"

namespace hpe::bench {

/// A product of a sparse matrix and a vector by cuSPARSE. One thread at a time may use an object.
class cusparse_product {
 public:
  /// Whether cuSPARSE can be loaded.
  [[nodiscard]] static bool installed();

  /// Prepares the product y = A x on device `device`; a, x and y must outlive this object. Throws hpe::error if
  /// cuSPARSE cannot be loaded or reports an error.
  template <class T>
  cusparse_product(const sparse::compressed_rows<T>& a, const array<T>& x, const array<T>& y, int device);
  cusparse_product(const cusparse_product&) = delete;
  cusparse_product& operator=(const cusparse_product&) = delete;
  ~cusparse_product();

  /// Queues the product and returns.
  void run();

 private:
  template <class Function>
  void queue(Function function) const;

  const int device_, type_;
  std::vector<hpeAccess> uses_;
  void *handle_ = nullptr, *matrix_ = nullptr, *from_ = nullptr, *to_ = nullptr;
  array<std::byte> work_;
};

extern template cusparse_product::cusparse_product(const sparse::compressed_rows<float>&, const array<float>&,
                                                   const array<float>&, int);
extern template cusparse_product::cusparse_product(const sparse::compressed_rows<double>&, const array<double>&,
                                                   const array<double>&, int);

}  // namespace hpe::bench
