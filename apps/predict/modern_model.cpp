#include "apps/predict/modern_model.h"

#include <algorithm>
#include <cmath>

namespace hpe::predict::modern {

namespace {

using busy_times = std::map<resource, double>;

double longest(const busy_times& all) {
  double most = 0;
  for (const auto& [r, seconds] : all) most = std::max(most, seconds);
  return most;
}

/// The seconds, by resource, of an iteration, or of the work that a run does once.
class schedule {
 public:
  void serial(resource r, double seconds) {
    busy_[r] += seconds;
    serial_ += seconds;
  }
  void overlapped(resource r, double seconds) {
    busy_[r] += seconds;
    overlapped_[r] += seconds;
  }
  void add(bool overlap, resource r, double seconds) { overlap ? overlapped(r, seconds) : serial(r, seconds); }
  /// The overlapped work takes at least these seconds, for example because the two directions of a link slow each other
  /// down.
  void at_least(double seconds) { least_ = std::max(least_, seconds); }

  void repeat(double times, estimate& into) const {
    into.seconds += times * (serial_ + std::max(least_, longest(overlapped_)));
    for (const auto& [r, seconds] : busy_)
      if (seconds > 0) into.busy[r] += times * seconds;
  }

 private:
  busy_times busy_, overlapped_;
  double serial_ = 0, least_ = 0;
};

/// Whether members send and receive at the same time; otherwise the root only sends or only receives.
bool sends_and_receives(pattern how) {
  return how != pattern::gather && how != pattern::scatter && how != pattern::broadcast;
}

class machine {
 public:
  machine(const demand& d, const machine_profile& m)
      : m_(m), devices_(d.devices), shared_(d.where == topology::shared), sharing_(shared_ ? d.devices : 1) {
    if (!shared_ && devices_ > 1 && !m.between_nodes)
      throw bad_input(m.name + " has no network, which distributed devices need; use --topology shared");
  }

  [[nodiscard]] double link_seconds(direction where, bool pinned, double bytes, double pieces) const {
    const rate_table& pageable = where == direction::to_device ? m_.pageable_to_device : m_.pageable_to_host;
    const rate_table& rates = pinned ? pinned_rates(where) : pageable;
    const double latency = pinned ? m_.link_latency : m_.pageable_latency;
    return bytes > 0 ? pieces * latency + bytes / (rates.of_each(sharing_) * speed_of_copies()) : 0;
  }

  /// Returns the seconds in which `bytes` bytes, the sum of both directions, cross the link of each device.
  [[nodiscard]] double both_ways_seconds(double bytes) const {
    const double faster = std::max(m_.pinned_to_device.of_each(sharing_), m_.pinned_to_host.of_each(sharing_));
    return bytes / (m_.both_ways.empty() ? faster : m_.both_ways.of_each(sharing_));
  }

  [[nodiscard]] double disk_seconds(double allocated, const transfer& t) const {
    const double missing = std::clamp(allocated - m_.host_memory, 0.0, t.bytes / t.pieces) * t.pieces;
    return t.disk_passes * missing * sharing_ / m_.disk;
  }

  [[nodiscard]] resource of_exchanges() const {
    if (!shared_) return resource::network;
    return m_.peers ? resource::peers : resource::to_host;
  }

  /// Returns the seconds that an exchange adds to a run or an iteration. If kernels exchange the data, links and device
  /// memory work at the same time, and the kernels' time already includes the accesses to device memory.
  [[nodiscard]] double seconds_of(const exchange& x) const {
    const bool by_kernels = x.kernel_bytes > 0 && m_.kernel_memory > 0;
    const double in_memory = by_kernels ? x.kernel_bytes / (m_.kernel_memory * m_.on_one_machine(sharing_).memory) : 0;
    return x.rounds * std::max(0.0, exchange_seconds(x.how, x.bytes, x.members, way(x.how, by_kernels)) - in_memory);
  }

 private:
  /// Machines that share processors, as network namespaces do, may slow down each other's copies.
  [[nodiscard]] double speed_of_copies() const {
    return shared_ || m_.copy_speeds_on_machines.empty() ? 1 : m_.copy_speeds_on_machines.of_each(devices_);
  }

  /// Returns the connection between two devices: the network, a link between them, or both directions of their links to
  /// the host.
  [[nodiscard]] path way(pattern how, bool by_kernels) const {
    if (!shared_) {
      const network& n = *m_.between_nodes;
      return {sends_and_receives(how) ? n.rate_together(devices_) : n.rate, n.latency};
    }
    if (m_.peers)
      return {by_kernels ? m_.peers->rate_of_kernels(devices_) : m_.peers->rate(devices_), m_.peers->latency};
    const double one_way = std::min(m_.pinned_to_device.of_each(devices_), m_.pinned_to_host.of_each(devices_));
    return {std::min(one_way, 0.5 / both_ways_seconds(1)), 2 * m_.link_latency};
  }

  [[nodiscard]] const rate_table& pinned_rates(direction where) const {
    return where == direction::to_device ? m_.pinned_to_device : m_.pinned_to_host;
  }

  const machine_profile& m_;
  const int devices_;
  const bool shared_;
  const int sharing_;  ///< the number of devices that share host memory and disk
};

/// Returns the schedule of the transfers and exchanges in each iteration, or of those that a run makes once.
schedule schedule_of(const demand& d, const machine_profile& m, bool each_iteration) {
  const machine parts(d, m);
  schedule s;
  double both_ways = 0;
  for (const transfer& t : d.transfers) {
    if (t.each_iteration != each_iteration) continue;
    const resource link = t.where == direction::to_device ? resource::to_device : resource::to_host;
    s.add(t.overlap, link, parts.link_seconds(t.where, t.pinned, t.bytes, t.pieces));
    s.add(t.overlap, resource::disk, parts.disk_seconds(d.host_bytes, t));
    if (t.overlap) both_ways += t.bytes;
  }
  s.at_least(parts.both_ways_seconds(both_ways));
  for (const exchange& x : d.exchanges)
    if (x.each_iteration == each_iteration && d.devices > 1)
      s.add(x.overlap, parts.of_exchanges(), parts.seconds_of(x));
  return s;
}

}  // namespace

double exchange_seconds(pattern how, double bytes, double members, const path& way) {
  if (members <= 1 || bytes <= 0) return 0;
  const double message = bytes / way.rate, steps = std::ceil(std::log2(members)), others = members - 1;
  switch (how) {
    case pattern::gather:
    case pattern::scatter:
    case pattern::all_gather: return steps * way.latency + others * message;
    case pattern::all_to_all: return others * (way.latency + message);
    case pattern::broadcast:
      return std::min(steps * (way.latency + message), (steps + others) * way.latency + 2 * others / members * message);
    case pattern::all_reduce:
      return std::min(steps * (way.latency + message), 2 * steps * way.latency + 2 * others / members * message);
    case pattern::halo: return way.latency + std::min(others, 2.0) * message;
    case pattern::shift: return way.latency + message;
  }
  return 0;
}

double kernel_seconds(const demand& d, const machine_profile& m) {
  const double units = std::ceil(d.units / d.granule / d.devices) * d.granule;
  double shares = units / d.reference_units;
  if (d.block > 0 && m.wave > 0) {
    const auto waves = [&](double of) { return std::ceil(std::ceil(of / d.block) / m.wave); };
    shares = waves(units) / waves(d.reference_units);
  }
  // The reference run takes at least the time in which memory transfers its bytes. Devices that work at the same time
  // may slow down memory more than arithmetic, or the reverse.
  const machine_profile::speeds speed =
      d.where == topology::shared ? m.on_one_machine(d.devices) : m.on_machines(d.devices);
  const double in_memory = m.kernel_memory > 0 ? std::min(d.reference_bytes / m.kernel_memory, d.reference_seconds) : 0;
  const double seconds = shares * std::max(d.reference_seconds / speed.arithmetic, in_memory / speed.memory);
  return std::max(seconds, d.launches * m.kernel_floor) + d.launches * m.launch;
}

namespace {

/// Predicts the time if all devices begin each part of their work at the same time, so that they share the machine in
/// each part.
estimate devices_in_step(const demand& d, const machine_profile& m) {
  const machine parts(d, m);
  schedule each = schedule_of(d, m, true);
  const schedule once = schedule_of(d, m, false);
  each.overlapped(resource::kernels, kernel_seconds(d, m));
  each.serial(resource::cpu, d.cpu_seconds);
  // Bytes that do not fit into the device's memory move to the device and back in each iteration, while kernels run.
  if (const double missing = std::max(0.0, d.device_bytes - m.device_memory); missing > 0) {
    each.overlapped(resource::to_device, parts.link_seconds(direction::to_device, true, missing, 1));
    each.overlapped(resource::to_host, parts.link_seconds(direction::to_host, true, missing, 1));
    each.at_least(parts.both_ways_seconds(2 * missing));
  }
  estimate e;
  double pinned = 0;
  for (const transfer& t : d.transfers)
    if (t.pinned) pinned += t.bytes;
  if (pinned > 0) {
    e.busy[resource::pinning] = m.pinned_allocation + pinned * m.pinned_allocation_a_byte;
    e.seconds = e.busy[resource::pinning];
  }
  once.repeat(1, e);
  each.repeat(d.iterations, e);
  return e;
}

/// Returns the machine with the rates and speeds of a single device for any number of devices.
machine_profile without_contention(machine_profile m, int devices) {
  for (rate_table* const t : {&m.speeds_together, &m.memory_speeds_together, &m.pinned_to_device, &m.pinned_to_host,
                              &m.pageable_to_device, &m.pageable_to_host, &m.both_ways})
    if (!t->empty()) *t = rate_table({{1, t->of_each(1)}, {devices, t->of_each(1)}});
  return m;
}

/// Whether devices neither exchange bytes nor overlap transfers with other work.
bool is_independent(const demand& d) {
  return std::none_of(d.exchanges.begin(), d.exchanges.end(), [](const exchange& x) { return x.bytes > 0; }) &&
         std::none_of(d.transfers.begin(), d.transfers.end(), [](const transfer& t) { return t.overlap; });
}

}  // namespace

// Devices that share only links stay in step, because each device gets the same part of a link's rate. If devices also
// share processors, some devices compute while other devices copy. The time is then between two limits: the time of
// devices in step, and the time of devices that wait for links or for processors, but not for both. The prediction is
// the mean of these limits.
estimate predict(const demand& d, const machine_profile& m) {
  estimate e = devices_in_step(d, m);
  if (d.where == topology::shared && d.devices > 1 && is_independent(d)) {
    const estimate alone = devices_in_step(d, without_contention(m, d.devices));
    const auto wait_for = [&](resource r) { return std::max(0.0, e.seconds_of(r) - alone.seconds_of(r)); };
    const double for_links = wait_for(resource::to_device) + wait_for(resource::to_host);
    e.seconds -= std::min(wait_for(resource::kernels), for_links) / 2;
  }
  return e;
}

}  // namespace hpe::predict::modern
