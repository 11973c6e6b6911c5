// launch_ is the number of the last launch. Each launch marks the totals that it writes with its number, so no total in
// a workspace has a mark above launch_. Tickets are zero between launches. Tiles on several devices wait for each
// other, so the devices run as a team, whose parts all run at the same time.

#include "apps/scan/team/single_pass.h"

#include <fmt/core.h>

#include <algorithm>

namespace hpe::scan {

namespace {

/// The offsets in the workspace of a device; tickets come first. There are at most as many chunks as tiles, so the
/// workspace has space for one chunk total for each tile, and for one more total for each device.
struct layout {
  layout(const kernels::scan_tiling& tiling, std::size_t element_size, std::size_t devices) {
    constexpr std::size_t line = 256;
    const std::size_t word = 2 * element_size;
    totals = line;
    chunk_totals = totals + tiling.count * word;
    size = chunk_totals + (devices > 1 ? (tiling.count + devices) * word : 0);
  }
  std::size_t totals, chunk_totals, size;
};

/// Kernels use 32-bit numbers for tiles and tickets, because each tile waits for divisions of these numbers. There are
/// a few more tickets than tiles.
constexpr std::uint64_t most_tiles = std::uint64_t{1} << 31;

constexpr std::uint32_t soft_tile_bytes =
    256 * 1024;  // small enough to stay in a second-level cache between the two times that a tile is read

/// Returns the size of a tile. A thread of a soft device has one tile at a time. Therefore, the threads of several
/// devices run concurrently only if the devices get single tiles in turn, that is, if a tile is a granule.
std::uint32_t tile_bytes(const std::vector<device_traits>& team) {
  if (team.front().kind != HPE_DEVICE_SOFT) return kernels::single_pass_tile_bytes;
  return team.size() == 1 ? soft_tile_bytes : static_cast<std::uint32_t>(granularity());
}

}  // namespace

single_pass::single_pass(const kernel_set& with, const batch& work, std::vector<device_traits> devices)
    : with_(with),
      work_(work),
      devices_(std::move(devices)),
      room_(tile_bytes(devices_) / static_cast<std::uint32_t>(with.element_size)) {
  const auto vector = static_cast<std::uint32_t>(kernels::scan_vector_alignment / with.element_size);
  // The largest possible number of tiles: that of data whose address is not a multiple of a vector's size.
  const kernels::scan_tiling most = kernels::make_tiling(work.length, work.problems, room_, vector, false);
  if (most.count > most_tiles)
    throw error(HPE_ERROR_NOT_SUPPORTED,
                fmt::format("{} problems of {} elements are {} tiles; a scan in one pass can have at most {} tiles",
                            work.problems, work.length, most.count, most_tiles));
  for (const device_traits& d : devices_) {
    workspaces_.emplace_back(layout(most, with.element_size, devices_.size()).size, on_device(d.number));
    fill(workspaces_.back().data(), 0, workspaces_.back().size());
  }
}

void single_pass::begin_launch() {
  if (++launch_ != 0) return;
  for (const auto& w : workspaces_) fill(w.data(), 0, w.size());
  launch_ = 1;
}

single_pass_parameters single_pass::parameters(const arrays& where) const {
  single_pass_parameters p{};
  const auto vector = static_cast<std::uint32_t>(kernels::scan_vector_alignment / with_.element_size);
  const bool aligned = reinterpret_cast<std::uintptr_t>(where.input) % kernels::scan_vector_alignment == 0;
  p.input = where.input;
  p.output = where.output;
  p.tiling = kernels::make_tiling(work_.length, work_.problems, room_, vector, aligned);
  p.reciprocal = ((std::uint64_t{1} << 32) + work_.length - 1) / work_.length;
  p.inclusive = work_.inclusive ? 1 : 0;
  p.launch = launch_;
  const std::uint64_t granule = granularity() / with_.element_size / std::max(p.tiling.part, 1U);
  const auto chunk = std::clamp<std::uint64_t>(granule, 1, kernels::scan_chunk_tiles);
  p.deal = kernels::make_deal(p.tiling, static_cast<std::uint32_t>(devices_.size()), static_cast<std::uint32_t>(chunk));
  p.stream = work_.length * work_.problems * with_.element_size > too_much_for_caches && where.input != where.output;
  const layout places(kernels::make_tiling(work_.length, work_.problems, room_, vector, false), with_.element_size,
                      devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    p.totals[d] = workspaces_[d].data() + places.totals;
    p.chunk_totals[d] = workspaces_[d].data() + places.chunk_totals;
  }
  return p;
}

void single_pass::queue(const arrays& where) {
  begin_launch();
  const single_pass_parameters all = parameters(where);
  std::vector<team_member<single_pass_parameters>> members;
  const ranges data(where, 0, work_.length * work_.problems * with_.element_size);
  std::vector<hpeAccess> accesses{data.read(), data.written()};
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const auto blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(devices_[d].units, all.tiling.count));
    members.push_back({devices_[d].number, {{blocks, 1, 1}, {kernels::single_pass_threads, 1, 1}}, all});
    single_pass_parameters& own = members.back().parameters;
    own.deal.device = static_cast<std::uint32_t>(d);
    own.tickets = reinterpret_cast<kernels::scan_tickets*>(workspaces_[d].data());
    accesses.push_back(inout(workspaces_[d]));
  }
  if (members.size() > 1) return launch_team(*with_.single_pass, members, accesses);
  const auto& [device, shape, own] = members.front();
  launch_on(device, *with_.single_pass, shape, own, accesses[0], accesses[1], accesses[2]);
}

std::string single_pass::explain() const {
  const auto vector = static_cast<std::uint32_t>(kernels::scan_vector_alignment / with_.element_size);
  const kernels::scan_tiling t = kernels::make_tiling(work_.length, work_.problems, room_, vector, true);
  const std::string size = t.several_problems()
                               ? fmt::format("{} whole problems", t.part / std::max<std::uint64_t>(work_.length, 1))
                               : fmt::format("{} elements", t.part);
  std::string text = fmt::format("one pass: {} tiles of {}", t.count, size);
  text += devices_.size() == 1 ? fmt::format(" on device {}\n", devices_.front().number)
                               : fmt::format(", distributed over {} devices in granules of {} KiB\n", devices_.size(),
                                             granularity() >> 10);
  return text;
}

}  // namespace hpe::scan
