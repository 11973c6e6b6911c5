#include "runtime/spread/footprint.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "runtime/spread/model/certain_accesses.h"

namespace hpe::spread {

using namespace ptx::analysis;

namespace {

/// Whether the writes through the range's pointer contain each byte of the range, in the array at `address`.
bool are_written(const used_bytes& range, std::uint64_t address, const std::vector<certain_access>& certain) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> written;
  for (const certain_access& each : certain)
    if (each.pointer == range.pointer && each.what == access_kind::write)
      written.insert(written.end(), each.ranges.begin(), each.ranges.end());
  std::ranges::sort(written);
  std::uint64_t end = address + range.first;
  for (const auto& [first, last] : written) {
    if (first > end) break;
    end = std::max(end, last);
  }
  return end >= address + range.last;
}

// Bytes are treated as rows only if the rows contain at least this part of the range, are at most this many, and are in
// planes of at least this size. Otherwise, copies of the bytes between the rows may take longer than a copy of the
// range.
constexpr double least_part = 0.75;
constexpr std::size_t most_rows = std::size_t{1} << 18, least_plane = std::size_t{256} << 10;

/// Returns the bytes that one write through the range's pointer writes, if they are rows that contain most of the
/// range.
std::optional<placed_box> find_rows(const used_bytes& range, std::uint64_t address,
                                    const std::vector<certain_access>& certain) {
  const certain_access* most = nullptr;
  for (const certain_access& each : certain)
    if (each.pointer == range.pointer && each.what == access_kind::write && each.shape &&
        (most == nullptr || each.shape->bytes() > most->shape->bytes()))
      most = &each;
  if (most == nullptr) return std::nullopt;
  const box& shape = *most->shape;
  const std::uint64_t begin = most->ranges.front().first;
  if (begin < address + range.first || shape.span() > address + range.last - begin) return std::nullopt;
  const bool is_worth_it =
      static_cast<double>(shape.bytes()) >= least_part * static_cast<double>(range.last - range.first) &&
      saturated_product(shape.extent.rows, shape.extent.planes) <= most_rows &&
      (shape.extent.planes == 1 || shape.strides.plane >= least_plane);  // each plane needs copies of its own
  return is_worth_it ? std::optional(placed_box{static_cast<std::ptrdiff_t>(begin - address), shape}) : std::nullopt;
}

}  // namespace

footprint::footprint(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays)
    : kernel_(kernel),
      launch_(l),
      arrays_(arrays),
      ranges_(kernel, l),
      limits_(ranges_.counters.size()),
      limits_known_(limits_.size()),
      found_(kernel.pointers().size()),
      obstacle_(find_obstacle()) {}

// Returns why the footprint is unknown, or an empty string. If the base of an address may be an integer instead of a
// pointer, and the rest of the address depends on data, the access may be to any memory.
std::string footprint::find_obstacle() const {
  constexpr const char* unknown = "it reads pointers from memory, or makes accesses that hpe cannot analyse";
  if (!kernel_.analysis().left_out.empty()) return "it has code that hpe does not know: " + kernel_.analysis().left_out;
  if (!kernel_.analysis().walk->is_complete()) return "it has control flow that hpe cannot analyse";
  if (kernel_.analysis().uses_other_memory) return "it uses textures or surfaces, or launches kernels itself";
  if (kernel_.finds_pointers()) return unknown;
  const expressions& table = kernel_.analysis().walk->table();
  for (const access& a : kernel_.analysis().accesses)
    for (const address_form& f : a.forms)
      if (kernel_.pointer_of(f) && !table.of(*f.base).is_pointer && f.how == address_class::data_dependent)
        return unknown;
  return {};
}

std::vector<used_bytes> footprint::of(const subgrid& blocks) {
  ranges_.go_to(blocks);
  const loop_counts& counts = kernel_.counts();
  for (const std::uint32_t loop : counts.order()) {
    if (!limits_known_[loop]) {
      limits_[loop] = ranges_.most_of(loop);
      limits_known_[loop] = counts.is_uniform(loop);
    }
    if (limits_[loop]) ranges_.bounds.limit(loop, *limits_[loop]);
  }
  std::fill(found_.begin(), found_.end(), std::nullopt);
  for (const access& a : kernel_.analysis().accesses) {
    if (std::ranges::any_of(a.where, [this](const comparison& c) { return ranges_.bounds.never_holds(c); })) continue;
    for (const address_form& f : a.forms) add(a, f);
  }
  std::vector<used_bytes> result;
  for (const std::optional<used_bytes>& each : found_)
    if (each) result.push_back(*each);
  return result;
}

std::vector<used_bytes> footprint::of(const part_of_devices& part) {
  std::vector<used_bytes> all;
  for (const subgrid& each : part) {
    if (each.blocks() == 0) continue;
    const std::vector<used_bytes> own = of(each);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

// A byte that the blocks certainly write, and that no pointer reads, does not keep its old value.
std::vector<used_bytes> footprint::with_overwritten(const part_of_devices& part) {
  std::vector<used_bytes> all;
  for (const subgrid& each : part) {
    if (each.blocks() == 0) continue;
    const std::vector<certain_access> certain = kernel_.certain().of(launch_, each);
    for (used_bytes used : of(each)) {
      const kernel_array& array = *arrays_[used.pointer];
      if (used.is_written && !is_read(array)) {
        used.is_overwritten = are_written(used, array.address, certain);
        if (!used.is_overwritten) used.rows = find_rows(used, array.address, certain);
      }
      all.push_back(used);
    }
  }
  return all;
}

bool footprint::is_read(const kernel_array& array) const {
  for (std::size_t n = 0; n < arrays_.size(); ++n)
    if (arrays_[n] != nullptr && arrays_[n]->address == array.address && kernel_.pointers()[n].is_read) return true;
  return false;
}

void footprint::add(const access& a, const address_form& f) {
  const auto pointer = kernel_.pointer_of(f);
  if (!pointer || arrays_[*pointer] == nullptr) return;
  const kernel_array& array = *arrays_[*pointer];
  used_bytes used{*pointer, 0, array.bytes, a.what != access_kind::read};
  if (const integer_range address = ranges_.bounds.of(f.whole);
      a.bytes != 0 && address.lies_in(range_of_bits(64, false)) && ranges_.bounds.assumptions_hold(f.assumes)) {
    const __int128 first = address.low - array.address, last = address.high - array.address + a.bytes;
    if (last <= 0 || first >= array.bytes) {
      leaves_arrays_ = true;
      return;
    }
    used.first = static_cast<std::uint64_t>(std::max<__int128>(first, 0));
    used.last = static_cast<std::uint64_t>(std::min<__int128>(last, array.bytes));
  }
  std::optional<used_bytes>& all = found_[*pointer];
  if (!all) {
    all = used;
    return;
  }
  all->first = std::min(all->first, used.first);
  all->last = std::max(all->last, used.last);
  all->is_written |= used.is_written;
}

namespace {

// If each part needs at most this fraction of the memory, three parts fit into half of the memory: while one part runs,
// hpe copies the data of the next part in and the data of the previous part out. The other half of the memory keeps
// data until the next launch.
constexpr double enough = 1.0 / 6;
constexpr std::uint64_t most_parts = 4096;
constexpr std::size_t looked_at = 64;

class cutter {
 public:
  cutter(footprint& memory, const part_of_devices& whole, function_ref<double(const std::vector<used_bytes>&)> load)
      : memory_(memory), whole_(whole), load_(load) {
    for (const subgrid& each : whole)
      if (each.blocks() > 0)
        for (std::size_t a = 0; a < most_.size(); ++a) most_[a] = std::min(most_[a], each.count[a]);
  }

  [[nodiscard]] double load() const { return now_; }
  [[nodiscard]] const std::vector<part_of_devices>& parts() const { return parts_; }

  /// Computes the largest load of all parts. (try_counts examines at most 64 of the parts.)
  void look_at_all() { now_ = load_of(parts_, parts_.size()); }

  /// Cuts the parts further, along the axis where this reduces the load most. Returns false if even 16 times as many
  /// parts along an axis do not reduce the load.
  bool cut_further() {
    constexpr std::uint32_t finest = 16;
    for (std::uint32_t times = 2; times <= finest; times *= 2) {
      const auto before = now_;
      const auto counts = counts_;
      for (std::size_t a = 0; a < counts.size(); ++a) try_counts(a, counts, times);
      if (now_ < before) return true;
    }
    return false;
  }

 private:
  using axis_counts = std::array<std::uint32_t, 3>;

  double load_of(const std::vector<part_of_devices>& parts, std::size_t count) {
    double most = 0;
    count = std::min(parts.size(), count);
    for (std::size_t n = 0; n < count; ++n)
      most = std::max(most, load_(memory_.of(parts[n * (parts.size() - 1) / std::max<std::size_t>(count - 1, 1)])));
    return most;
  }

  void try_counts(std::size_t axis, axis_counts next, std::uint32_t times) {
    if (next[axis] == most_[axis]) return;
    next[axis] = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{times} * next[axis], most_[axis]));
    if (std::uint64_t{next[0]} * next[1] * next[2] > most_parts) return;
    std::vector<part_of_devices> parts(std::size_t{next[0]} * next[1] * next[2], part_of_devices(whole_.size()));
    for (std::size_t d = 0; d < whole_.size(); ++d) {
      if (whole_[d].blocks() == 0) continue;
      const cut own = cut_grid(whole_[d].count, next);
      for (std::size_t n = 0; n < parts.size(); ++n) {
        parts[n][d] = own.parts[n];
        for (std::size_t a = 0; a < next.size(); ++a) parts[n][d].first[a] += whole_[d].first[a];
      }
    }
    const double then = load_of(parts, looked_at);
    if (then >= now_) return;
    now_ = then;
    counts_ = next;
    parts_ = std::move(parts);
  }

  footprint& memory_;
  const part_of_devices& whole_;
  function_ref<double(const std::vector<used_bytes>&)> load_;
  axis_counts counts_{1, 1, 1};
  axis_counts most_{~0U, ~0U, ~0U};
  std::vector<part_of_devices> parts_{whole_};
  double now_ = load_(memory_.of(whole_));
};

}  // namespace

cut_in_time cut_for_room(footprint& memory, const kernel_model& kernel, const part_of_devices& whole,
                         const std::string& obstacle, function_ref<double(const std::vector<used_bytes>&)> load) {
  if (!memory.obstacle().empty()) return {{}, memory.obstacle()};
  cutter by(memory, whole, load);
  // This test is only for the footprint of the whole grid. In the footprint of a part, such an access is often an
  // access of the grid's last block that the kernel's bounds check prevents.
  if (memory.leaves_arrays())
    return {{}, "it accesses memory outside of the array to which the pointer of the access points"};
  if (by.load() <= 1) return {by.parts(), {}};
  if (!obstacle.empty()) return {{}, obstacle};
  while (by.load() > enough && by.cut_further()) {
  }
  for (by.look_at_all(); by.load() > 1 && by.cut_further(); by.look_at_all()) {
  }
  if (by.load() <= 1) return {by.parts(), {}};
  const std::vector<used_bytes> left = memory.of(by.parts()[by.parts().size() / 2]);
  const auto size = [](const used_bytes& b) { return b.last - b.first; };
  const used_bytes& largest = *std::ranges::max_element(left, {}, size);
  return {{},
          fmt::format("it uses {} bytes of parameter {} in every part of its grid, however the grid is cut",
                      size(largest), kernel.parameter_at(kernel.pointers()[largest.pointer].offset))};
}

}  // namespace hpe::spread
