// A sort of uint32. By hand: each device sorts its part, then groups of parts are merged two by two. The host looks for
// the pivots by copying single keys, each device gets the keys that it merges, and merges them. For powers of two of
// devices.

#include <algorithm>
#include <boost/sort/parallel_stable_sort/parallel_stable_sort.hpp>
#include <random>

#include "apps/sort/sorter.h"
#include "bench/workloads/program.h"

namespace hpe::bench {

namespace {

constexpr std::uint64_t count = std::uint64_t{1} << 20, probe_step = 8191;

std::vector<std::uint32_t> random_keys() {
  std::mt19937 random(1);
  std::vector<std::uint32_t> keys(count);
  for (std::uint32_t& k : keys) k = static_cast<std::uint32_t>(random());
  return keys;
}

template <class Keys>
std::vector<double> some_of(const Keys& keys) {
  std::vector<double> some;
  for (std::uint64_t i = 0; i < count; i += probe_step) some.push_back(keys[i]);
  return some;
}

class through_hpe final : public program {
 public:
  explicit through_hpe(int devices)
      : sorter_(sort::element_of<std::uint32_t>(), count, first(devices)),
        given_(count, sorter_.where()),
        sorted_(count, sorter_.where()) {
    const std::vector<std::uint32_t> keys = random_keys();
    copy(given_.data(), keys.data(), count * sizeof(std::uint32_t));
  }
  void reset() override {
    copy(sorted_.data(), given_.data(), count * sizeof(std::uint32_t));
    synchronize();
  }
  void run() override {
    sorter_.run(sorted_.data());
    synchronize();
  }
  [[nodiscard]] std::vector<double> probe() override { return some_of(sorted_); }

 private:
  static std::vector<int> first(int devices) {
    std::vector<int> list;
    for (int d = 0; d < devices; ++d) list.push_back(d);
    return list;
  }
  sort::sorter sorter_;
  array<std::uint32_t> given_, sorted_;
};

class written_by_hand final : public on_team {
 public:
  explicit written_by_hand(int devices)
      : on_team(devices, 5 * bytes(count / static_cast<std::uint64_t>(devices))),
        each_(count / static_cast<std::uint64_t>(devices)),
        local_(kernel("sort_local_u32")),
        merge_(kernel("sort_merge_u32")),
        keys_(random_keys()) {
    for (int d = 0; d < devices; ++d)
      parts_.push_back({team_.take<key>(d, each_), team_.take<key>(d, each_), team_.take<key>(d, each_)});
  }
  void reset() override {
    for (int d = 0; d < team_.devices(); ++d)
      team_.put(d, at(d).keys, keys_.data() + static_cast<std::uint64_t>(d) * each_, bytes(each_));
  }
  void run() override {
    for (int d = 0; d < team_.devices(); ++d)
      team_.launch(d, local_, grid(1), kernels::sort_local<key>{at(d).keys, at(d).keys, each_});
    for (int group = 1; group < team_.devices(); group *= 2) merge_groups(group);
    team_.finish();
  }
  [[nodiscard]] std::vector<double> probe() override {
    std::vector<key> all(count);
    for (int d = 0; d < team_.devices(); ++d)
      team_.get(d, all.data() + static_cast<std::uint64_t>(d) * each_, at(d).keys, bytes(each_));
    return some_of(all);
  }

 private:
  using key = std::uint32_t;
  struct part {
    key *keys, *merged, *brought;
  };
  part& at(int device) { return parts_[static_cast<std::size_t>(device)]; }
  static std::size_t bytes(std::uint64_t n) { return n * sizeof(key); }
  device::kernel_id kernel(const char* name) { return team_.find(module_of("libhpe-sort-kernels.so"), name); }

  /// A key of the groups' sequences, wherever it is.
  key look_up(int first, std::uint64_t place) {
    const int device = first + static_cast<int>(place / each_);
    key k = 0;
    team_.get(device, &k, at(device).keys + place % each_, sizeof k);
    return k;
  }

  /// As kernels::pivot, by copies.
  std::uint64_t pivot(int left, int right, std::uint64_t side, std::uint64_t place) {
    if (team_.left_out()) return place / 2;
    std::uint64_t low = place > side ? place - side : 0, high = std::min(place, side);
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (look_up(right, place - 1 - middle) < look_up(left, middle))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  /// Adds what brings keys [from, to) of a group to a place on a device.
  void bring(std::vector<transfer>& all, int device, int first, std::uint64_t from, std::uint64_t to, key* place) {
    while (from < to) {
      const int owner = first + static_cast<int>(from / each_);
      const std::uint64_t here = std::min(to - from, each_ - from % each_);
      all.push_back(
          {owner, device, at(owner).keys + from % each_, place, bytes(here), team_.last(owner), team_.last(device)});
      place += here;
      from += here;
    }
  }

  void merge_groups(int group) {
    const std::uint64_t side = each_ * static_cast<std::uint64_t>(group);
    std::vector<transfer> all;
    std::vector<kernels::sort_merge<key>> merges;
    for (int d = 0; d < team_.devices(); ++d) {
      const int left = d / (2 * group) * 2 * group, right = left + group;
      const std::uint64_t from = static_cast<std::uint64_t>(d - left) * each_, to = from + each_;
      const std::uint64_t l0 = pivot(left, right, side, from), l1 = pivot(left, right, side, to);
      bring(all, d, left, l0, l1, at(d).brought);
      bring(all, d, right, from - l0, to - l1, at(d).brought + (l1 - l0));
      kernels::sort_merge<key> p{};
      p.left = at(d).brought;
      p.right = at(d).brought + (l1 - l0);
      p.left_count = l1 - l0;
      p.right_count = each_ - p.left_count;
      p.output = at(d).merged;
      p.to = each_;
      merges.push_back(p);
    }
    team_.exchange(all);
    for (int d = 0; d < team_.devices(); ++d) {
      team_.launch(d, merge_, grid(4 * team_.units()), merges[static_cast<std::size_t>(d)]);
      std::swap(at(d).keys, at(d).merged);
    }
  }

  const std::uint64_t each_;
  device::kernel_id local_, merge_;
  const std::vector<key> keys_;
  std::vector<part> parts_;
};

class by_boost final : public program {
 public:
  explicit by_boost(unsigned threads) : threads_(threads), given_(random_keys()) {}
  void reset() override { sorted_ = given_; }
  void run() override { boost::sort::parallel_stable_sort(sorted_.begin(), sorted_.end(), threads_); }
  [[nodiscard]] std::vector<double> probe() override { return some_of(sorted_); }

 private:
  unsigned threads_;
  std::vector<std::uint32_t> given_, sorted_;
};

}  // namespace

workload sort_workload() {
  return {"sort",
          "2^20 uint32",
          0,
          [](int devices) -> std::unique_ptr<program> { return std::make_unique<through_hpe>(devices); },
          [](int devices) -> std::unique_ptr<hand_written> {
            // GPUs sort by CUB, which is no kernel that a module has.
            if (device_info(0).kind == HPE_DEVICE_CUDA) return nullptr;
            return std::make_unique<written_by_hand>(devices);
          },
          "Boost parallel_stable_sort",
          [](unsigned threads) -> std::unique_ptr<program> { return std::make_unique<by_boost>(threads); }};
}

}  // namespace hpe::bench
