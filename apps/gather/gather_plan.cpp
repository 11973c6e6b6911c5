// The launches of a run are ordered by the arrays that they declare, so the host does not wait between them. After the
// constructor, only kernels write to the elements of status_, except that finish() resets an element that it has
// reported.

#include "apps/gather/gather_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "apps/modules/modules.h"

namespace hpe::gather {

namespace {

constexpr std::size_t least_element = 4;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

[[noreturn]] void refuse(const std::string& sentence) { throw error(HPE_ERROR_INVALID_ARGUMENT, sentence); }

const problem& checked(const problem& p) {
  if (p.element != 4 && p.element != 8 && p.element != 16 && p.element != 32)
    refuse(fmt::format("elements of {} bytes cannot be gathered; 4, 8, 16 and 32 are possible", p.element));
  if (p.index != 4 && p.index != 8) refuse(fmt::format("indices have 4 or 8 bytes, not {}", p.index));
  constexpr std::uint64_t most = std::uint64_t{1} << 56;
  if (p.table > most || p.count > most)
    refuse(fmt::format("{} indices into a table of {} elements are too many; each number may be at most 2^56", p.count,
                       p.table));
  return p;
}

bool is_soft(int device) { return device_info(device).kind == HPE_DEVICE_SOFT; }

/// Returns the number of parts of a partition on one device.
std::uint32_t parts_on(bool soft, std::uint32_t units) { return soft ? units : 4 * units; }

}  // namespace

const char* name_of(method how) {
  switch (how) {
    case method::single_pass: return "single pass";
    case method::multi_pass: return "multi-pass";
    case method::partitioned: return "partitioned";
    case method::staged: return "staged";
  }
  return "";
}

std::uint32_t most_chunks(int device) {
  return is_soft(device) ? kernels::gather_most_chunks : kernels::gather_most_chunks_gpu;
}

std::string own_module() { return modules::require("libhpe-gather-kernels.so"); }

std::vector<int> all_unless(std::vector<int> wished) {
  if (wished.empty())
    for (int d = 0; d < device_count(); ++d) wished.push_back(d);
  for (const int d : wished) {
    if (std::count(wished.begin(), wished.end(), d) > 1) refuse(fmt::format("device {} is listed twice", d));
    static_cast<void>(device_info(d));
  }
  if (wished.size() > kernels::gather_most_devices)
    refuse(
        fmt::format("{} devices are too many; at most {} are possible", wished.size(), kernels::gather_most_devices));
  return wished;
}

shares::shares(std::uint64_t count, std::vector<int> devices)
    : count_(count), each_(count), devices_(std::move(devices)) {
  // Parts of this size end at granule boundaries, for every size of an element.
  if (devices_.size() > 1)
    each_ = round_up(std::max<std::uint64_t>((count + devices_.size() - 1) / devices_.size(), 1),
                     granularity() / least_element);
}

placement shares::where(std::size_t bytes) const {
  return devices_.size() == 1 ? on_device(devices_.front()) : block_cyclic_distribution(each_ * bytes, devices_);
}

plan::plan(const problem& what, const choice& how, std::vector<int> devices)
    : what_(checked(what)),
      how_(how),
      devices_(all_unless(std::move(devices))),
      soft_(is_soft(devices_.front())),
      table_(what.table, devices_),
      stream_(what.count, devices_),
      types_{what.direction, static_cast<std::uint32_t>(what.element), static_cast<std::uint32_t>(what.index)},
      module_(own_module()),
      access_(module_, "gather_access"),
      mark_(module_, "gather_mark"),
      count_(module_, "gather_count"),
      offsets_(module_, "gather_offsets"),
      move_(module_, "gather_move") {
  const bool partitioned = how.how == method::partitioned;
  const std::uint32_t most = partitioned ? most_chunks(devices_.front()) : std::numeric_limits<std::uint32_t>::max();
  if (how.chunks == 0 || how.chunks > most)
    refuse(fmt::format("{} chunks are not possible; choose from 1 to {}", how.chunks, most));
  const bool marks = what.keeps_order();
  if (partitioned && marks)
    refuse(
        "a partition does not keep the order of equal indices, but duplicates::last and elements of 32 bytes need this "
        "order; single and multiple passes keep it");
  if (how.how == method::staged && devices_.size() > 1) refuse("a table can be staged for one device, not for several");
  for (const int d : devices_) {
    units_.push_back(device_info(d).compute_units);
    status_.emplace_back(1, on_device(d));
    status_.back()[0].first_out_of_range = kernels::gather_in_range;
  }
  if (marks) winners_ = array<std::uint64_t>(what.table, table_.where(sizeof(std::uint64_t)));
  const std::uint64_t chunks = how.how == method::single_pass ? 1 : how.chunks;
  const bool by_home = devices_.size() > 1 && partitioned;
  chunks_ = kernels::divide(what.table, by_home ? table_.each() : (what.table + chunks - 1) / chunks);
  if (how.how == method::staged)
    stage_ = array<std::byte>(std::min(chunks_.chunk, what.table) * what.element, on_device(devices_.front()));
  for (std::size_t d = 0; d < devices_.size() && partitioned; ++d) {
    const std::uint64_t own = stream_.size(d), room = std::max<std::uint64_t>(own, 1);
    const std::uint32_t parts = parts_on(soft_, units_[d]);
    const placement here = on_device(devices_[d]);
    streams s{array<std::byte>(room * what.index, here),
              array<std::byte>(room * what.element, here),
              array<std::uint64_t>((std::uint64_t{chunks_.count} + 1) * parts, here),
              {types_, chunks_, nullptr, own, stream_.begin(d), parts, nullptr, status_[d].data()}};
    s.partition.offsets = s.offsets.data();
    streams_.push_back(std::move(s));
  }
}

double plan::workspace(const problem& what, const choice& how, std::size_t devices) {
  double bytes = 0;
  if (how.how == method::partitioned)
    bytes += static_cast<double>(what.count) * static_cast<double>(what.element + what.index);
  if (how.how == method::staged)
    bytes += static_cast<double>(what.table) * static_cast<double>(what.element) / how.chunks;
  if (what.keeps_order()) bytes += static_cast<double>(what.table) * sizeof(std::uint64_t);
  return bytes + static_cast<double>(devices) * static_cast<double>(granularity());
}

plan::part plan::part_of(std::size_t device, const void* indices, void* values) const {
  const std::uint64_t first = stream_.begin(device);
  return {static_cast<const std::byte*>(indices) + first * what_.index,
          static_cast<std::byte*>(values) + first * what_.element, first, stream_.size(device)};
}

std::span<std::byte> plan::all(const void* data, std::uint64_t count, std::size_t bytes) const {
  return {static_cast<std::byte*>(const_cast<void*>(data)), count * bytes};
}

hpeShape plan::shape(std::size_t device, std::uint64_t count) const {
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  constexpr std::uint64_t tile = kernels::gather_access_threads;
  const std::uint64_t tiles = std::clamp<std::uint64_t>((count + tile - 1) / tile, 1, most);
  // A few tiles for each thread of a soft device, so that no thread waits long for another at the end.
  const std::uint64_t limit = soft_ ? std::uint64_t{4} * units_[device] : tiles;
  return {{static_cast<std::uint32_t>(std::min(tiles, limit)), 1, 1}, {kernels::gather_access_threads, 1, 1}};
}

void plan::run(void* table, const void* indices, void* values) {
  if (what_.count == 0) return;
  if (table == nullptr || indices == nullptr || values == nullptr)
    refuse("the address of the table, the indices or the values is null");
  const auto aligned = [](const void* p, std::size_t unit) { return reinterpret_cast<std::uintptr_t>(p) % unit == 0; };
  const std::size_t unit = std::min<std::size_t>(what_.element, 16);
  if (!aligned(table, unit) || !aligned(values, unit) || !aligned(indices, what_.index))
    refuse(fmt::format(
        "the addresses of table and values must be multiples of {} bytes, and that of the indices a multiple of {}",
        unit, what_.index));
  if (how_.how == method::partitioned)
    run_partitioned(table, indices, values);
  else
    run_passes(table, indices, values);
}

void plan::mark(const void* indices) {
  fill(winners_.data(), 0, winners_.size() * sizeof(std::uint64_t));
  std::vector<team_member<kernels::gather_mark_parameters>> members;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const part own = part_of(d, indices, nullptr);
    if (own.count == 0) continue;
    members.push_back({devices_[d],
                       shape(d, own.count),
                       {types_.index, own.indices, own.count, own.first, what_.table, winners_.data()}});
  }
  launch_team(mark_, members, {in(all(indices, what_.count, what_.index)), inout(winners_)});
}

void plan::access(const std::vector<kernels::gather_access_parameters>& of_devices,
                  const std::vector<hpeAccess>& uses) {
  std::vector<team_member<kernels::gather_access_parameters>> members;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    std::uint64_t most = 0;
    for (std::uint32_t s = 0; s < of_devices[d].stream_count; ++s)
      most = std::max(most, of_devices[d].streams[s].count);
    if (most > 0) members.push_back({devices_[d], shape(d, most), of_devices[d]});
  }
  launch_team(access_, members, uses);
}

void plan::run_passes(void* table, const void* indices, void* values) {
  if (winners_.data() != nullptr) mark(indices);
  const bool gathers = what_.direction == way::gather;
  const bool whole = chunks_.count <= 1 && what_.beyond == out_of_range::refuse;
  const auto data = all(table, what_.table, what_.element), results = all(values, what_.count, what_.element);
  std::vector<hpeAccess> uses{in(all(indices, what_.count, what_.index)), gathers ? in(data) : inout(data),
                              !gathers ? in(results)
                              : whole  ? out(results)
                                       : inout(results)};
  if (winners_.data() != nullptr) uses.push_back(in(winners_));
  for (const auto& s : status_) uses.push_back(inout(s));
  // A table without elements has no chunk, but still needs one pass, which finds that its indices are out of range.
  for (std::uint32_t pass = 0; pass < std::max(chunks_.count, 1U); ++pass) {
    const std::uint64_t from = pass * chunks_.chunk, to = std::min(from + chunks_.chunk, what_.table);
    std::byte* const chunk = static_cast<std::byte*>(table) + from * what_.element;
    const std::size_t bytes = (to - from) * what_.element;
    const bool staged = bytes > 0 && how_.how == method::staged;
    if (staged) {
      hpe::copy(stage_.data(), chunk, bytes);
      uses[1] = gathers ? in(stage_) : inout(stage_);
    }
    // Indices count from the beginning of the table. Therefore, the kernel receives the address at which the table
    // would begin if the staged copy were part of the table.
    void* const begin = staged ? stage_.data() - from * what_.element : table;
    std::vector<kernels::gather_access_parameters> members;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const part own = part_of(d, indices, values);
      members.push_back({types_,
                         begin,
                         what_.table,
                         from,
                         to,
                         winners_.data(),
                         own.first,
                         pass == 0 ? status_[d].data() : nullptr,
                         1,
                         {{own.indices, own.values, own.count, nullptr, nullptr}}});
    }
    access(members, uses);
    if (staged && !gathers) hpe::copy(chunk, stage_.data(), bytes);
  }
}

void plan::run_partitioned(void* table, const void* indices, void* values) {
  const bool gathers = what_.direction == way::gather;
  const auto move = [&](std::size_t d, bool back) {
    const part own = part_of(d, indices, values);
    if (own.count == 0) return;
    streams& s = streams_[d];
    s.partition.indices = own.indices;
    const auto given = in(all(own.indices, own.count, what_.index)),
               values_here = in(all(own.values, own.count, what_.element));
    const hpeShape parts{{s.partition.parts, 1, 1}, {kernels::gather_move_threads, 1, 1}};
    const kernels::gather_move_parameters p{s.partition, s.indices.data(), s.values.data(), own.values, back ? 1U : 0U};
    if (back) {
      const auto written = all(own.values, own.count, what_.element);
      return launch_on(devices_[d], move_, parts, p, given, in(s.offsets), in(s.values),
                       what_.beyond == out_of_range::skip ? inout(written) : out(written));
    }
    launch_on(devices_[d], count_, parts, s.partition, given, inout(s.offsets), inout(status_[d]));
    launch_on(devices_[d], offsets_, {{1, 1, 1}, {kernels::gather_offsets_threads, 1, 1}}, s.partition,
              inout(s.offsets));
    if (gathers) return launch_on(devices_[d], move_, parts, p, given, in(s.offsets), out(s.indices));
    launch_on(devices_[d], move_, parts, p, given, in(s.offsets), out(s.indices), out(s.values), values_here);
  };
  for (std::size_t d = 0; d < devices_.size(); ++d) move(d, false);

  const auto data = all(table, what_.table, what_.element);
  std::vector<hpeAccess> uses{gathers ? in(data) : inout(data)};
  for (const streams& s : streams_)
    uses.insert(uses.end(), {in(s.indices), gathers ? inout(s.values) : in(s.values), in(s.offsets)});
  std::vector<kernels::gather_access_parameters> members;
  for (std::size_t home = 0; home < devices_.size(); ++home) {
    kernels::gather_access_parameters p{types_, table, what_.table, 0, what_.table, nullptr, 0, nullptr, 0, {}};
    // A single device accesses all chunks; of several devices, each accesses its own chunk. No chunk begins beyond the
    // table's end.
    const std::uint64_t first = devices_.size() == 1 ? 0 : home, last = devices_.size() == 1 ? chunks_.count : home + 1;
    for (std::size_t k = 0; k < devices_.size() && first < chunks_.count; ++k) {
      // Each device processes its own stream first, then the streams of the next devices in turn, so that the devices
      // use different links at the same time.
      const streams& s = streams_[(home + k) % devices_.size()];
      const std::uint64_t parts = s.partition.parts;
      if (s.partition.count > 0)
        p.streams[p.stream_count++] = {s.indices.data(), s.values.data(), s.partition.count,
                                       s.offsets.data() + first * parts, s.offsets.data() + last * parts};
    }
    members.push_back(p);
  }
  if (chunks_.count > 0) access(members, uses);
  for (std::size_t d = 0; d < devices_.size() && gathers; ++d) move(d, true);
}

void plan::finish(const void* indices) {
  synchronize();
  std::uint64_t place = kernels::gather_in_range;
  for (const auto& s : status_) {
    place = std::min(place, s[0].first_out_of_range);
    if (s[0].first_out_of_range != kernels::gather_in_range) s[0].first_out_of_range = kernels::gather_in_range;
  }
  if (place == kernels::gather_in_range || what_.beyond == out_of_range::skip) return;
  const std::uint64_t index = what_.index == 4 ? static_cast<const std::uint32_t*>(indices)[place]
                                               : static_cast<const std::uint64_t*>(indices)[place];
  refuse(fmt::format("index {} at place {} is out of range: the table has {} elements", index, place, what_.table));
}

random_indices::random_indices(std::vector<int> devices)
    : devices_(all_unless(std::move(devices))), random_(module(own_module()), "gather_random") {}

void random_indices::fill(void* indices, std::size_t index, const shares& parts, std::uint64_t table,
                          std::uint64_t seed, std::uint64_t partitions) {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const std::uint64_t own = parts.size(d);
    if (own == 0) continue;
    std::byte* const begin = static_cast<std::byte*>(indices) + parts.begin(d) * index;
    const std::uint32_t tiles = static_cast<std::uint32_t>(std::min<std::uint64_t>((own + 255) / 256, 1 << 14));
    launch_on(
        devices_[d], random_, grid(tiles),
        {begin, static_cast<std::uint32_t>(index), own, table, seed * kernels::gather_most_devices + d, partitions},
        out(std::span(begin, own * index)));
  }
}

}  // namespace hpe::gather
