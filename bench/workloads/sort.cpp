// A sort of uint32. In the hand-written version, each device sorts its keys (GPUs by CUB); then pairs of sorted groups
// are merged. The host finds the pivots by copying single keys. Then each device copies the keys that it needs from the
// other devices, and merges. The number of devices must be a power of two.

#include <algorithm>
#include <boost/sort/parallel_stable_sort/parallel_stable_sort.hpp>
#include <random>

#include "apps/sort/sorter.h"
#include "bench/workloads/workload.h"

namespace hpe::bench {

namespace {

std::uint64_t count() { return std::uint64_t{1} << (on_gpus() ? 28 : 20); }

std::vector<std::uint32_t> random_keys() {
  std::mt19937 random(1);
  std::vector<std::uint32_t> keys(count());
  for (std::uint32_t& k : keys) k = static_cast<std::uint32_t>(random());
  return keys;
}

template <class Keys>
std::vector<double> some_of(const Keys& keys) {
  const std::uint64_t step = count() / 128 - 1;
  std::vector<double> some;
  for (std::uint64_t i = 0; i < count(); i += step) some.push_back(keys[i]);
  return some;
}

class through_hpe final : public program {
 public:
  explicit through_hpe(int devices)
      : sorter_(sort::element_of<std::uint32_t>(), count(), first(devices)),
        given_(count(), sorter_.where()),
        sorted_(count(), sorter_.where()) {
    const std::vector<std::uint32_t> keys = random_keys();
    copy(given_.data(), keys.data(), count() * sizeof(std::uint32_t));
  }
  void reset() override {
    copy(sorted_.data(), given_.data(), count() * sizeof(std::uint32_t));
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
      : on_team(devices, 5 * bytes(count() / static_cast<std::uint64_t>(devices))),
        each_(count() / static_cast<std::uint64_t>(devices)),
        on_gpus_(on_gpus() ? sort::find_local_sort("u32") : nullptr),
        merge_(kernel("sort_merge_u32")),
        keys_(random_keys()) {
    if (on_gpus_ == nullptr) local_ = kernel("sort_local_u32");
    const std::size_t scratch = on_gpus_ == nullptr ? 0 : on_gpus_->scratch(each_, true);
    for (int d = 0; d < devices; ++d)
      parts_.push_back({team_.take<key>(d, each_),
                        team_.take<key>(d, each_),
                        team_.take<key>(d, each_),
                        {team_.take<std::byte>(d, scratch), scratch}});
  }
  void reset() override {
    for (int d = 0; d < team_.devices(); ++d)
      team_.put(d, at(d).keys, keys_.data() + static_cast<std::uint64_t>(d) * each_, bytes(each_));
  }
  void run() override {
    for (int d = 0; d < team_.devices(); ++d) sort_part(d);
    for (int group = 1; group < team_.devices(); group *= 2) merge_groups(group);
    team_.finish();
  }
  [[nodiscard]] std::vector<double> probe() override {
    std::vector<key> all(count());
    for (int d = 0; d < team_.devices(); ++d)
      team_.get(d, all.data() + static_cast<std::uint64_t>(d) * each_, at(d).keys, bytes(each_));
    return some_of(all);
  }

 private:
  using key = std::uint32_t;
  struct part {
    key *keys, *merged, *brought;
    std::span<std::byte> scratch;  ///< used only on GPUs
  };
  part& at(int device) { return parts_[static_cast<std::size_t>(device)]; }
  static std::size_t bytes(std::uint64_t n) { return n * sizeof(key); }
  device::kernel_id kernel(const char* name) { return team_.find(modules::path_of("libhpe-sort-kernels.so"), name); }

  void sort_part(int d) {
    if (on_gpus_ == nullptr) {
      team_.launch(d, local_, grid(1), kernels::sort_local<key>{at(d).keys, at(d).keys, each_});
      return;
    }
    const auto whole = [&](key* keys) { return std::span(reinterpret_cast<std::byte*>(keys), bytes(each_)); };
    const sort::local_range range{d, whole(at(d).keys), whole(at(d).keys), whole(at(d).merged), at(d).scratch};
    team_.enqueue(d, [&](void* stream) { return on_gpus_->queue(range, stream); });
  }

  /// Reads key number `place` of a group's sorted sequence from the device that holds it. first: the group's first
  /// device.
  key look_up(int first, std::uint64_t place) {
    const int device = first + static_cast<int>(place / each_);
    key k = 0;
    team_.get(device, &k, at(device).keys + place % each_, sizeof k);
    return k;
  }

  /// Returns what kernels::pivot returns, but reads the keys by copies of single keys.
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

  /// Returns the address at which a device finds keys [from, to) of a group's sorted sequence. If the device does not
  /// hold all of these keys, the address is `place`, and the function adds transfers to `all` that copy the keys to
  /// `place`.
  const key* bring(std::vector<transfer>& all, int device, int first, std::uint64_t from, std::uint64_t to,
                   key* place) {
    if (from / each_ == (to - 1) / each_ && first + static_cast<int>(from / each_) == device)
      return at(device).keys + from % each_;
    const key* const begin = place;
    while (from < to) {
      const int owner = first + static_cast<int>(from / each_);
      const std::uint64_t here = std::min(to - from, each_ - from % each_);
      all.push_back(
          {owner, device, at(owner).keys + from % each_, place, bytes(here), team_.last(owner), team_.last(device)});
      place += here;
      from += here;
    }
    return begin;
  }

  void merge_groups(int group) {
    const std::uint64_t side = each_ * static_cast<std::uint64_t>(group);
    std::vector<transfer> all;
    std::vector<kernels::sort_merge<key>> merges;
    std::uint64_t l0 = 0;
    for (int d = 0; d < team_.devices(); ++d) {
      const int left = d / (2 * group) * 2 * group, right = left + group;
      const std::uint64_t from = static_cast<std::uint64_t>(d - left) * each_, to = from + each_;
      if (from == 0) l0 = 0;
      const std::uint64_t l1 = pivot(left, right, side, to);
      kernels::sort_merge<key> p{};
      p.left_count = l1 - l0;
      p.right_count = each_ - p.left_count;
      p.left = bring(all, d, left, l0, l1, at(d).brought);
      p.right = bring(all, d, right, from - l0, to - l1, at(d).brought + p.left_count);
      p.output = at(d).merged;
      p.to = each_;
      merges.push_back(p);
      l0 = l1;
    }
    team_.exchange(all);
    const hpeShape shape = on_gpus_ == nullptr ? grid(4 * team_.units())
                                               : hpeShape{{kernels::merge_blocks(each_, team_.units()), 1, 1},
                                                          {kernels::merge_threads, 1, 1}};
    for (int d = 0; d < team_.devices(); ++d) {
      team_.launch(d, merge_, shape, merges[static_cast<std::size_t>(d)]);
      std::swap(at(d).keys, at(d).merged);
    }
  }

  const std::uint64_t each_;
  const sort::local_sort* const on_gpus_;  ///< null on soft devices
  device::kernel_id local_{}, merge_;
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
          std::string("2^") + (on_gpus() ? "28" : "20") + " uint32",
          0,
          [](int devices) -> std::unique_ptr<program> { return std::make_unique<through_hpe>(devices); },
          [](int devices) -> std::unique_ptr<hand_written> { return std::make_unique<written_by_hand>(devices); },
          "Boost parallel_stable_sort",
          [](unsigned threads) -> std::unique_ptr<program> { return std::make_unique<by_boost>(threads); },
          on_gpus() && sort::find_local_sort("u32") == nullptr
              ? "hpe was built without the CUDA toolkit and therefore without "
                "CUB, which sorts on GPUs"
              : ""};
}

}  // namespace hpe::bench
