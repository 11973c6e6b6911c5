#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hpe::sort {

/// The part of a sort that one GPU does alone. workspace is as large as the data; it and the output may be the same, as
/// may input and output, but input and workspace are not. scratch has as many bytes as local_sort::scratch says.
struct local_range {
  int device;
  std::span<std::byte> input, output, workspace, scratch;
};

/// How GPUs sort one type of element by one order: hpe's own are found by name, a program makes one for its own
/// (apps/sort/local_sort.cuh).
struct local_sort {
  /// Queues a stable sort. The input's content is lost.
  void (*run)(const local_range& range);
  /// Bytes that a sort of count elements needs besides its workspace.
  std::size_t (*scratch)(std::size_t count);
};

/// That of a type in kernels/sort.def; null for other names, and where the build had no CUDA toolkit.
[[nodiscard]] const local_sort* find_local_sort(const std::string& name);

}  // namespace hpe::sort
