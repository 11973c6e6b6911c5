#include "apps/sort/sorter.h"

#include <fmt/format.h>

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

/// Returns the largest number of groups of parts that the next round merges into one group.
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

/// Whether each device reaches the memory of all other devices.
bool connected(const std::vector<int>& devices) {
  return std::all_of(devices.begin(), devices.end(), [&](int d) {
    const std::uint64_t peers = device_info(d).peers;
    return std::all_of(devices.begin(), devices.end(),
                       [&](int other) { return other == d || (peers >> other & 1) != 0; });
  });
}

/// Whether the element is a key with a value. A GPU sorts pairs with CUB's merge sort, and keys with CUB's radix sort.
bool is_pair(const element& what) { return what.radix.has_value() && what.size > what.radix->key; }

/// Chooses the method of a sort of `count` elements. On two H100 with 2^22 elements and more, radix passes take 0.43 to
/// 0.85 of the time of merges for pairs, and 1.0 to 1.4 of the time of merges for keys.
method chosen(method wished, const element& what, std::uint64_t count, const std::vector<int>& devices, bool on_soft) {
  if (wished == method::radix && !what.radix.has_value())
    throw error(HPE_ERROR_NOT_SUPPORTED, what.name + " has no radix order, so it can be sorted only by merges");
  if (wished == method::radix && !on_soft && !connected(devices))
    throw error(HPE_ERROR_NOT_SUPPORTED, "GPUs that do not reach each other's memory can sort together only by merges");
  if (wished != method::automatic) return wished;
  if (!what.radix.has_value()) return method::merge;
  // For fewer elements, the launches of a radix sort take longer than a whole sort by merges.
  constexpr std::uint64_t least_on_soft = 1 << 20, least_on_gpus = 1 << 22;
  const bool pays = on_soft ? devices.size() <= radix_partition::most_devices && count >= least_on_soft
                            : is_pair(what) && devices.size() <= radix_passes::most_devices && count >= least_on_gpus &&
                                  count <= radix_passes::most_elements && connected(devices);
  return pays ? method::radix : method::merge;
}

}  // namespace

const char* name_of(method how) {
  switch (how) {
    case method::automatic: return "auto";
    case method::merge: return "merge";
    case method::radix: return "radix";
  }
  return "";
}

std::string own_module() { return modules::require("libhpe-sort-kernels.so"); }

sorter::sorter(const element& what, std::uint64_t count, std::vector<int> devices, method wished)
    : what_(what),
      count_(count),
      devices_(all_unless(std::move(devices))),
      soft_(soft(devices_.front())),
      how_(chosen(wished, what, count, devices_, soft_)),
      module_(what.module.empty() ? own_module() : what.module),
      merge_(module_, ("sort_merge_" + what.name).c_str()),
      merge_four_(module_, ("sort_merge_four_" + what.name).c_str()) {
  if (count > std::numeric_limits<std::int64_t>::max() / what.size)
    throw error(HPE_ERROR_INVALID_ARGUMENT, std::to_string(count) + " elements of " + std::to_string(what.size) +
                                                " bytes have more than 2^63 - 1 bytes");
  for (const int d : devices_)
    if (std::count(devices_.begin(), devices_.end(), d) > 1)
      throw error(HPE_ERROR_INVALID_ARGUMENT, "device " + std::to_string(d) + " is listed twice");
  for (const int d : devices_) units_.push_back(device_info(d).compute_units);
  const std::string local = how_ == method::radix ? "radix_sort_ranges" : "sort_local_" + what.name;
  if (soft_) check(hpeModuleGetKernel(&local_, module_.get(), local.c_str()));
  const local_sort* const on_gpus = what.on_gpus != nullptr ? what.on_gpus : find_local_sort(what.name);
  if (!soft_ && on_gpus == nullptr)
    throw error(
        HPE_ERROR_NOT_SUPPORTED,
        "GPUs cannot sort " + what.name +
            ": it is none of hpe's own types (or hpe was built without a CUDA toolkit), and the program gives no "
            "sort for it (element::on_gpus)");
  if (count > 0) other_ = array<std::byte>(count * what.size, where());
  if (how_ == method::radix && count > 0 && !soft_ && (devices_.size() > 1 || is_pair(what))) {
    std::vector<radix_passes::part> parts;
    for (std::size_t d = 0; d < devices_.size(); ++d) parts.push_back({devices_[d], cut(d), cut(d + 1) - cut(d)});
    passes_.emplace(module_, what.name, *what.radix, parts);
    return;
  }
  if (how_ == method::radix && count > 0) {
    std::vector<radix_partition::part> parts;
    for (std::size_t d = 0; d < devices_.size(); ++d)
      parts.push_back({devices_[d], cut(d), cut(d + 1) - cut(d), ranges(d)});
    if (parts.size() > 1 || ranges(0) > 1) exchange_.emplace(module_, *what.radix, std::move(parts));
  }
  const bool in_place = how_ == method::radix ? devices_.size() == 1 : rounds(devices_.size()) % 2 == 0;
  for (std::size_t d = 0; d < devices_.size() && !soft_; ++d) {
    scratch_.emplace_back(std::max<std::size_t>(on_gpus->scratch(cut(d + 1) - cut(d), in_place), 1),
                          on_device(devices_[d]));
    on_gpus_.emplace_back(*on_gpus);
  }
}

std::uint64_t sorter::cut(std::size_t part) const {
  // Parts end at granule boundaries if each part has enough granules.
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
  if (data == nullptr) throw error(HPE_ERROR_INVALID_ARGUMENT, "the address of the data to sort is null");
  auto* const given = static_cast<std::byte*>(data);
  return how_ == method::radix ? radix_steps(given) : merge_steps(given);
}

std::vector<sorter::step> sorter::radix_steps(std::byte* given) {
  std::byte* const other = other_.data();
  if (passes_.has_value())
    return {{"splitters and counts", [this, given] { passes_->count(given); }},
            {"exchange", [this, given, other] { passes_->exchange(given, other); }},
            {"local passes", [this, given, other] { passes_->finish(given, other); }}};
  if (!exchange_.has_value()) return {{"local sorts", [this, given] { sort_parts(given, given); }}};
  return {{"splitters", [this, given] { exchange_->split(given); }},
          {"exchange", [this, given, other] { exchange_->move(given, other); }},
          {"local sorts", [this, given, other] { sort_parts(other, given); }}};
}

std::vector<sorter::step> sorter::merge_steps(std::byte* given) {
  std::byte* const other = other_.data();
  // The last round must write to `given`, so the number of rounds decides where the local sorts write.
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
    if (how_ == method::radix) {
      sort_ranges(d, from, to);
      continue;
    }
    const kernels::sort_local<std::byte> p{input.data(), output.data(), end - begin};
    const hpeShape one = grid(1);
    const hpeAccess uses[] = {in_place ? inout(output) : in(input), out(output)};
    check(hpeLaunch(devices_[d], local_, &one, &p, sizeof p, uses, in_place ? 1 : 2));
  }
}

void sorter::sort_ranges(std::size_t device, std::byte* from, std::byte* to) {
  const std::uint64_t begin = cut(device), end = cut(device + 1);
  const bool in_place = from == to;
  const auto input = part_of(from, begin, end), second = part_of(in_place ? other_.data() : to, begin, end);
  kernels::radix_ranges_parameters p{*what_.radix, input.data(), second.data(), in_place ? 0U : 1U, {}};
  for (std::uint32_t r = 0; r <= ranges(device); ++r)
    p.bounds[r] = radix_partition::bound(end - begin, r, ranges(device));
  const hpeShape shape = grid(ranges(device));
  const hpeAccess uses[] = {inout(input), out(second)};
  check(hpeLaunch(devices_[device], local_, &shape, &p, sizeof p, uses, 2));
}

std::uint32_t sorter::ranges(std::size_t device) const {
  if (!soft_) return 1;
  return std::max(std::min(units_[device], static_cast<std::uint32_t>(radix_partition::most_ranges / devices_.size())),
                  1U);
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

/// Merges the sorted runs between neighbouring cuts, but only the elements of the result that are in the device's part.
void sorter::merge(const std::byte* from, std::byte* to, std::size_t device, const std::vector<std::uint64_t>& cuts) {
  const std::uint64_t begin = cuts.front(), end = cuts.back();
  const std::span<std::byte> result = part_of(to, cut(device), cut(device + 1));
  if (result.empty()) return;
  std::byte* const output = part_of(to, begin, end).data();
  const std::uint64_t first = cut(device) - begin, last = cut(device + 1) - begin;
  // On soft devices each thread has a few tiles, so that no thread waits long for another thread at the end.
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
  if (passes_.has_value() && parts == 1) return "by radix: the device orders the elements by digits of their keys";
  if (passes_.has_value())
    return fmt::format(
        "by radix: {} devices order the elements by digits of their keys, from the lowest; in one pass, each element "
        "moves to the device that has its range of keys",
        parts);
  if (exchange_.has_value())
    return fmt::format(
        "by radix: each element moves once, to its part of the sorted array (counts of digits determine the bounds of "
        "the parts); then each of {} {} sorts its part",
        parts, parts == 1 ? "device" : "devices");
  if (parts == 1)
    return how_ == method::radix ? "by radix: one device sorts everything" : "one device sorts everything";
  const std::size_t times = rounds(parts);
  return fmt::format(
      "by merges: {} parts, merged in {} {}; a device that merges searches all parts for the pivots, and reads the "
      "parts in place",
      parts, times, times == 1 ? "round" : "rounds");
}

placement sorter::where() const {
  return devices_.size() == 1 ? on_device(devices_.front()) : block_distribution(devices_);
}

}  // namespace hpe::sort
