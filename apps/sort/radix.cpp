// The launches of a run are ordered by the arrays that they declare, so the host does not wait between them.

#include "apps/sort/radix.h"

#include <algorithm>

namespace hpe::sort {

namespace {

std::uint32_t digits_of(const kernels::radix_types& types) { return 8 * types.key / kernels::radix_bits; }

}  // namespace

radix_partition::radix_partition(const module& kernels, const kernels::radix_types& types, std::vector<part> parts)
    : types_(types),
      parts_(std::move(parts)),
      count_digits_(kernels, "radix_count_digits"),
      choose_(kernels, "radix_choose_digits"),
      count_classes_(kernels, "radix_count_classes"),
      move_(kernels, "radix_move"),
      place_(kernels, "radix_offsets") {
  if (parts_.size() > most_devices)
    throw error(HPE_ERROR_INVALID_ARGUMENT, std::to_string(parts_.size()) + " devices cannot sort by radix; " +
                                                std::to_string(most_devices) + " can");
  std::vector<std::uint64_t> bounds;
  for (const part& p : parts_) {
    count_ += p.count;
    for (std::uint32_t r = 0; r < p.ranges; ++r) bounds.push_back(p.begin + bound(p.count, r, p.ranges));
    const std::uint32_t units = device_info(p.device).compute_units;
    // On soft devices, some tiles for each thread, so that no thread waits long for another thread at the end.
    constexpr std::uint64_t least = 4096;
    tiles_.push_back(
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(p.count / least, 1, std::uint64_t{4} * units)));
  }
  if (bounds.size() > most_ranges)
    throw error(HPE_ERROR_INVALID_ARGUMENT, std::to_string(bounds.size()) + " ranges are too many; " +
                                                std::to_string(most_ranges) + " are possible");
  splitter_count_ = static_cast<std::uint32_t>(bounds.size()) - 1;
  const placement first = on_device(parts_.front().device);
  boundaries_ = array<kernels::radix_splitters>(1, first);
  splitters_ = array<kernels::radix_splitters>(1, first);
  boundaries_[0] = {};
  std::copy(bounds.begin() + 1, bounds.end(), boundaries_[0].rank);
  for (std::size_t d = 0; d < parts_.size(); ++d) {
    const placement here = on_device(parts_[d].device);
    counts_.emplace_back(std::size_t{digits_of(types)} * std::max(splitter_count_, 1U) * kernels::radix_digits, here);
    offsets_.emplace_back((2 * std::size_t{splitter_count_} + 1) * tiles_[d], here);
  }
}

kernels::radix_part radix_partition::part_of(const part& p, const std::byte* from) const {
  return {types_, from + p.begin * types_.element, p.count, splitter_count_, splitters_.data()};
}

hpeShape radix_partition::shape(const part& p) const {
  return grid(tiles_[static_cast<std::size_t>(&p - parts_.data())]);
}

std::span<std::byte> radix_partition::all(const std::byte* data) const {
  return {const_cast<std::byte*>(data), count_ * types_.element};
}

void radix_partition::split(const std::byte* from) {
  copy(splitters_.data(), boundaries_.data(), sizeof(kernels::radix_splitters));
  for (const auto& counts : counts_) fill(counts.data(), 0, counts.size() * sizeof(std::uint64_t));
  std::vector<hpeAccess> uses{in(all(from)), in(splitters_)};
  for (const auto& counts : counts_) uses.push_back(inout(counts));
  for (std::uint32_t digit = 0; digit < digits_of(types_); ++digit) {
    const std::size_t begin = std::size_t{digit} * splitter_count_ * kernels::radix_digits;
    std::vector<team_member<kernels::radix_digits_parameters>> members;
    kernels::radix_choice_parameters choice{splitters_.data(), splitter_count_, digit, 0, {}};
    for (std::size_t d = 0; d < parts_.size(); ++d) {
      std::uint64_t* const counts = counts_[d].data() + begin;
      members.push_back({parts_[d].device, shape(parts_[d]), {part_of(parts_[d], from), digit, counts}});
      choice.counts[choice.devices++] = counts;
    }
    launch_team(count_digits_, members, uses);
    std::vector<team_member<kernels::radix_choice_parameters>> one{{parts_.front().device, grid(1), choice}};
    std::vector<hpeAccess> choosing{inout(splitters_)};
    for (const auto& counts : counts_) choosing.push_back(in(counts));
    launch_team(choose_, one, choosing);
  }
}

void radix_partition::move(const std::byte* from, std::byte* to) {
  std::vector<hpeAccess> counting{in(all(from)), in(splitters_)}, placing;
  for (const auto& offsets : offsets_) {
    counting.push_back(out(offsets));
    placing.push_back(inout(offsets));
  }
  std::vector<team_member<kernels::radix_classes_parameters>> members;
  kernels::radix_offsets_parameters places{2 * splitter_count_ + 1, 0, {}, {}};
  for (std::size_t d = 0; d < parts_.size(); ++d) {
    members.push_back({parts_[d].device, shape(parts_[d]), {part_of(parts_[d], from), offsets_[d].data(), to}});
    places.tiles[places.devices] = tiles_[d];
    places.offsets[places.devices++] = offsets_[d].data();
  }
  launch_team(count_classes_, members, counting);
  launch_team(place_, {{parts_.front().device, grid(1), places}}, placing);
  placing.insert(placing.end(), {in(all(from)), in(splitters_), out(all(to))});
  launch_team(move_, members, placing);
}

}  // namespace hpe::sort
