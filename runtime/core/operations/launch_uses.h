#pragma once

#include <span>
#include <vector>

#include "runtime/core/memory/allocator.h"
#include "runtime/spread/kernel_model.h"

namespace hpe::core {

/// Narrows the memory that a launch may use to the memory that its kernel uses, as far as the analysis of the kernel
/// tells: an access is omitted if no pointer among the parameters leads to its memory, and is HPE_IN if no pointer
/// leads there through which the kernel writes. hpe takes device memory from data that was only read without copying
/// the data to the host. everything: the launch may use any memory, and `accesses` is ignored; false afterwards if the
/// analysis tells all memory.
///
/// Changes nothing if the kernel may write to memory that no pointer among its parameters leads to, and if such a
/// pointer is in hpe's address space, but in no allocation. Thread-safe.
void narrow(const allocator& memory, const spread::kernel_model& kernel, std::span<const std::byte> parameters,
            bool& everything, std::vector<hpeAccess>& accesses);

}  // namespace hpe::core
