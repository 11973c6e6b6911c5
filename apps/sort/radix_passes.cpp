// Each kernel is one launch on all devices, so no device begins a pass before all devices have ended the previous pass.
// count() clears the counts before it launches the counting kernel. The launch before a pass clears the sums of tiles
// of that pass.

#include "apps/sort/radix_passes.h"

#include <algorithm>

namespace hpe::sort {

using kernels::radix_pass_parameters;

radix_passes::radix_passes(const module& kernels, const std::string& name, const kernels::radix_types& types,
                           const std::vector<part>& parts)
    : digits_{types.key, static_cast<std::uint32_t>(parts.size())},
      sample_(kernels, "radix_sample"),
      count_(kernels, ("radix_count_" + name).c_str()),
      places_(kernels, "radix_places"),
      first_pass_(kernels, ("radix_pass_first_" + name).c_str()),
      pass_(kernels, ("radix_pass_" + name).c_str()),
      wide_pass_(kernels, ("radix_pass_wide_" + name).c_str()) {
  if (parts.size() > most_devices)
    throw error(HPE_ERROR_INVALID_ARGUMENT, std::to_string(parts.size()) + " devices cannot sort by radix; " +
                                                std::to_string(most_devices) + " can");
  const std::uint64_t all = parts.back().begin + parts.back().count;
  if (all > most_elements)
    throw error(HPE_ERROR_INVALID_ARGUMENT, std::to_string(all) + " elements cannot be sorted by radix on GPUs; " +
                                                std::to_string(most_elements) + " can");
  radix_pass_parameters common{};
  common.types = types;
  common.devices = static_cast<std::uint32_t>(parts.size());
  for (std::size_t d = 0; d < parts.size(); ++d) {
    common.begins[d] = parts[d].begin;
    devices_.push_back(parts[d].device);
    counts_.emplace_back(1, on_device(parts[d].device));
    states_.emplace_back(1, on_device(parts[d].device));
    common.counts[d] = counts_.back().data();
  }
  common.begins[parts.size()] = all;
  for (std::size_t d = 0; d < parts.size(); ++d) {
    common.device = static_cast<std::uint32_t>(d);
    common.state = states_[d].data();
    parameters_.push_back(common);
    const placement here = on_device(devices_[d]);
    const std::uint64_t words = kernels::radix_sum_words(common);
    sums_.push_back({array<std::uint32_t>(words, here), array<std::uint32_t>(words, here)});
    // Five counting blocks run on a multiprocessor at a time. A pass has a block for each tile if ranges are not much
    // longer than parts; otherwise blocks process several tiles.
    constexpr std::uint32_t at_once = 5;
    const std::uint32_t tiles = std::max(common.own().tiles(common.tile()), 1U);
    counting_blocks_.push_back(std::min(tiles, at_once * device_info(devices_[d]).compute_units));
    pass_blocks_.push_back(tiles + tiles / 16 + std::min(tiles, kernels::radix_most_bins));
  }
}

std::span<std::byte> radix_passes::all(const std::byte* data) const {
  const radix_pass_parameters& any = parameters_.front();
  return {const_cast<std::byte*>(data), any.begins[any.devices] * any.types.element};
}

void radix_passes::launch_all(const kernel<radix_pass_parameters>& what, const std::vector<std::uint32_t>& blocks,
                              std::uint32_t threads, std::vector<hpeAccess> accesses) {
  std::vector<team_member<radix_pass_parameters>> members;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    members.push_back({devices_[d], {{blocks[d], 1, 1}, {threads, 1, 1}}, parameters_[d]});
    accesses.push_back(inout(states_[d]));
  }
  launch_team(what, members, accesses);
}

void radix_passes::count(const std::byte* data) {
  std::vector<hpeAccess> counting{in(all(data))}, placing;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    fill(counts_[d].data(), 0, sizeof(kernels::radix_pass_counts));
    parameters_[d].from = data;
    parameters_[d].sums = sums_[d][0].data();
    counting.push_back(inout(counts_[d]));
    counting.push_back(inout(sums_[d][0]));
    placing.push_back(in(counts_[d]));
  }
  const std::vector<std::uint32_t> one(devices_.size(), 1), splitters(devices_.size(), digits_.devices - 1);
  if (digits_.devices > 1) launch_all(sample_, splitters, kernels::radix_sample_threads, {in(all(data))});
  launch_all(count_, counting_blocks_, kernels::radix_pass_threads, counting);
  launch_all(places_, one, kernels::radix_most_bins, placing);
}

void radix_passes::pass(std::uint32_t number, std::byte* data, std::byte* other) {
  std::byte* const from = number % 2 == 0 ? data : other;
  std::byte* const to = number % 2 == 0 ? other : data;
  std::vector<hpeAccess> accesses{in(all(from)), out(all(to))};
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    radix_pass_parameters& p = parameters_[d];
    p.from = from;
    p.to = to;
    p.pass = number;
    p.sums = sums_[d][number % 2].data();
    p.next_sums = number + 1 < digits_.passes() ? sums_[d][(number + 1) % 2].data() : nullptr;
    for (const array<std::uint32_t>& sums : sums_[d]) accesses.push_back(inout(sums));
  }
  const bool wide = digits_.bins(number) == kernels::radix_most_bins;
  launch_all(number == 0 ? first_pass_
             : wide      ? wide_pass_
                         : pass_,
             pass_blocks_, kernels::radix_pass_threads, accesses);
}

void radix_passes::exchange(std::byte* data, std::byte* other) {
  pass(0, data, other);
  pass(1, data, other);
}

void radix_passes::finish(std::byte* data, std::byte* other) {
  for (std::uint32_t number = 2; number < digits_.passes(); ++number) pass(number, data, other);
}

}  // namespace hpe::sort
