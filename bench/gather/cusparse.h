#pragma once

/// cuSPARSE, loaded when it is first needed.

#include "apps/sparse/rows.h"

namespace hpe::bench {

/// A product of a matrix and a vector by cuSPARSE. Used by one thread at a time.
class cusparse_product {
 public:
  /// Whether cuSPARSE can be loaded.
  [[nodiscard]] static bool installed();

  /// Prepares the product y = A x on one device; all arrays must outlive this object. Throws hpe::error.
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
