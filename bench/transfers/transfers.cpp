// Transfers between the host and GPUs through one pointer, compared with what a program without hpe does: copies of
// pinned and pageable memory, and managed memory. Every ratio is the quotient of two medians from the same run.

#include <fmt/core.h>

#include <string>

#include "bench/transfers/parts.h"
#include "runtime/base/options.h"
#include "runtime/device/cuda/open.h"

using namespace hpe::bench;

int main(int argc, char** argv) {
  std::string only;
  const auto arguments = parse(
      argc, argv, "transfers between the host and GPUs, against plain copies and managed memory",
      {{"--only", "PARTS",
        "some of plain,first,prepared,managed,reads,writes,copies,faults,touches,launches,peers; or now: the part "
        "of first without the touches 1 s after hpeMalloc",
        to_text(only)}});
  const auto wanted = [&](const char* part) { return only.empty() || only.find(part) != std::string::npos; };
  if (!hpe::device::cuda::present()) {
    fmt::print("transfers: not measured, because the machine has no GPU\n");
    return 0;
  }
  if (only == "untouched") {
    work_without_touches();
    return 0;
  }
  // Starts hpe before the first call of the driver, so that the addresses that hpe needs are free.
  const int devices = hpe::device_count();
  const bool direct = hpe::options::from_environment().cuda_peers;
  table t(arguments.repeats);
  const raw_gpu gpu(0);
  if (direct) {
    const bool beside = wanted("reads") || wanted("writes") || wanted("copies");
    const link_rates is = plain_copies(t, gpu, !wanted("plain") && !beside);
    if (wanted("managed")) managed_memory(t, gpu, is);
    if (wanted("first")) first_touches(t, is);
    if (!only.empty() && wanted("now")) touches_at_once(t, is);
    if (wanted("prepared")) untouched_programs(t);
    if (wanted("reads")) host_reads(t, is);
    if (wanted("writes")) host_writes(t, is);
    if (wanted("copies")) pageable_copies(t, is);
    if (wanted("faults")) faults(t, gpu);
    if (wanted("touches")) random_touches(t, gpu);
    if (wanted("launches")) launches(t, gpu);
    if (devices > 1 && wanted("peers")) peers(t, gpu, raw_gpu(1));
  } else if (devices > 1) {
    staged_exchange(t, gpu, raw_gpu(1));
  }
  return report(fmt::format("transfers: {}, {} devices{}", hpe::device_info(0).name, devices,
                            direct ? "" : ", HPE_CUDA_PEERS=off: what peers do through the host"),
                t.lines, arguments);
}
