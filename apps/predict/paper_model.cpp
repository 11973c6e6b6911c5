#include "apps/predict/paper_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hpe::predict {

const char* name_of(topology where) { return where == topology::shared ? "shared" : "distributed"; }

const char* name_of(resource r) {
  static constexpr std::array names{"kernels", "cpu",         "link to devices", "link to host", "disk",
                                    "pinning", "host copies", "peer links",      "network"};
  return names.at(static_cast<std::size_t>(r));
}

resource estimate::bound() const {
  return std::max_element(busy.begin(), busy.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

double estimate::seconds_of(resource r) const {
  const auto found = busy.find(r);
  return found != busy.end() ? found->second : 0;
}

namespace paper {

namespace {

double times(bool each_iteration, const demand& d) { return each_iteration ? d.iterations : 1; }

void add_transfer(estimate& e, const demand& d, const transfer& t, const machine_profile& m) {
  const int sharing = d.where == topology::shared ? d.devices : 1;
  // The paper uses the rate of copies to the device for both directions.
  const rate_table& rates = t.pinned ? m.pinned_to_device : m.pageable_to_device;
  const double bus = t.bytes / rates.of_each(sharing);
  const double paging =
      t.disk_passes * t.pieces * paging_seconds(d.host_bytes, m.host_memory, t.bytes / t.pieces, m.disk / sharing);
  const double repeats = times(t.each_iteration, d);
  const resource link = t.where == direction::to_device ? resource::to_device : resource::to_host;
  e.seconds += gpu_communication_seconds(t.pinned, m.pinned_allocation, repeats * paging, repeats * bus);
  e.busy[link] += repeats * bus;
  if (t.pinned) e.busy[resource::pinning] += m.pinned_allocation;
  if (!t.pinned && paging > 0) e.busy[resource::disk] += repeats * paging;
}

void add_exchange(estimate& e, const demand& d, const exchange& x, const machine_profile& m) {
  const double repeats = times(x.each_iteration, d) * x.rounds;
  const bool shared = d.where == topology::shared;
  const double seconds =
      shared ? x.copied / m.host_copy : x.bytes * steps(x.how, x.members) / m.between_nodes.value().rate;
  e.seconds += repeats * seconds;
  e.busy[shared ? resource::host_copies : resource::network] += repeats * seconds;
}

}  // namespace

double element_seconds(double reference_seconds, double elements) { return reference_seconds / elements; }

double gpu_seconds(double seconds_of_one, double count, int gpus) { return seconds_of_one * std::ceil(count / gpus); }

double paging_seconds(double allocated, double memory, double transferred, double disk) {
  return std::clamp(allocated - memory, 0.0, transferred) / disk;
}

double gpu_communication_seconds(bool pinned, double pinned_allocation, double disk_seconds, double bus_seconds) {
  return (pinned ? pinned_allocation : disk_seconds) + bus_seconds;
}

double broadcast_steps(double ranks) { return std::ceil(std::log2(ranks)); }

double steps(pattern how, double members) {
  switch (how) {
    case pattern::gather:
    case pattern::scatter:
    case pattern::all_gather:
    case pattern::all_to_all: return members - 1;
    case pattern::broadcast: return broadcast_steps(members);
    case pattern::all_reduce: return 2 * broadcast_steps(members);
    case pattern::halo: return std::min(members - 1, 2.0);
    case pattern::shift: return std::min(members - 1, 1.0);
  }
  return 0;
}

estimate predict(const demand& d, const machine_profile& m) {
  if (d.where == topology::distributed && d.devices > 1 && !m.between_nodes)
    throw bad_input(m.name + " has no network, which distributed devices need; use --topology shared");
  const double element = element_seconds(d.reference_seconds, d.reference_units) / m.relative_speed;
  estimate e;
  e.busy[resource::kernels] = d.iterations * gpu_seconds(element * d.granule, d.units / d.granule, d.devices);
  e.busy[resource::cpu] = d.iterations * d.cpu_seconds;
  e.seconds = e.busy[resource::kernels] + e.busy[resource::cpu];
  for (const transfer& t : d.transfers) add_transfer(e, d, t, m);
  if (d.devices > 1)
    for (const exchange& x : d.exchanges) add_exchange(e, d, x, m);
  return e;
}

}  // namespace paper

}  // namespace hpe::predict
