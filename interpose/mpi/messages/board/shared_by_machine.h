#pragma once

/// Memory that all ranks of a machine share.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Whether the kernel allocates pages at their first access, which ends a process if /dev/shm is full then, or at once.
enum class shared_pages : std::uint8_t { when_used, now };

/// Maps `bytes` bytes of zeros, the same in all ranks of `machine`. Collective over these ranks. Returns nullptr in all
/// of them if one rank cannot map the memory. `use` tells this memory of the job from other memory. The memory stays
/// mapped until the process ends.
[[nodiscard]] void* shared_by_machine(const job& of, std::string_view use, std::size_t bytes, shared_pages when,
                                      MPI_Comm machine);

}  // namespace hpe::interpose::mpi
