#include "runtime/spread/array_placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace hpe::spread {

namespace {

void append_run(std::vector<home_run>& runs, home_run next) {
  if (next.first >= next.last) return;
  if (!runs.empty() && runs.back().home == next.home) {
    runs.back().last = next.last;
  } else {
    runs.push_back(next);
  }
}

std::string words_of_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1U << 20U;
  if (bytes % mib == 0 || bytes >= 16 * mib) return fmt::format("{} MiB", (bytes + mib / 2) / mib);
  return fmt::format("{} KiB", (bytes + 512) / 1024);
}

struct placed_use {
  std::uint64_t offset = 0;
  std::size_t device = 0;
  double bytes = 0;
};

struct uses {
  std::vector<placed_use> known;  // in ascending order of offsets
  double scattered = 0, all = 0;
  std::vector<double> by_device;
};

bool is_used_by(const placed_allocation& a, std::uint32_t pointer) {
  return std::find(a.users.begin(), a.users.end(), pointer) != a.users.end();
}

uses uses_of(const placed_allocation& a, const traffic& t, const cut& c) {
  uses result;
  result.by_device.resize(c.parts.size());
  const std::vector<double> weights = weights_of(t, c);
  for (std::size_t n = 0; n < t.blocks.size(); ++n) {
    const std::size_t device = part_of(c, t.blocks[n].block);
    const auto count = [&](double bytes) {
      result.all += bytes;
      result.by_device[device] += bytes;
    };
    for (const touch& touched : t.blocks[n].touches) {
      if (!is_used_by(a, touched.pointer)) continue;
      result.known.push_back({touched.offset, device, touched.bytes * weights[n]});
      count(touched.bytes * weights[n]);
    }
    for (const scattered_touches& s : t.blocks[n].scattered) {
      if (!is_used_by(a, s.pointer)) continue;
      result.scattered += s.bytes * weights[n];
      count(s.bytes * weights[n]);
    }
  }
  std::sort(result.known.begin(), result.known.end(),
            [](const placed_use& x, const placed_use& y) { return x.offset < y.offset; });
  return result;
}

double remote_bytes(const uses& u, const std::vector<home_run>& homes, std::uint32_t devices) {
  double remote = u.scattered * (devices - 1) / devices;
  std::size_t at = 0;
  for (const placed_use& each : u.known) {
    while (at < homes.size() && each.offset >= homes[at].last) ++at;
    if (at < homes.size() && homes[at].home != static_cast<device_number>(each.device)) remote += each.bytes;
  }
  return remote;
}

/// Chooses the bounds between the devices' parts so that as many bytes as possible are in the memory of the device that
/// uses them. A bound is halfway between the last use by one device and the first use by the next.
array_placement parts_for(const uses& u, const kernel_array& a, std::uint32_t devices) {
  array_placement p;
  p.how = array_placement::kind::parts;
  p.bounds.push_back(0);
  const std::uint64_t end = (a.bytes + a.granule - 1) / a.granule * a.granule;
  for (std::uint32_t d = 1; d < devices; ++d) {
    double above = 0;
    for (const placed_use& each : u.known) above += each.device >= d ? each.bytes : 0;
    // `below`: the bytes before the bound that devices before d use. `above`: the bytes after the bound that the other
    // devices use.
    double below = 0, best = above;
    std::uint64_t low = 0, high = u.known.empty() ? end : u.known.front().offset;
    for (std::size_t n = 0; n < u.known.size(); ++n) {
      if (u.known[n].device < d) {
        below += u.known[n].bytes;
      } else {
        above -= u.known[n].bytes;
      }
      if (below + above > best) {
        best = below + above;
        low = u.known[n].offset;
        high = n + 1 < u.known.size() ? u.known[n + 1].offset : end;
      }
    }
    const std::uint64_t middle = low + (high - low) / 2;
    const std::uint64_t bound = (middle + a.granule / 2) / a.granule * a.granule;
    p.bounds.push_back(std::clamp(bound, p.bounds.back(), end));
  }
  p.bounds.push_back(end);
  return p;
}

}  // namespace

std::vector<home_run> homes_under(const array_placement& p, const kernel_array& a, std::uint32_t devices) {
  std::vector<home_run> runs;
  switch (p.how) {
    case array_placement::kind::stay:
    case array_placement::kind::replicated: return a.homes;
    case array_placement::kind::one: append_run(runs, {0, a.bytes, p.home}); break;
    case array_placement::kind::parts:
      for (std::uint32_t d = 0; d < devices; ++d)
        append_run(runs, {std::min(p.bounds[d], a.bytes), std::min(p.bounds[d + 1], a.bytes), static_cast<int>(d)});
      break;
    case array_placement::kind::cyclic:
      for (std::uint64_t at = 0, n = 0; at < a.bytes; at += p.run, ++n)
        append_run(runs, {at, std::min(at + p.run, a.bytes), static_cast<device_number>(n % devices)});
      break;
  }
  return runs;
}

std::string words_of(const array_placement& p) {
  switch (p.how) {
    case array_placement::kind::stay: return "as it is";
    case array_placement::kind::one: return fmt::format("on device {}", p.home);
    case array_placement::kind::parts: return fmt::format("in {} parts", p.bounds.size() - 1);
    case array_placement::kind::cyclic: return fmt::format("dealt out in runs of {}", words_of_bytes(p.run));
    case array_placement::kind::replicated: break;
  }
  return "a copy on each device";
}

array_placement best_placement(const placed_allocation& a, const traffic& t, const cut& c, const machine& m) {
  const kernel_array& what = *a.what;
  array_placement best;
  if (what.granule == 0) return best;
  const uses u = uses_of(a, t, c);
  if (u.all == 0) return best;
  const double now =
      what.is_replicated && a.may_replicate && c.is_spread() ? 0 : remote_bytes(u, what.homes, m.devices);
  double remote = now;
  const double enough = 0.01 * u.all;  // another placement must save more remote bytes than this number
  const auto consider = [&](const array_placement& p, double of) {
    if (of + enough >= remote) return;
    remote = of;
    best = p;
  };
  array_placement one;
  one.how = array_placement::kind::one;
  one.home = static_cast<device_number>(std::max_element(u.by_device.begin(), u.by_device.end()) - u.by_device.begin());
  consider(one, u.all - u.by_device[static_cast<std::size_t>(one.home)]);
  if (!c.is_spread()) return best;
  const array_placement parts = parts_for(u, what, m.devices);
  consider(parts, remote_bytes(u, homes_under(parts, what, m.devices), m.devices));
  for (const traffic::stride& s : t.strides) {
    if (!is_used_by(a, s.pointer) || s.bytes % (m.devices * what.granule) != 0 || s.bytes >= what.bytes) continue;
    array_placement cyclic;
    cyclic.how = array_placement::kind::cyclic;
    cyclic.run = s.bytes / m.devices;
    consider(cyclic, remote_bytes(u, homes_under(cyclic, what, m.devices), m.devices));
  }
  // If only a halo is remote, replicas of the whole array are not worthwhile.
  if (a.may_replicate && what.bytes <= m.replica_bytes && remote > 0.05 * u.all) {
    array_placement replicated;
    replicated.how = array_placement::kind::replicated;
    consider(replicated, 0);
  }
  return best;
}

double bytes_to_copy(const kernel_array& a, const machine& m) {
  return a.is_replicated ? 0 : static_cast<double>(a.bytes) * (m.devices - 1);
}

move_work work_of_move(const kernel_array& a, const std::vector<home_run>& homes) {
  move_work all;
  std::size_t at = 0;
  for (const home_run& old : a.homes) {
    while (at < homes.size() && homes[at].last <= old.first) ++at;
    double parts = 0, bytes = 0;
    for (std::size_t n = at; n < homes.size() && homes[n].first < old.last; ++n) {
      ++parts;
      if (homes[n].home != old.home)
        bytes += static_cast<double>(std::min(homes[n].last, old.last) - std::max(homes[n].first, old.first));
    }
    if (bytes > 0) all += {1 + 2 * parts, bytes};
  }
  return all;
}

array_placement first_placement(std::uint64_t bytes, std::uint64_t granule, const machine& m) {
  constexpr std::uint64_t granules_of_each = 4;
  array_placement p;
  p.how = array_placement::kind::one;
  if (m.devices == 1 || bytes < granules_of_each * m.devices * granule) return p;
  p.how = array_placement::kind::parts;
  const std::uint64_t granules = (bytes + granule - 1) / granule;
  for (std::uint32_t d = 0; d <= m.devices; ++d) p.bounds.push_back(granules * d / m.devices * granule);
  return p;
}

}  // namespace hpe::spread
