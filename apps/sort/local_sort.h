#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hpe::sort {

/// The part of a sort that one GPU does alone. Input and output are the same or do not overlap. If they are the same,
/// workspace has their size; otherwise it is empty. scratch has as many bytes as local_sort::scratch returns.
struct local_range {
  int device;
  std::span<std::byte> input, output, workspace, scratch;

  [[nodiscard]] bool in_place() const { return output.data() == input.data(); }
};

/// How GPUs sort one type of element by one order: hpe's own sorts are found by name, a program makes one for its own
/// type (apps/sort/local_sort.cuh). All are stable.
struct local_sort {
  /// Queues a sort on a stream of CUDA (cudaStream_t). Returns a cudaError_t.
  int (*queue)(const local_range& range, void* stream);
  /// The scratch bytes that a sort of count elements needs; in_place: output and input are the same.
  std::size_t (*scratch)(std::size_t count, bool in_place);
};

/// The sort of a type in kernels/sort.def; null for other names, and in builds without a CUDA toolkit.
[[nodiscard]] const local_sort* find_local_sort(const std::string& name);

}  // namespace hpe::sort
