#include "runtime/spread/traffic.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "runtime/spread/model/loop_counts.h"

namespace hpe::spread {

using namespace ptx::analysis;

namespace {

constexpr std::uint64_t sector = 32, sectors_of_page = 4096 / sector;
constexpr std::uint64_t all_addresses = std::uint64_t{1} << 56;  // the end of the address space of a Linux process

dimension index_in(const dimension& size, std::uint64_t n) {
  return {static_cast<std::uint32_t>(n % size[0]), static_cast<std::uint32_t>(n / size[0] % size[1]),
          static_cast<std::uint32_t>(n / size[0] / size[1])};
}

std::uint64_t count_of(const dimension& d) { return std::uint64_t{d[0]} * d[1] * d[2]; }

/// Returns all blocks of the grid, or `most` evenly distributed blocks.
std::vector<dimension> even_blocks(const dimension& grid, std::uint64_t most) {
  std::vector<dimension> chosen;
  const std::uint64_t all = count_of(grid);
  for (std::uint64_t n = 0; n < std::min(all, most); ++n) {
    if (all <= most) {
      chosen.push_back(index_in(grid, n));
      continue;
    }
    // Multiples of irrational numbers, modulo 1, distribute the blocks evenly along each axis, in a different order for
    // each axis.
    constexpr std::array<double, 3> steps{0.8191725133961645, 0.6710436067037893, 0.5497004779019703};
    dimension block{};
    for (std::size_t a = 0; a < grid.size(); ++a) {
      const double at = 0.5 + steps[a] * static_cast<double>(n + 1);
      block[a] = static_cast<std::uint32_t>((at - static_cast<double>(static_cast<std::uint64_t>(at))) * grid[a]);
    }
    chosen.push_back(block);
  }
  return chosen;
}

/// Returns the first and the last block of each part.
std::vector<dimension> ends_of(std::span<const cut> cuts) {
  std::vector<dimension> ends;
  for (const cut& c : cuts) {
    for (const subgrid& part : c.parts) {
      if (part.blocks() == 0) continue;
      ends.push_back(part.first);
      ends.push_back(part.first);
      for (std::size_t a = 0; a < part.first.size(); ++a) ends.back()[a] += part.count[a] - 1;
    }
  }
  return ends;
}

/// Returns a pseudo-random number below `end`.
std::uint64_t any_below(std::uint64_t end, std::uint64_t seed) {
  seed = (seed + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  seed = (seed ^ (seed >> 29U)) * 0x94d049bb133111ebULL;
  return (seed >> 11U) % std::max<std::uint64_t>(end, 1);
}

class sampler {
 public:
  sampler(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays,
          const sample_size& size)
      : kernel_(kernel),
        flow_(kernel.analysis().walk->flow()),
        launch_(l),
        arrays_(arrays),
        size_(size),
        counts_(kernel.counts()),
        shares_(shares_of_threads(kernel.analysis())),
        numbers_(kernel.analysis(), [](std::uint32_t) { return evaluator::number{}; }),
        counters_(flow_.loops().size() + 1),
        last_(flow_.loops().size()),
        uniform_last_(flow_.loops().size()) {
    place_ = first_thread(l, counters_);
    numbers_.guess_choices();
  }

  /// Counts the sectors that a block uses. Each sector counts once.
  void run_in_detail(block_traffic& block) {
    begin(block);
    const std::uint64_t threads = count_of(launch_.block), warps = (threads + warp - 1) / warp;
    const std::uint64_t each = std::max<std::uint64_t>(kernel_.analysis().accesses.size(), 1) * warp;
    const std::uint64_t budget = size_.accesses / each;  // limits the number of warps times the number of iterations
    window_ = std::clamp<std::uint64_t>(budget / warps, 4, budget == ~0ULL / each ? ~0ULL >> 1U : 16);
    const std::uint64_t chosen = std::clamp<std::uint64_t>(budget / window_, 1, warps);
    for (std::uint64_t w = 0; w < chosen; ++w) {
      const std::uint64_t first = w * warps / chosen * warp;
      for (std::uint64_t t = first; t < std::min(first + warp, threads); ++t)
        run_thread(block, t, static_cast<double>(warps) / static_cast<double>(chosen));
    }
    collect(block);
  }

  /// Finds the offsets of the bytes that a block uses.
  void run_roughly(block_traffic& block) {
    begin(block);
    const std::uint64_t threads = count_of(launch_.block);
    window_ = 1;
    at_random_ = true;
    for (const std::uint64_t t : {std::uint64_t{0}, threads / 3, threads - 1}) run_thread(block, t, 1);
    at_random_ = false;
    collect(block);
  }

  /// Returns the distances in bytes by which the addresses of accesses change from one block, or one loop iteration, to
  /// the next. The distances are those of the first thread of a block.
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
  static constexpr std::uint64_t warp = 32;

  void begin(block_traffic& block) {
    sectors_.clear();
    somewhere_.clear();
    block.instructions = 0;
    place_.block = dimensions_of(block.block);
  }

  void run_thread(block_traffic& block, std::uint64_t thread, double threads) {
    place_.thread = dimensions_of(index_in(launch_.block, thread));
    std::fill(counters_.begin(), counters_.end(), 0);
    numbers_.go_to(place_);
    // The count of a loop's iterations assumes that the loops that contain it are half done, and that the loops that
    // end before it are done.
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
    for (std::size_t n = 0; n < shares_.size(); ++n)
      if (const flow_block& b = flow_.blocks()[n]; b.is_reachable)
        block.instructions += threads * shares_[n] * iterations(b.loops, no_loop) * (b.last - b.first);
    for (const access& a : kernel_.analysis().accesses) {
      if (a.forms.empty()) {
        add_somewhere(none(), a, threads * (a.inside != nullptr ? 1 : shares_[flow_.block_at(a.position)]));
      } else {
        look(a, threads);
      }
    }
  }

  void look(const access& a, double threads) {
    const std::uint32_t where = flow_.block_at(a.position);
    const loop_set inside = flow_.blocks()[where].loops;
    std::uint32_t innermost = no_loop;
    for (const std::uint32_t l : counts_.order()) {
      counters_[l] = inside.has(l) ? last_[l] / 2 : last_[l];
      if (!inside.has(l)) continue;
      if (at_random_) counters_[l] = any(last_[l] + 1);
      if (innermost == no_loop || flow_.loops()[l].depth > flow_.loops()[innermost].depth) innermost = l;
    }
    std::int64_t first = 0, count = 1;
    double weight = threads * shares_[where] * iterations(inside, innermost);
    if (innermost != no_loop) {
      const std::int64_t all = last_[innermost] + 1;
      count = std::min(all, static_cast<std::int64_t>(window_));
      first = at_random_ ? any(all - count + 1) : (all - count) / 2;
      weight *= static_cast<double>(all) / static_cast<double>(std::max<std::int64_t>(count, 1));
    }
    for (std::int64_t n = first; n < first + count; ++n) {
      if (innermost != no_loop) counters_[innermost] = n;
      numbers_.forget();
      look_now(a, weight);
    }
  }

  void look_now(const access& a, double weight) {
    for (const comparison& c : a.where)
      if (numbers_.holds(c) == false) return;
    // In each execution, the address has one of the forms. hpe does not know which form, so all forms have the same
    // weight.
    addresses_.clear();
    for (const address_form& f : a.forms) {
      const auto pointer = kernel_.pointer_of(f);
      if (f.base && !pointer) continue;  // a variable of the program, not an array
      const auto address = numbers_.of(f.whole);
      const std::pair found{pointer.value_or(none()), address};
      if (std::find(addresses_.begin(), addresses_.end(), found) == addresses_.end()) addresses_.push_back(found);
    }
    for (const auto& [pointer, address] : addresses_)
      add(a, pointer, address, weight / static_cast<double>(addresses_.size()));
  }

  void add(const access& a, std::uint32_t pointer, const evaluator::number& address, double weight) {
    const kernel_array* const array = pointer == none() ? nullptr : arrays_[pointer];
    if (pointer != none() && array == nullptr && launch_.pointer_at(kernel_.pointers()[pointer].offset) == 0) return;
    if (pointer == none() || !address) return add_somewhere(pointer, a, weight);
    const std::uint64_t offset = static_cast<std::uint64_t>(*address) - (array != nullptr ? array->address : 0);
    // The kernel does not execute this access, or leaves the array.
    if (offset >= (array != nullptr ? array->bytes : all_addresses)) return;
    const std::uint64_t last = offset + std::max<std::uint64_t>(a.bytes, 1) - 1;
    for (std::uint64_t s = offset / sector; s <= last / sector; ++s) {
      double& known = sectors_[key(pointer, a.what != access_kind::read, s)];
      known = std::max(known, weight);
    }
  }

  [[nodiscard]] std::int64_t any(std::int64_t end) {
    return static_cast<std::int64_t>(any_below(static_cast<std::uint64_t>(std::max<std::int64_t>(end, 1)), ++seed_));
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

  // Returns a key that orders touches by pointer, then reads before writes, then by offset.
  static std::uint64_t key(std::uint32_t pointer, bool writes, std::uint64_t s) {
    return std::uint64_t{pointer} << 52U | std::uint64_t{writes} << 51U | s;
  }

  void collect(block_traffic& block) const {
    std::vector<std::pair<std::uint64_t, double>> sorted(sectors_.begin(), sectors_.end());
    std::sort(sorted.begin(), sorted.end());
    std::uint64_t next = 0;
    for (const auto& [k, weight] : sorted) {
      const double bytes = weight * static_cast<double>(sector);
      // Touches end at pages, so that all bytes of a touch have the same home.
      if (k == next && k % sectors_of_page != 0 && !block.touches.empty()) {
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
  std::span<const kernel_array* const> arrays_;
  const sample_size& size_;
  static constexpr std::uint32_t no_loop = ~0U;
  std::uint64_t window_ = 1;  // the number of iterations to compute of an innermost loop
  bool at_random_ = false;  // true to compute random iterations, false to compute iterations in the middle of the loop
  std::uint64_t seed_ = 0;
  std::vector<std::pair<std::uint32_t, evaluator::number>> addresses_;
  const loop_counts& counts_;
  std::vector<double> shares_;  // by basic block: the fraction of threads that run the block
  evaluator numbers_;
  thread_place place_;
  std::vector<std::int64_t> counters_, last_;
  std::vector<std::optional<std::int64_t>> uniform_last_;
  std::unordered_map<std::uint64_t, double> sectors_, somewhere_;
};

}  // namespace

namespace {

/// Returns the number of bytes by pointer and direction: first the reads and then the writes of each pointer.
std::vector<double> volumes_of(const block_traffic& b, std::size_t pointers) {
  std::vector<double> sums(2 * pointers);
  for (const touch& t : b.touches) sums[2 * t.pointer + (t.writes ? 1 : 0)] += t.bytes;
  return sums;
}

}  // namespace

traffic sample_traffic(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays,
                       std::span<const cut> cuts, const sample_size& size) {
  traffic result;
  sampler s(kernel, l, arrays, size);
  result.strides = s.strides();
  std::vector<block_traffic> detailed;
  for (const dimension& block : even_blocks(l.grid, size.detailed_blocks)) {
    detailed.emplace_back().block = block;
    s.run_in_detail(detailed.back());
  }
  if (detailed.size() == count_of(l.grid)) {
    result.blocks = std::move(detailed);
    return result;
  }
  // The roughly sampled blocks give the offsets. The function scales their numbers of bytes to the mean of the detailed
  // blocks.
  block_traffic mean;
  std::vector<double> volumes(2 * arrays.size()), rough(2 * arrays.size());
  const auto share = 1 / static_cast<double>(detailed.size());
  for (const block_traffic& b : detailed) {
    mean.instructions += b.instructions * share;
    const std::vector<double> of = volumes_of(b, arrays.size());
    for (std::size_t n = 0; n < of.size(); ++n) volumes[n] += of[n] * share;
    mean.scattered.insert(mean.scattered.end(), b.scattered.begin(), b.scattered.end());
  }
  for (scattered_touches& t : mean.scattered) t.bytes *= share;
  const std::vector<dimension> even = even_blocks(l.grid, size.blocks), ends = ends_of(cuts);
  for (const auto* list : {&even, &ends}) {
    for (const dimension& block : *list) {
      block_traffic& b = result.blocks.emplace_back();
      b.block = block;
      b.is_extra = list == &ends;
      s.run_roughly(b);
      b.instructions = mean.instructions;
      b.scattered = mean.scattered;
      const std::vector<double> of = volumes_of(b, arrays.size());
      for (std::size_t n = 0; n < of.size(); ++n) rough[n] += b.is_extra ? 0 : of[n];
    }
  }
  for (block_traffic& b : result.blocks) {
    for (touch& t : b.touches) {
      const std::size_t n = 2 * t.pointer + (t.writes ? 1 : 0);
      t.bytes *= rough[n] == 0 ? 1 : volumes[n] * static_cast<double>(even.size()) / rough[n];
    }
  }
  return result;
}

namespace {

/// Returns a pointer to the bytes `b` of the parameters; null if the launch has fewer parameters.
const char* bytes_at(const launch& l, const kernel_model::bytes& b) {
  return b.offset + b.size <= l.parameter_bytes ? static_cast<const char*>(l.parameters) + b.offset : nullptr;
}

/// Returns the index of the first pointer that points into the same allocation as pointer n.
std::size_t first_of(std::span<const kernel_array* const> arrays, std::size_t n) {
  for (std::size_t other = 0; other < n; ++other)
    if (arrays[other] != nullptr && arrays[n] != nullptr && arrays[other]->address == arrays[n]->address) return other;
  return n;
}

}  // namespace

std::string asked_launch::scalars() const {
  std::string all;
  kernel.append_decisive(all, l);
  return all;
}

bool asked_launch::has_scalars(const std::string& known) const {
  std::size_t at = 0;
  for (const kernel_model::bytes& b : kernel.decisive_parameters()) {
    const char* const bytes = bytes_at(l, b);
    if (bytes == nullptr) continue;
    if (known.size() - at < b.size || std::memcmp(known.data() + at, bytes, b.size) != 0) return false;
    at += b.size;
  }
  return at == known.size();
}

std::string asked_launch::key_of_traffic() const {
  std::string key;
  append(key, l.grid);
  append(key, l.block);
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    append(key, static_cast<std::uint32_t>(first_of(arrays, n)));
    if (arrays[n] == nullptr) {
      append(key, pointer(n) == 0);
      continue;
    }
    append(key, arrays[n]->bytes);
    append(key, offset_of(n));
  }
  return key;
}

}  // namespace hpe::spread
