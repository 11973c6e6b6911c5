#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hpe::sort {

/// The part of a sort that one GPU performs alone. Input and output are the same or do not overlap. If they are the
/// same, the workspace is as large as the input; otherwise the workspace is empty. scratch has as many bytes as
/// local_sort::scratch returns.
struct local_range {
  int device;
  std::span<std::byte> input, output, workspace, scratch;

  [[nodiscard]] bool in_place() const { return output.data() == input.data(); }
};

/// A sort on GPUs for one type of element and one order. find_local_sort returns hpe's own sorts; a program makes a
/// local_sort for its own type (apps/sort/local_sort.cuh). All sorts are stable.
struct local_sort {
  /// Queues a sort on a CUDA stream (cudaStream_t). Returns a cudaError_t.
  int (*queue)(const local_range& range, void* stream);
  /// Returns the number of scratch bytes that a sort of `count` elements needs. in_place: input and output are the
  /// same.
  std::size_t (*scratch)(std::size_t count, bool in_place);
};

/// Returns the sort for a type in kernels/sort.def; null for other names, and in builds without a CUDA toolkit.
[[nodiscard]] const local_sort* find_local_sort(const std::string& name);

}  // namespace hpe::sort
