#pragma once

/// Compares the result of a scan with a scan on the host, element by element.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "apps/scan/choice/choice.h"
#include "apps/scan/scan_operation.h"
#include "kernels/scan_operators.h"

namespace hpe::scan {

/// Returns whether the result is right. value(i): element i of the whole batch, whose problems have `length` elements.
/// found: elements [from, to) of each problem's scan, problem by problem. Rounding may change the sum of i + 1 floats
/// by (i + 1) eps times the sum of their absolute values.
template <class T, class Op, class Value>
[[nodiscard]] bool is_right_with(Op op, Value value, const T* found, const batch& work, std::uint64_t from,
                                 std::uint64_t to) {
  constexpr bool rounded = std::is_floating_point_v<T> && std::is_same_v<Op, kernels::plus<T>>;
  using wide = std::conditional_t<std::is_floating_point_v<T>, long double, T>;
  for (std::uint64_t g = 0; g < work.problems; ++g) {
    T so_far = op.identity();
    long double exact = 0, sizes = 0;
    for (std::uint64_t i = 0; i < to; ++i) {
      const T element = value(g * work.length + i), before = so_far;
      const long double exact_before = exact;
      so_far = op(so_far, element);
      exact += static_cast<wide>(element);
      sizes += std::abs(static_cast<long double>(element));
      if (i < from) continue;
      const T result = found[g * (to - from) + i - from];
      if (rounded) {
        const long double wanted = work.inclusive ? exact : exact_before;
        const long double allowed = static_cast<long double>(i + 1) * std::numeric_limits<T>::epsilon() * sizes;
        if (!(std::abs(static_cast<long double>(result) - wanted) <= allowed)) return false;
      } else if (result != (work.inclusive ? so_far : before)) {
        return false;
      }
    }
  }
  return true;
}

template <class T, class Value>
[[nodiscard]] bool is_right(built_in op, Value value, const T* found, const batch& work, std::uint64_t from,
                            std::uint64_t to) {
  switch (op) {
    case built_in::min: return is_right_with<T>(kernels::minimum<T>{}, value, found, work, from, to);
    case built_in::max: return is_right_with<T>(kernels::maximum<T>{}, value, found, work, from, to);
    default: return is_right_with<T>(kernels::plus<T>{}, value, found, work, from, to);
  }
}

}  // namespace hpe::scan
