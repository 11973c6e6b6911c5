#pragma once

/// Memory that all ranks of a machine share.

#include <cstddef>
#include <string_view>

#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Maps `bytes` bytes, initially zero, that all ranks of the communicator `machine` share. Collective over these ranks.
/// Returns nullptr in all of these ranks if one of them cannot map the memory, or if /dev/shm has too little space.
/// `use`: a name that differs in each call, because it is a part of the file's name. The memory stays mapped until the
/// process ends.
[[nodiscard]] void* shared_by_machine(const job& of, std::string_view use, std::size_t bytes, MPI_Comm machine);

}  // namespace hpe::interpose::mpi
