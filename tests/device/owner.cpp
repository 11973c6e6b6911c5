// A program that opens soft devices, keeps them busy, prints their processes, and waits to be killed. Arguments: the
// specification of the devices, and the file with the kernels.

#include <unistd.h>

#include <cstdio>
#include <span>

#include "tests/device/kernels.h"
#include "tests/device/processes.h"
#include "tests/device/support.h"

int main(int, char** argv) {
  using namespace device_test;
  const auto set = hpe::device::open_devices(argv[1], layout_for(4));
  const auto rest = set->find_kernel(set->load_module(argv[2]), "rest");
  const rest_parameters long_time{60'000'000, nullptr, 0};
  for (unsigned d = 0; d < set->size(); ++d) {
    set->at(d).map(reinterpret_cast<void*>(layout_for(4).base + d * layout_for(4).segment_size), 2 * MiB);
    set->at(d).create_stream(hpe::device::priority::launch).launch(rest, {}, std::as_bytes(std::span(&long_time, 1)));
  }
  for (const pid_t pid : soft_devices_of(::getpid())) std::printf("%d ", pid);
  std::printf("\n");
  std::fflush(stdout);
  for (;;) ::pause();
}
