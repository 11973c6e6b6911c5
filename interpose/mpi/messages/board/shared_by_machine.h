#pragma once

/// Memory that all ranks of a machine share.

#include <cstddef>
#include <string_view>

#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Maps `bytes` bytes of zeros, the same in all ranks of `machine`; the kernel allocates pages at their first access.
/// Collective over these ranks. Returns nullptr in all of them if one rank cannot map the memory. `use` tells this
/// memory of the job from other memory. The memory stays mapped until the process ends.
[[nodiscard]] void* shared_by_machine(const job& of, std::string_view use, std::size_t bytes, MPI_Comm machine);

}  // namespace hpe::interpose::mpi
