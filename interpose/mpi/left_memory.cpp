#include "interpose/mpi/left_memory.h"

#include "interpose/mpi/libraries/own_transport.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace hpe::interpose::mpi {

std::atomic<bool> left_memory::any_exists{false};

void left_memory::decide() {
  // Another part of hpe reports invalid options.
  if (options::valid_in_environment().mpi != mpi_use::automatic) return;
  const std::string transport = own_transport();
  if (transport.empty()) return;
  any_exists.store(true, std::memory_order_relaxed);
  log(log_level::info,
      "the MPI library transfers device memory itself ({}), so hpe leaves memory of the CUDA driver to it; with "
      "HPE_MPI=on, hpe transfers this memory",
      transport);
}

}  // namespace hpe::interpose::mpi
