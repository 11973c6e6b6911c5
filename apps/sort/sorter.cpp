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

std::size_t rounds(std::size_t parts) {
  std::size_t result = 0;
  for (std::size_t group = 1; group < parts; group *= 2) ++result;
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
      merge_(module_, ("sort_merge_" + what.name).c_str()) {
  if (count > std::numeric_limits<std::int64_t>::max() / what.size)
    throw error(HPE_ERROR_INVALID_ARGUMENT, std::to_string(count) + " elements of " + std::to_string(what.size) +
                                                " bytes are more bytes than can be counted");
  for (const int d : devices_)
    if (std::count(devices_.begin(), devices_.end(), d) > 1)
      throw error(HPE_ERROR_INVALID_ARGUMENT, "device " + std::to_string(d) + " is listed twice");
  for (const int d : devices_) units_.push_back(device_info(d).compute_units);
  const bool on_soft = soft(devices_.front());
  if (on_soft) check(hpeModuleGetKernel(&local_, module_.get(), ("sort_local_" + what.name).c_str()));
  if (!on_soft) on_gpus_ = what.on_gpus != nullptr ? what.on_gpus : find_local_sort(what.name);
  if (!on_soft && on_gpus_ == nullptr)
    throw error(
        HPE_ERROR_NOT_SUPPORTED,
        "GPUs cannot sort " + what.name +
            ": it is none of hpe's own types (or hpe was built without a CUDA toolkit), and the program gives no "
            "sort for it (element::on_gpus)");
  for (std::size_t d = 0; d < devices_.size(); ++d) parts_.push_back({cut(d), cut(d + 1), d});
  const std::size_t chunk = chunk_between();
  between_ = chunk == 0 ? parts_ : pieces_between(chunk);
  if (count > 0)
    other_ = array<std::byte>(count * what.size, chunk == 0 ? where() : block_cyclic_distribution(chunk, devices_));
  const bool in_place = rounds(devices_.size()) % 2 == 0;
  for (std::size_t d = 0; d < devices_.size() && !on_soft; ++d) {
    const std::uint64_t own = cut(d + 1) - cut(d);
    scratch_.emplace_back(std::max<std::size_t>(on_gpus_->scratch(own, in_place), 1), on_device(devices_[d]));
    if (chunk != 0) workspaces_.emplace_back(own * what.size, on_device(devices_[d]));
  }
}

std::uint64_t sorter::cut(std::size_t part) const {
  // Parts end where granules do, if there are enough of them.
  const std::uint64_t unit = granularity() / what_.size, even = count_ * part / devices_.size();
  if (part == devices_.size()) return count_;
  return count_ / devices_.size() >= unit * 64 ? even / unit * unit : even;
}

/// In which chunks other_ is dealt out; 0: it is cut as the data are. The local sorts leave what they sorted in other_
/// where the rounds are odd in number, and then it is cut like that.
std::size_t sorter::chunk_between() const {
  const std::size_t last = rounds(devices_.size());
  if (last == 0 || last % 2 != 0) return 0;
  constexpr std::size_t least = 4;  // granules; shorter chunks would be of too different lengths
  const std::uint64_t left = cut(std::size_t{1} << (last - 1)) * what_.size, each = left / devices_.size();
  return each < least * granularity() ? 0 : (each + granularity() - 1) / granularity() * granularity();
}

std::vector<sorter::piece> sorter::pieces_between(std::size_t chunk) const {
  std::vector<piece> pieces;
  for (std::uint64_t i = 0, from = 0; from < count_; ++i) {
    const std::uint64_t to = std::min<std::uint64_t>(((i + 1) * chunk + what_.size - 1) / what_.size, count_);
    pieces.push_back({from, to, i % devices_.size()});
    from = to;
  }
  return pieces;
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
  // After the last round the result is to be in the data.
  const std::size_t count = rounds(devices_.size());
  std::byte* from = count % 2 == 0 ? given : other;
  std::byte* to = count % 2 == 0 ? other : given;
  std::vector<step> all{{"local sorts", [this, given, from] { sort_parts(given, from); }}};
  for (std::size_t group = 1; group < devices_.size(); group *= 2) {
    all.push_back({"merges of " + std::to_string(group) + " and " + std::to_string(group),
                   [this, from, to, &of_target = to == given ? parts_ : between_, group] {
                     merge_round(from, to, of_target, group);
                   }});
    std::swap(from, to);
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
      const std::span<std::byte> workspace =
          !workspaces_.empty() ? workspaces_[d].span() : part_of(other_.data(), begin, in_place ? end : begin);
      on_gpus_->run({devices_[d], input, output, workspace, scratch_[d].span()});
      continue;
    }
    const kernels::sort_local<std::byte> p{input.data(), output.data(), end - begin};
    const hpeShape one = grid(1);
    const hpeAccess uses[] = {in_place ? inout(output) : in(input), out(output)};
    check(hpeLaunch(devices_[d], local_, &one, &p, sizeof p, uses, in_place ? 1 : 2));
  }
}

void sorter::merge_round(const std::byte* from, std::byte* to, const std::vector<piece>& of_target,
                         std::size_t parts_in_group) {
  const std::size_t parts = devices_.size();
  for (std::size_t first = 0; first < parts; first += 2 * parts_in_group) {
    const std::uint64_t begin = cut(first), centre = cut(std::min(first + parts_in_group, parts)),
                        end = cut(std::min(first + 2 * parts_in_group, parts));
    for (const piece& p : of_target) {
      const piece result{std::max(p.from, begin), std::min(p.to, end), p.device};
      if (result.from < result.to) merge(from, to, result, begin, centre, end);
    }
  }
}

/// Of [begin, centre) and [centre, end), what ends up in a piece, by the device that has it.
void sorter::merge(const std::byte* from, std::byte* to, const piece& result, std::uint64_t begin, std::uint64_t centre,
                   std::uint64_t end) {
  const kernels::sort_merge<std::byte> p{part_of(from, begin, end).data(),
                                         part_of(from, centre, end).data(),
                                         centre - begin,
                                         end - centre,
                                         part_of(to, begin, end).data(),
                                         result.from - begin,
                                         result.to - begin};
  // On soft devices a few tiles for each thread, so that none waits long for another in the end.
  const std::uint32_t units = units_[result.device];
  const std::uint32_t tiles = local_ != nullptr ? 4 * units : kernels::merge_blocks(p.to - p.from, units);
  launch_on(devices_[result.device], merge_, {{tiles, 1, 1}, {kernels::merge_threads, 1, 1}}, p,
            in(part_of(from, begin, end)), out(part_of(to, result.from, result.to)));
}

std::string sorter::explain() const {
  const std::size_t parts = devices_.size();
  if (parts == 1) return "one device sorts everything";
  return std::to_string(parts) + " parts, merged in " + std::to_string(rounds(parts)) +
         " rounds; who merges looks for the pivots in all parts, and reads them where they are" +
         (between_.size() > parts ? "; before the last round each device gets what it is likely to merge" : "");
}

placement sorter::where() const {
  return devices_.size() == 1 ? on_device(devices_.front()) : block_distribution(devices_);
}

}  // namespace hpe::sort
