#pragma once

/// Operators of scans, for host and device code. An operator is a type without state and with three members. `T
/// operator()(T earlier, T later) const` is associative; T is trivially copyable and has 4 or 8 bytes. `T identity()
/// const` returns a value whose combination with any x, on either side, is x. `static constexpr bool commutative` says
/// whether the two operands may be exchanged.
///
/// A program's own operators must have the same form; cuda/scan.cuh, cuda/scan_hopper.cuh and host/scan_bodies.h define
/// kernels for them.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_SCAN_BOTH __host__ __device__ __forceinline__
#else
#define HPE_SCAN_BOTH inline
#endif

namespace hpe::kernels {

/// The least and the greatest value of a type; infinities for floating-point types.
template <class T>
struct limits;
template <>
struct limits<int32_t> {
  static HPE_SCAN_BOTH int32_t lowest() { return INT32_MIN; }
  static HPE_SCAN_BOTH int32_t highest() { return INT32_MAX; }
};
template <>
struct limits<int64_t> {
  static HPE_SCAN_BOTH int64_t lowest() { return INT64_MIN; }
  static HPE_SCAN_BOTH int64_t highest() { return INT64_MAX; }
};
template <>
struct limits<float> {
  static HPE_SCAN_BOTH float lowest() { return -__builtin_huge_valf(); }
  static HPE_SCAN_BOTH float highest() { return __builtin_huge_valf(); }
};
template <>
struct limits<double> {
  static HPE_SCAN_BOTH double lowest() { return -__builtin_huge_val(); }
  static HPE_SCAN_BOTH double highest() { return __builtin_huge_val(); }
};

/// The type in which values of type T are added: unsigned for integers, so that sums wrap around.
template <class T>
struct wrapping {
  using type = T;
};
template <>
struct wrapping<int32_t> {
  using type = uint32_t;
};
template <>
struct wrapping<int64_t> {
  using type = uint64_t;
};

/// The sum; sums of integers wrap around.
template <class T>
struct plus {
  static constexpr bool commutative = true;
  HPE_SCAN_BOTH T identity() const { return T(0); }
  HPE_SCAN_BOTH T operator()(T earlier, T later) const {
    using number = typename wrapping<T>::type;
    return T(number(earlier) + number(later));
  }
};

/// The least element. The result for NaN is undefined.
template <class T>
struct minimum {
  static constexpr bool commutative = true;
  HPE_SCAN_BOTH T identity() const { return limits<T>::highest(); }
  HPE_SCAN_BOTH T operator()(T earlier, T later) const { return later < earlier ? later : earlier; }
};

/// The greatest element. The result for NaN is undefined.
template <class T>
struct maximum {
  static constexpr bool commutative = true;
  HPE_SCAN_BOTH T identity() const { return limits<T>::lowest(); }
  HPE_SCAN_BOTH T operator()(T earlier, T later) const { return earlier < later ? later : earlier; }
};

}  // namespace hpe::kernels
