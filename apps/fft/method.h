#pragma once

/// Implementations of the forms of a plan. Each run transforms one array, or the whole batch with the form `local`.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/fft/fft_choice.h"
#include "apps/fft/local.h"

namespace hpe::fft {

/// The arguments of the functions that make a method.
struct circumstances {
  problem what;
  settings wish;
  choice made;
  bool soft;
};

template <class T>
class method {
 public:
  virtual ~method() = default;

  /// Queues the transform from `in` to `out`, which are equal or do not overlap.
  virtual void run(int sign, const number<T>* in, number<T>* out) = 0;
  [[nodiscard]] virtual std::int64_t position(std::int64_t k) const { return k; }
  [[nodiscard]] virtual std::string explain() const = 0;
};

template <class T>
[[nodiscard]] std::unique_ptr<method<T>> make_local(const circumstances& c);
template <class T>
[[nodiscard]] std::unique_ptr<method<T>> make_exchange(const circumstances& c);
template <class T>
[[nodiscard]] std::unique_ptr<method<T>> make_transpose(const circumstances& c);
/// Returns the form `transpose` without its last pass, which only reorders elements. Requires two_passes_possible().
template <class T>
[[nodiscard]] std::unique_ptr<method<T>> make_two_pass(const circumstances& c);
/// Whether make_two_pass is possible: it requires soft devices that reach each other's memory, elements in natural
/// order, and settings::fused.
[[nodiscard]] bool two_passes_possible(const circumstances& c);
template <class T>
[[nodiscard]] std::unique_ptr<method<T>> make_convolution(const circumstances& c);

template <class T>
[[nodiscard]] std::unique_ptr<local_transforms<T>> make_local_transforms(const circumstances& c) {
  return c.soft ? make_fftw_transforms<T>(c.wish.soft_effort) : make_cufft_transforms<T>();
}

/// A range of elements. part_of returns one of `parts` parts of `whole` elements; part sizes differ by one at most, and
/// may be 0.
struct range {
  std::int64_t begin, end;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};
[[nodiscard]] inline range part_of(std::int64_t whole, int part, int parts) {
  const std::int64_t each = whole / parts, more = whole % parts;
  const auto begin = [&](std::int64_t p) { return p * each + std::min(p, more); };
  return {begin(part), begin(part + 1)};
}

/// Returns the first `count` devices, as a list for placements.
[[nodiscard]] inline std::vector<int> first_devices(int count) {
  std::vector<int> list;
  for (int d = 0; d < count; ++d) list.push_back(d);
  return list;
}

/// Returns memory for the data between two passes over a matrix, distributed over the devices like the matrix's rows.
/// The first call allocates the memory, which `kept` owns.
template <class T>
[[nodiscard]] number<T>* room(array<number<T>>& kept, const choice& made) {
  if (kept.size() == 0)
    kept = array<number<T>>(static_cast<std::size_t>(made.first * made.second),
                            block_distribution(first_devices(made.devices)));
  return kept.data();
}

/// Returns the launch grid of a kernel that processes `elements` elements in tiles of tile_elements.
[[nodiscard]] inline hpeShape tiles_for(std::int64_t elements) {
  return grid(static_cast<std::uint32_t>(kernels::parts_of(elements, kernels::tile_elements)));
}

}  // namespace hpe::fft
