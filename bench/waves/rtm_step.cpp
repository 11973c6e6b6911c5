#include "bench/waves/rtm_step.h"

#include "bench/common/devices.h"
#include "hpe/hpe.hpp"

int main(int argc, char** argv) {
  const hpe::bench::arguments options = hpe::bench::parse(
      argc, argv, "the wave step of `hpe rtm`, compared with a copy of the same bytes: on a GPU, or else on the cores");
  return hpe::bench::on_gpus() ? hpe::bench::measure_device_step(options) : hpe::bench::measure_host_step(options);
}
