// How fast data moves between the host and GPUs through one pointer, beside what a program would write instead: copies
// of pinned and pageable memory, and managed memory. Every ratio is of medians taken in this run.

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>

#include "bench/transfers/parts.h"
#include "runtime/device/cuda/open.h"

using namespace hpe::bench;

int main(int argc, char** argv) {
  const auto arguments =
      parse(argc, argv, "transfers between the host and GPUs, against plain copies and managed memory");
  if (!hpe::device::cuda::present()) {
    fmt::print("transfers: there are no GPUs\n");
    return 0;
  }
  // hpe first: it takes its address space before others have any.
  const int devices = hpe::device_count();
  const char* const forbidden = std::getenv("HPE_CUDA_PEERS");
  const bool direct = forbidden == nullptr || std::strcmp(forbidden, "off") != 0;
  table t(arguments.repeats);
  const raw_gpu gpu(0);
  if (direct) {
    const link_rates is = plain_copies(t, gpu);
    managed_memory(t, gpu, is);
    host_reads(t, is);
    host_writes(t, is);
    pageable_copies(t, is);
    faults(t, gpu);
    random_touches(t, gpu);
    launches(t, gpu);
    if (devices > 1) peers(t, gpu, raw_gpu(1));
  } else if (devices > 1) {
    staged_exchange(t, gpu, raw_gpu(1));
  }
  print(fmt::format("transfers: {}, {} devices{}", hpe::device_info(0).name, devices,
                    direct ? "" : ", HPE_CUDA_PEERS=off: what peers do through the host"),
        t.lines, arguments.json);
  return 0;
}
