#include "interpose/mpi/messages/board/shared_by_machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace hpe::interpose::mpi {

namespace {

void* map_file(const std::string& name, std::size_t bytes) {
  const int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return nullptr;
  void* mapped = MAP_FAILED;
  const auto size = static_cast<off_t>(bytes);
  // Allocate all pages here: if /dev/shm had no space for a page, a later access to this page would end the process
  // with SIGBUS.
  if (::posix_fallocate(file, 0, size) == 0)
    mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return mapped != MAP_FAILED ? mapped : nullptr;
}

}  // namespace

// The memory is a file in /dev/shm. Its name contains the job's number, and the machine's first rank, because machines
// in the sense of MPI may share /dev/shm (containers, for example). A rank removes the name only after all ranks have
// opened the file.
void* shared_by_machine(const job& of, std::string_view use, std::size_t bytes, MPI_Comm machine) {
  const auto first = std::ranges::find(of.same_machine, true) - of.same_machine.begin();
  const std::string name = fmt::format("/hpe-mpi-{:016x}{:016x}-{}-{}", of.id[0], of.id[1], first, use);
  void* const mapped = map_file(name, bytes);
  int all = mapped != nullptr ? 1 : 0;
  HPE_REAL(Allreduce)
  (MPI_IN_PLACE, &all, 1, handles::get().integer, handles::get().min, machine);
  ::shm_unlink(name.c_str());
  if (all != 0) return mapped;
  if (mapped != nullptr) ::munmap(mapped, bytes);
  return nullptr;
}

}  // namespace hpe::interpose::mpi
