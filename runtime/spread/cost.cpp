#include "runtime/spread/cost.h"

#include <algorithm>
#include <limits>

namespace hpe::spread {

namespace {

class sum_of_traffic {
 public:
  explicit sum_of_traffic(const machine& m)
      : machine_(m),
        local_(m.devices),
        served_(m.devices),
        from_host_(m.devices),
        instructions_(m.devices),
        links_(m.devices * m.devices) {}

  void add(std::size_t device, device_number home, bool writes, double bytes) {
    const auto at = static_cast<std::size_t>(home);
    if (home == host) {
      from_host_[device] += bytes;
    } else if (at == device) {
      local_[device] += bytes;
    } else {
      // A read transfers bytes from the home to the reading device; a write transfers bytes to the home.
      const std::size_t from = writes ? device : at, to = writes ? at : device;
      links_[from * machine_.devices + to] += bytes / (writes ? machine_.write_rate : machine_.read_rate);
      served_[at] += bytes;
    }
  }
  void compute(std::size_t device, double instructions) { instructions_[device] += instructions; }

  [[nodiscard]] cost result(const cut& c) const {
    cost r;
    double slowest = time_of_links();
    double most = 0, all = 0;
    std::size_t used = 0;
    for (std::size_t d = 0; d < machine_.devices; ++d) {
      const double memory = std::max(local_[d] / machine_.local_rate, (local_[d] + served_[d]) / machine_.memory_rate);
      slowest =
          std::max({slowest, memory, instructions_[d] / machine_.instruction_rate, from_host_[d] / machine_.host_rate});
      r.local_bytes += local_[d];
      r.remote_bytes += served_[d];
      r.host_bytes += from_host_[d];
      const auto blocks = static_cast<double>(c.parts[d].blocks());
      most = std::max(most, blocks);
      all += blocks;
      used += blocks > 0 ? 1 : 0;
    }
    slowest = std::max(slowest, r.host_bytes / machine_.host_memory_rate);
    r.imbalance = used == 0 ? 0 : most * static_cast<double>(used) / all - 1;
    r.seconds = slowest + machine_.launch_seconds / machine_.scale * static_cast<double>(used > 1 ? used : 0);
    return r;
  }

 private:
  [[nodiscard]] double time_of_links() const {
    if (!machine_.shares_ports) return *std::max_element(links_.begin(), links_.end());
    double slowest = 0;
    for (std::size_t d = 0; d < machine_.devices; ++d) {
      double in = 0, out = 0;
      for (std::size_t other = 0; other < machine_.devices; ++other) {
        in += links_[other * machine_.devices + d];
        out += links_[d * machine_.devices + other];
      }
      slowest = std::max({slowest, in, out});
    }
    return slowest;
  }

  const machine& machine_;
  std::vector<double> local_, served_, from_host_, instructions_;  // by device
  std::vector<double> links_;  // by pair of devices: the seconds of the transfers from one device to the other
};

}  // namespace

std::vector<double> weights_of(const traffic& t, const cut& c) {
  std::vector<double> even(c.parts.size()), extra(c.parts.size());
  std::vector<std::size_t> parts;
  for (const block_traffic& b : t.blocks) {
    parts.push_back(part_of(c, b.block));
    (b.is_extra ? extra : even)[parts.back()] += 1;
  }
  std::vector<double> weights;
  for (std::size_t n = 0; n < t.blocks.size(); ++n) {
    const std::size_t d = parts[n];
    const auto blocks = static_cast<double>(c.parts[d].blocks());
    if (even[d] == 0) {
      weights.push_back(blocks / extra[d]);
    } else {
      weights.push_back(t.blocks[n].is_extra ? 1 : std::max(blocks - extra[d], 1.0) / even[d]);
    }
  }
  return weights;
}

cost predict(const traffic& t, const cut& c, std::span<const array_place> places, const machine& m) {
  sum_of_traffic sum(m);
  const std::vector<double> weights = weights_of(t, c);
  const std::vector<home_run> on_host{{0, std::numeric_limits<std::uint64_t>::max(), host}};
  const auto homes_of = [&](const array_place& place) -> const std::vector<home_run>& {
    return place.homes != nullptr ? *place.homes : on_host;
  };
  for (std::size_t n = 0; n < t.blocks.size(); ++n) {
    const block_traffic& b = t.blocks[n];
    const std::size_t device = part_of(c, b.block);
    sum.compute(device, b.instructions * weights[n]);
    const std::vector<home_run>* runs = nullptr;
    std::size_t at = 0;
    for (const touch& touched : b.touches) {
      const array_place& place = places[touched.pointer];
      if (place.is_replicated && !touched.writes) {
        sum.add(device, static_cast<device_number>(device), false, touched.bytes * weights[n]);
        continue;
      }
      const std::vector<home_run>& homes = homes_of(place);
      if (&homes != runs || at >= homes.size() || touched.offset < homes[at].first) {
        runs = &homes;
        const auto found = std::upper_bound(homes.begin(), homes.end(), touched.offset,
                                            [](std::uint64_t o, const home_run& run) { return o < run.last; });
        at = static_cast<std::size_t>(found - homes.begin());
      }
      while (at < homes.size() && touched.offset >= homes[at].last) ++at;
      sum.add(device, at < homes.size() ? homes[at].home : host, touched.writes, touched.bytes * weights[n]);
    }
    for (const scattered_touches& s : b.scattered) {
      const double bytes = s.bytes * weights[n];
      const bool has_pointer = s.pointer < places.size();
      if (has_pointer && places[s.pointer].is_replicated && !s.writes) {
        sum.add(device, static_cast<device_number>(device), false, bytes);
      } else if (has_pointer) {
        const std::vector<home_run>& homes = homes_of(places[s.pointer]);
        const double all = homes.empty() ? 1 : static_cast<double>(homes.back().last);
        for (const home_run& run : homes)
          sum.add(device, run.home, s.writes, bytes * static_cast<double>(run.last - run.first) / all);
      } else {
        for (std::uint32_t d = 0; d < m.devices; ++d) sum.add(device, static_cast<int>(d), s.writes, bytes / m.devices);
      }
    }
  }
  return sum.result(c);
}

// On two H200, the driver makes the context of a second GPU in 0.12 s, ends it in 0.06 s, and compiles patched code in
// 20 ms for one short kernel (about 2 us for a byte of text). A thread of hpe waits for the driver, and launches are
// meanwhile as fast as before. So these steps delay the program only at its end: the driver then ends the context, and
// hpe's thread finishes its last step. The price of a kernel's code is only a part of the measured time, because most
// programs that have gained once gain more later.
start_cost start_cost_of_gpus(std::size_t bytes, unsigned others) {
  constexpr double of_gpu = 0.06, of_kernel = 5e-4, of_byte = 2e-7;
  return {of_kernel + of_byte * static_cast<double>(bytes), of_gpu * others};
}

}  // namespace hpe::spread
