#pragma once

/// Helpers for the OpenMP versions of the programs.

#include <algorithm>
#include <memory>

#include "bench/pairs/pairs.h"

namespace hpe::bench::pairs::openmp {

template <class T>
std::vector<double> as_doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

// Wraps an object of type T, which holds the arrays, as a version: T::run() is the timed part, and the vector T::output
// is the result.
template <class T>
version of(std::shared_ptr<T> program) {
  return {[program] { program->run(); }, [program] { return as_doubles(program->output); }};
}

inline std::size_t squared(int n) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(n); }

template <class T, class... Members>
version make(Members&&... members) {
  return of(std::make_shared<T>(T{std::forward<Members>(members)...}));
}

inline std::size_t size_of(int n) { return static_cast<std::size_t>(n); }

}  // namespace hpe::bench::pairs::openmp
