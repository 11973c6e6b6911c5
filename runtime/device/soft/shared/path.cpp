#include "runtime/device/soft/shared/path.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace hpe::device::soft {

path find_path(fabric& shared, unsigned self, int from, int to) {
  fabric_common& state = shared.common();
  const fabric_configuration& limits = shared.configuration();
  constexpr unsigned up = 0;
  constexpr unsigned down = 1;
  if (from == foreign_location || to == foreign_location) {
    const int here = from == foreign_location ? to : from;
    const unsigned port = here >= 0 ? static_cast<unsigned>(here) : self;
    return {{&state.ports[port][from == foreign_location ? down : up]}, 1, &limits.peer_limit};
  }
  if (from == to) return {};
  if (from == host_location)
    return {{&state.host_links[limits.shape.switch_of(static_cast<unsigned>(to))][down]}, 1, &limits.host_limit};
  if (to == host_location)
    return {{&state.host_links[limits.shape.switch_of(static_cast<unsigned>(from))][up]}, 1, &limits.host_limit};
  return {{&state.ports[static_cast<unsigned>(from)][up], &state.ports[static_cast<unsigned>(to)][down]},
          2,
          &limits.peer_limit};
}

void pass_links(std::span<const movement> all, std::uint64_t start) {
  struct progress {
    const movement* what;
    std::uint64_t left, arrival;
  };
  std::vector<progress> open;
  for (const movement& m : all)
    if (m.bytes > 0 && m.way.limited()) open.push_back({&m, m.bytes, start});
  std::uint64_t end = 0;
  while (!open.empty()) {
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    for (progress& p : open) {
      const link_limit& limit = *p.what->way.limit;
      const std::uint64_t burst = std::min(p.left, burst_size(limit));
      p.left -= burst;
      p.arrival = reserve_path(p.what->way.span(), limit, burst, p.arrival, priority::launch, p.left > 0);
      next = std::min(next, p.arrival);
      end = std::max(end, p.arrival + limit.latency_ns);
    }
    std::erase_if(open, [](const progress& p) { return p.left == 0; });
    if (!open.empty()) approach(next);
  }
  wait_until(end);
}

}  // namespace hpe::device::soft
