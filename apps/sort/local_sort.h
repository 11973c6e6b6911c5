#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hpe::sort {

/// Whether GPUs can sort this type (kernels/sort.def); never where the build had no CUDA toolkit.
[[nodiscard]] bool can_sort_locally(const std::string& name);

/// Bytes that a sort of count elements needs besides its workspace.
[[nodiscard]] std::size_t scratch_of_local_sort(const std::string& name, std::size_t count);

/// Queues a stable sort on one GPU, by CUB. workspace is as large as the data; it and the output may be the same, as
/// may input and output, but input and workspace are not. The input's content is lost. scratch has what
/// scratch_of_local_sort says.
void sort_locally(const std::string& name, int device, std::span<std::byte> input, std::span<std::byte> output,
                  std::span<std::byte> workspace, std::span<std::byte> scratch);

}  // namespace hpe::sort
