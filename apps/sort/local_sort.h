#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hpe::sort {

/// Whether GPUs can sort this type (kernels/sort.def); never where the build had no CUDA toolkit.
[[nodiscard]] bool can_sort_locally(const std::string& name);

/// Queues a stable sort on one GPU, by CUB. workspace is as large as the data; it and the output may be the same, as
/// may input and output, but input and workspace are not. The input's content is lost.
void sort_locally(const std::string& name, int device, std::span<std::byte> input, std::span<std::byte> output,
                  std::span<std::byte> workspace);

}  // namespace hpe::sort
