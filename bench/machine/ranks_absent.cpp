#include "apps/command_line/program.h"
#include "bench/common/measure.h"
#include "bench/machine/ranks.h"

namespace hpe::bench {

ranks::ranks(char** argv) {
  if (command_line::one_of_several_ranks()) command_line::become("hpe-machine-mpi", argv);
}
ranks::~ranks() = default;

message_rates ranks::messages(std::size_t /*bytes*/, unsigned /*repeats*/) { return {}; }

double ranks::seconds_on(int /*machines*/, unsigned repeats, const std::function<void()>& body) {
  return timed(
             repeats, [] {}, body)
      .fastest;
}

void ranks::wait_for_all() {}

}  // namespace hpe::bench
