#pragma once

/// The reference for sorts: CUB.

#include <cstddef>
#include <cstdint>

namespace hpe::bench {

/// Whether this build contains CUB.
[[nodiscard]] bool cub_there();

/// CUB's radix sort of keys on one GPU. CUB stores the result in one of two arrays. Its scratch memory is allocated
/// before the timed part.
class cub_sort {
 public:
  cub_sort(int device, std::size_t count);
  ~cub_sort();
  cub_sort(const cub_sort&) = delete;
  cub_sort& operator=(const cub_sort&) = delete;
  void run(std::uint32_t* keys);

 private:
  struct state;
  state* state_;
};

}  // namespace hpe::bench
