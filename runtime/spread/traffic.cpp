#include "runtime/spread/traffic.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "runtime/spread/loop_counts.h"

namespace hpe::spread {

using namespace ptx::analysis;

namespace {

constexpr std::uint64_t sector = 32;

ptx::dimensions dimensions_of(const dimension& d) { return {d[0], d[1], d[2]}; }

dimension index_in(const dimension& size, std::uint64_t n) {
  return {static_cast<std::uint32_t>(n % size[0]), static_cast<std::uint32_t>(n / size[0] % size[1]),
          static_cast<std::uint32_t>(n / size[0] / size[1])};
}

std::uint64_t count_of(const dimension& d) { return std::uint64_t{d[0]} * d[1] * d[2]; }

/// Blocks to sample: all, or evenly distributed ones and those at the ends of parts.
std::vector<block_traffic> choose_blocks(const dimension& grid, std::span<const cut> cuts, std::uint64_t most) {
  std::vector<block_traffic> chosen;
  const auto add = [&](const dimension& block, bool is_extra) {
    const auto same = [&](const block_traffic& b) { return b.block == block; };
    if (std::any_of(chosen.begin(), chosen.end(), same)) return;
    chosen.emplace_back().block = block;
    chosen.back().is_extra = is_extra;
  };
  const std::uint64_t all = count_of(grid);
  if (all <= most) {
    for (std::uint64_t n = 0; n < all; ++n) {
      chosen.emplace_back().block = index_in(grid, n);
    }
    return chosen;
  }
  // An even distribution along each axis, in different orders, by multiples of irrational numbers.
  constexpr std::array<double, 3> steps{0.8191725133961645, 0.6710436067037893, 0.5497004779019703};
  for (std::uint64_t n = 0; n < most; ++n) {
    dimension block{};
    for (std::size_t a = 0; a < grid.size(); ++a) {
      const double at = 0.5 + steps[a] * static_cast<double>(n + 1);
      block[a] = static_cast<std::uint32_t>((at - static_cast<double>(static_cast<std::uint64_t>(at))) * grid[a]);
    }
    add(block, false);
  }
  for (const cut& c : cuts) {
    for (const block_range& part : c.parts) {
      if (part.blocks() == 0) continue;
      add(part.first, true);
      dimension last{};
      for (std::size_t a = 0; a < last.size(); ++a) last[a] = part.first[a] + part.count[a] - 1;
      add(last, true);
    }
  }
  return chosen;
}

class sampler {
 public:
  sampler(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays,
          const sample_size& size)
      : kernel_(kernel),
        flow_(kernel.analysis().walk->flow()),
        launch_(l),
        arrays_(arrays),
        size_(size),
        counts_(kernel.analysis()),
        numbers_(kernel.analysis(), [](std::uint32_t) { return evaluator::number{}; }),
        counters_(flow_.loops().size() + 1),
        last_(flow_.loops().size()),
        uniform_last_(flow_.loops().size()) {
    place_.grid = dimensions_of(l.grid);
    place_.block_size = dimensions_of(l.block);
    place_.parameters = static_cast<const std::uint8_t*>(l.parameters);
    place_.counters = counters_.data();
  }

  void run(block_traffic& block) {
    sectors_.clear();
    somewhere_.clear();
    block.instructions = 0;
    place_.block = dimensions_of(block.block);
    const std::uint64_t threads = count_of(launch_.block);
    constexpr std::uint64_t warp = 32;
    const std::uint64_t warps = (threads + warp - 1) / warp,
                        chosen = std::clamp<std::uint64_t>(size_.threads / warp, 1, warps);
    for (std::uint64_t w = 0; w < chosen; ++w) {
      const std::uint64_t first = w * warps / chosen * warp;
      for (std::uint64_t t = first; t < std::min(first + warp, threads); ++t)
        run_thread(block, index_in(launch_.block, t), static_cast<double>(warps) / static_cast<double>(chosen));
    }
    collect(block);
  }

  /// Distances for one more block or iteration, as seen by the first thread of a block.
  std::vector<traffic::stride> strides() {
    std::vector<traffic::stride> found;
    place_.block = place_.thread = {0, 0, 0};
    std::fill(counters_.begin(), counters_.end(), 0);
    numbers_.go_to(place_);
    const expressions& table = kernel_.analysis().walk->table();
    const auto add = [&](std::uint32_t pointer, evaluator::number distance) {
      if (!distance || *distance == 0) return;
      const traffic::stride s{pointer, static_cast<std::uint64_t>(*distance < 0 ? -*distance : *distance)};
      if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
    };
    for (const access& a : kernel_.analysis().accesses) {
      for (const address_form& f : a.forms) {
        const auto pointer = kernel_.pointer_of(f);
        if (!pointer) continue;
        for (const expression_id e : f.blocks) add(*pointer, numbers_.of(e));
        for (const std::uint32_t l : counts_.order()) {
          if (!table.varies(f.whole).has(l)) continue;
          const auto before = numbers_.of(f.whole);
          counters_[l] = 1;
          numbers_.forget();
          const auto after = numbers_.of(f.whole);
          counters_[l] = 0;
          numbers_.forget();
          if (before && after) add(*pointer, *after - *before);
        }
      }
    }
    return found;
  }

 private:
  void run_thread(block_traffic& block, const dimension& thread, double threads) {
    place_.thread = dimensions_of(thread);
    std::fill(counters_.begin(), counters_.end(), 0);
    numbers_.go_to(place_);
    // Each loop stands in its middle while loops inside of it are counted, and at its end behind it.
    for (const std::uint32_t l : counts_.order()) {
      for (std::uint32_t other = 0; other < last_.size(); ++other)
        counters_[other] = contains(other, l) ? last_[other] / 2 : last_[other];
      if (counts_.is_uniform(l) && uniform_last_[l]) {
        last_[l] = *uniform_last_[l];
      } else {
        last_[l] = counts_.last_of(l, numbers_, counters_[l]);
        uniform_last_[l] = last_[l];
      }
    }
    for (const flow_block& b : flow_.blocks())
      if (b.is_reachable) block.instructions += threads * iterations(b.loops, ~0U) * (b.last - b.first);
    for (const access& a : kernel_.analysis().accesses) {
      if (a.forms.empty()) {
        add_somewhere(none(), a, threads);
      } else {
        look(a, threads);
      }
    }
  }

  void look(const access& a, double threads) {
    const loop_set inside = flow_.blocks()[flow_.block_at(a.position)].loops;
    std::uint32_t innermost = ~0U;
    for (std::uint32_t l = 0; l < last_.size(); ++l) {
      counters_[l] = inside.has(l) ? last_[l] / 2 : last_[l];
      if (inside.has(l) && (innermost == ~0U || flow_.loops()[l].depth > flow_.loops()[innermost].depth)) innermost = l;
    }
    std::int64_t first = 0, count = 1;
    double weight = threads * iterations(inside, innermost);
    if (innermost != ~0U) {
      const std::int64_t all = last_[innermost] + 1;
      count = std::min(all, static_cast<std::int64_t>(size_.iterations));
      first = (all - count) / 2;
      weight *= static_cast<double>(all) / static_cast<double>(count);
    }
    for (std::int64_t n = first; n < first + count; ++n) {
      if (innermost != ~0U) counters_[innermost] = n;
      numbers_.forget();
      look_now(a, weight);
    }
  }

  void look_now(const access& a, double weight) {
    for (const comparison& c : a.where)
      if (numbers_.holds(c) == false) return;
    const double each = weight / static_cast<double>(a.forms.size());
    for (const address_form& f : a.forms) {
      const auto pointer = kernel_.pointer_of(f);
      if (f.base && !pointer) continue;  // a variable of the program
      if (!pointer || arrays_[*pointer] == nullptr) {
        add_somewhere(pointer.value_or(none()), a, each);
        continue;
      }
      const auto address = numbers_.of(f.whole);
      const std::uint64_t offset = address ? static_cast<std::uint64_t>(*address) - arrays_[*pointer]->address : ~0ULL;
      if (offset >= arrays_[*pointer]->bytes) {
        if (!address) add_somewhere(*pointer, a, each);
        continue;
      }
      const std::uint64_t last = offset + std::max<std::uint64_t>(a.bytes, 1) - 1;
      for (std::uint64_t s = offset / sector; s <= last / sector; ++s) {
        double& known = sectors_[key(*pointer, a.what != access_kind::read, s)];
        known = std::max(known, each);
      }
    }
  }

  [[nodiscard]] std::uint32_t none() const { return static_cast<std::uint32_t>(arrays_.size()); }
  [[nodiscard]] bool contains(std::uint32_t outer, std::uint32_t inner) const {
    return outer != inner && flow_.blocks()[flow_.loops()[inner].header].loops.has(outer);
  }

  [[nodiscard]] double iterations(loop_set loops, std::uint32_t except) const {
    double product = 1;
    for (std::uint32_t l = 0; l < last_.size(); ++l)
      if (loops.has(l) && l != except) product *= static_cast<double>(last_[l] + 1);
    return product;
  }

  void add_somewhere(std::uint32_t pointer, const access& a, double weight) {
    somewhere_[key(pointer, a.what != access_kind::read, 0)] += weight * static_cast<double>(sector);
  }

  // Keys sort by pointer, then by place.
  static std::uint64_t key(std::uint32_t pointer, bool writes, std::uint64_t s) {
    return std::uint64_t{pointer} << 52U | std::uint64_t{writes} << 51U | s;
  }

  void collect(block_traffic& block) const {
    std::vector<std::pair<std::uint64_t, double>> sorted(sectors_.begin(), sectors_.end());
    std::sort(sorted.begin(), sorted.end());
    std::uint64_t next = 0;
    for (const auto& [k, weight] : sorted) {
      const double bytes = weight * static_cast<double>(sector);
      if (k == next && !block.touches.empty()) {
        block.touches.back().bytes += bytes;
      } else {
        block.touches.push_back({static_cast<std::uint32_t>(k >> 52U), (k >> 51U & 1) != 0,
                                 (k & ((std::uint64_t{1} << 51U) - 1)) * sector, bytes});
      }
      next = k + 1;
    }
    for (const auto& [k, bytes] : somewhere_)
      block.scattered.push_back({static_cast<std::uint32_t>(k >> 52U), (k >> 51U & 1) != 0, bytes});
  }

  const kernel_model& kernel_;
  const flow_graph& flow_;
  const launch& launch_;
  std::span<const allocation* const> arrays_;
  const sample_size& size_;
  loop_counts counts_;
  evaluator numbers_;
  thread_place place_;
  std::vector<std::int64_t> counters_, last_;
  std::vector<std::optional<std::int64_t>> uniform_last_;
  std::unordered_map<std::uint64_t, double> sectors_, somewhere_;
};

}  // namespace

traffic sample_traffic(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays,
                       std::span<const cut> cuts, const sample_size& size) {
  traffic result;
  result.blocks = choose_blocks(l.grid, cuts, size.blocks);
  sampler s(kernel, l, arrays, size);
  for (block_traffic& b : result.blocks) s.run(b);
  result.strides = s.strides();
  return result;
}

}  // namespace hpe::spread
