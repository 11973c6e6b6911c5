#include "apps/sort/sorter.h"

#include <algorithm>
#include <limits>

#include "apps/modules/modules.h"

namespace hpe::sort {

namespace {

std::vector<int> all_unless(std::vector<int> wished) {
  if (wished.empty())
    for (int d = 0; d < device_count(); ++d) wished.push_back(d);
  return wished;
}

/// The most groups of parts that the next round merges into one.
std::size_t together(std::size_t groups) { return groups > 2 ? kernels::sort_runs : 2; }

std::size_t rounds(std::size_t parts) {
  std::size_t result = 0;
  for (std::size_t groups = parts; groups > 1; ++result) {
    const std::size_t each = together(groups);
    groups = (groups + each - 1) / each;
  }
  return result;
}

bool soft(int device) { return device_info(device).kind == HPE_DEVICE_SOFT; }

}  // namespace

std::string own_module() { return modules::require("libhpe-sort-kernels.so"); }

sorter::sorter(const element& what, std::uint64_t count, std::vector<int> devices)
    : what_(what),
      count_(count),
      devices_(all_unless(std::move(devices))),
      module_(what.module.empty() ? own_module() : what.module),
      merge_(module_, ("sort_merge_" + what.name).c_str()),
      merge_four_(module_, ("sort_merge_four_" + what.name).c_str()) {
  if (count > std::numeric_limits<std::int64_t>::max() / what.size)
    throw error(HPE_ERROR_INVALID_ARGUMENT, std::to_string(count) + " elements of " + std::to_string(what.size) +
                                                " bytes are more bytes than can be counted");
  for (const int d : devices_)
    if (std::count(devices_.begin(), devices_.end(), d) > 1)
      throw error(HPE_ERROR_INVALID_ARGUMENT, "device " + std::to_string(d) + " is listed twice");
  for (const int d : devices_) units_.push_back(device_info(d).compute_units);
  const bool on_soft = soft(devices_.front());
  if (on_soft) check(hpeModuleGetKernel(&local_, module_.get(), ("sort_local_" + what.name).c_str()));
  const local_sort* const on_gpus = what.on_gpus != nullptr ? what.on_gpus : find_local_sort(what.name);
  if (!on_soft && on_gpus == nullptr)
    throw error(
        HPE_ERROR_NOT_SUPPORTED,
        "GPUs cannot sort " + what.name +
            ": it is none of hpe's own types (or hpe was built without a CUDA toolkit), and the program gives no "
            "sort for it (element::on_gpus)");
  if (count > 0) other_ = array<std::byte>(count * what.size, where());
  const bool in_place = rounds(devices_.size()) % 2 == 0;
  for (std::size_t d = 0; d < devices_.size() && !on_soft; ++d) {
    scratch_.emplace_back(std::max<std::size_t>(on_gpus->scratch(cut(d + 1) - cut(d), in_place), 1),
                          on_device(devices_[d]));
    on_gpus_.emplace_back(*on_gpus);
  }
}

std::uint64_t sorter::cut(std::size_t part) const {
  // Parts end at the bounds of granules if each part has enough granules.
  const std::uint64_t unit = granularity() / what_.size, even = count_ * part / devices_.size();
  if (part == devices_.size()) return count_;
  return count_ / devices_.size() >= unit * 64 ? even / unit * unit : even;
}

std::span<std::byte> sorter::part_of(const std::byte* data, std::uint64_t from, std::uint64_t to) const {
  return {const_cast<std::byte*>(data) + from * what_.size, (to - from) * what_.size};
}

void sorter::run(void* data) {
  for (const step& s : steps(data)) s.queue();
}

std::vector<sorter::step> sorter::steps(void* data) {
  if (count_ == 0) return {};
  if (data == nullptr) throw error(HPE_ERROR_INVALID_ARGUMENT, "a sort needs data, and its address is null");
  auto* const given = static_cast<std::byte*>(data);
  std::byte* const other = other_.data();
  // The last round must write to the data.
  const std::size_t count = rounds(devices_.size());
  std::byte* from = count % 2 == 0 ? given : other;
  std::byte* to = count % 2 == 0 ? other : given;
  std::vector<step> all{{"local sorts", [this, given, from] { sort_parts(given, from); }}};
  const std::size_t parts = devices_.size();
  for (std::size_t group = 1; group < parts;) {
    const std::size_t each = together((parts + group - 1) / group);
    all.push_back({"merges of " + std::to_string(each) + " x " + std::to_string(group),
                   [this, from, to, group, each] { merge_round(from, to, group, each); }});
    std::swap(from, to);
    group *= each;
  }
  return all;
}

void sorter::sort_parts(std::byte* from, std::byte* to) {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const std::uint64_t begin = cut(d), end = cut(d + 1);
    if (begin == end) continue;
    const std::span<std::byte> input = part_of(from, begin, end), output = part_of(to, begin, end);
    const bool in_place = from == to;
    if (local_ == nullptr) {
      const std::span<std::byte> workspace = part_of(other_.data(), begin, in_place ? end : begin);
      on_gpus_[d].run({devices_[d], input, output, workspace, scratch_[d].span()});
      continue;
    }
    const kernels::sort_local<std::byte> p{input.data(), output.data(), end - begin};
    const hpeShape one = grid(1);
    const hpeAccess uses[] = {in_place ? inout(output) : in(input), out(output)};
    check(hpeLaunch(devices_[d], local_, &one, &p, sizeof p, uses, in_place ? 1 : 2));
  }
}

void sorter::merge_round(const std::byte* from, std::byte* to, std::size_t parts_in_group, std::size_t groups) {
  const std::size_t parts = devices_.size(), in_result = parts_in_group * groups;
  for (std::size_t d = 0; d < parts; ++d) {
    const std::size_t first = d / in_result * in_result;
    std::vector<std::uint64_t> cuts;
    for (std::size_t g = 0; g <= groups; ++g) cuts.push_back(cut(std::min(first + g * parts_in_group, parts)));
    merge(from, to, d, cuts);
  }
}

/// Merges the sorted runs between neighbouring cuts, as far as their elements end up in the device's part.
void sorter::merge(const std::byte* from, std::byte* to, std::size_t device, const std::vector<std::uint64_t>& cuts) {
  const std::uint64_t begin = cuts.front(), end = cuts.back();
  const std::span<std::byte> result = part_of(to, cut(device), cut(device + 1));
  if (result.empty()) return;
  std::byte* const output = part_of(to, begin, end).data();
  const std::uint64_t first = cut(device) - begin, last = cut(device + 1) - begin;
  // On soft devices each thread has a few tiles, so that no thread waits long for another at the end.
  const std::uint32_t units = units_[device];
  const std::uint32_t tiles = local_ != nullptr ? 4 * units : kernels::merge_blocks(last - first, units);
  const hpeShape shape{{tiles, 1, 1}, {kernels::merge_threads, 1, 1}};
  const hpeAccess read = in(part_of(from, begin, end)), written = out(result);
  const auto run = [&](std::size_t g) { return part_of(from, cuts[g], end).data(); };
  const auto count = [&](std::size_t g) { return cuts[g + 1] - cuts[g]; };
  if (cuts.size() == 3) {
    const kernels::sort_merge<std::byte> p{run(0), run(1), count(0), count(1), output, first, last};
    return launch_on(devices_[device], merge_, shape, p, read, written);
  }
  kernels::sort_merge_four<std::byte> p{};
  for (std::size_t g = 0; g + 1 < cuts.size(); ++g) {
    p.runs[g] = run(g);
    p.counts[g] = count(g);
  }
  p.output = output;
  p.from = first;
  p.to = last;
  launch_on(devices_[device], merge_four_, shape, p, read, written);
}

std::string sorter::explain() const {
  const std::size_t parts = devices_.size();
  if (parts == 1) return "one device sorts everything";
  const std::size_t times = rounds(parts);
  return std::to_string(parts) + " parts, merged in " + std::to_string(times) + (times == 1 ? " round" : " rounds") +
         "; a device that merges searches all parts for the pivots, and reads the parts in place";
}

placement sorter::where() const {
  return devices_.size() == 1 ? on_device(devices_.front()) : block_distribution(devices_);
}

}  // namespace hpe::sort
