#include "runtime/device/soft/softd/meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/device/soft/shared/path.h"
#include "runtime/ptx/arithmetic/matrix.h"

namespace hpe::device::soft {

namespace {

constexpr std::uint64_t sector = 32;
constexpr std::uint64_t samples = 48;     // the approximate number of blocks that are sampled in a grid
constexpr unsigned uses_of_a_count = 16;  // the number of launches that use one count of the traffic
// The largest number of launches whose traffic is stored; a further launch clears the table.
constexpr std::size_t most_known = 4096;

using triple = std::array<std::uint64_t, 3>;

triple triple_of(const ptx::dimensions& d) { return {d.x, d.y, d.z}; }

std::uint64_t number_of(const triple& block, const triple& grid) {
  return block[0] + grid[0] * (block[1] + grid[1] * block[2]);
}

/// A range of indices along one axis of a grid. spans_of divides an axis into up to three ranges: the first index, all
/// indices between, and the last index.
struct span_of_axis {
  std::uint64_t first, count;
};
std::vector<span_of_axis> spans_of(std::uint64_t size) {
  if (size == 1) return {{0, 1}};
  if (size == 2) return {{0, 1}, {1, 1}};
  return {{0, 1}, {1, size - 2}, {size - 1, 1}};
}

/// Returns index number n of a sequence of 3D indices that are evenly distributed in a box (an R3 sequence).
triple place_in(const triple& first, const triple& size, std::uint64_t n) {
  // 1 / 1.2207..., its square and its cube.
  constexpr std::array<double, 3> steps{0.8191725134, 0.6710436067, 0.5497004779};
  triple place{};
  for (std::size_t a = 0; a < place.size(); ++a) {
    const double along = (static_cast<double>(n) + 0.5) * steps[a];
    place[a] = first[a] + static_cast<std::uint64_t>((along - std::floor(along)) * static_cast<double>(size[a]));
  }
  return place;
}

/// Counts the bytes that blocks read and write in the memory of the host and of other devices. Each thread has its own
/// object.
class access_watcher final : public ptx::instruction_observer {
 public:
  explicit access_watcher(traffic_count& count) : count_(count) {}

  /// Call this when a sampled block begins. `weight`: the number of blocks that the block represents. Clears the set of
  /// sectors that the previous block has used.
  void begin(double weight) {
    weight_ = weight;
    seen_.clear();
  }
  /// Returns the bytes that were counted since the last call.
  [[nodiscard]] remote_traffic take() { return std::exchange(found_, {}); }

  void comes_to(const ptx::block_context& /*block*/, std::uint32_t thread, const ptx::function& f,
                std::uint32_t position, const std::uint64_t* registers, bool runs) override {
    if (!runs) return;
    const ptx::instruction& i = f.code[position];
    const auto value = [&](std::size_t source) {
      const ptx::operand& o = i.sources[source];
      return (o.is_register() ? registers[o.index] : 0) + o.value;
    };
    const bool writes = i.kind == ptx::kind::store;
    switch (i.kind) {
      case ptx::kind::load:
      case ptx::kind::store:
        if (!i.sources[0].is_register())
          return;  // not counted: parameters and module variables, which are in the
                   // device's own memory
        if (i.op != ptx::opcode::wmma)
          return touch(value(0), std::uint64_t{ptx::bytes_of(i.types[0])} * i.vector, writes);
        for (const std::uint64_t offset : ptx::fragment_offsets(i, thread % 32, value(1)))
          touch(value(0) + offset, ptx::bytes_of(i.types[0]), writes);
        return;
      case ptx::kind::atomic: return add(value(0), true);
      case ptx::kind::copy_async: return touch(value(1), value(2), false);
      default: return;
    }
  }

 private:
  void touch(std::uint64_t address, std::uint64_t bytes, bool writes) {
    for (std::uint64_t s = address / sector; s * sector < address + bytes; ++s)
      if (!is_own(s * sector) && seen_.insert(2 * s + (writes ? 1 : 0)).second) add(s * sector, writes);
  }

  void add(std::uint64_t address, bool writes) {
    if (is_own(address)) return;
    remote_bytes& of = found_[place_];
    (writes ? of.written : of.read) += weight_ * static_cast<double>(sector);
  }

  /// Whether an address is in the device's own memory or outside hpe memory. If the result is false, place_ is the
  /// device or the host to which the memory belongs.
  [[nodiscard]] bool is_own(std::uint64_t address) {
    if (address < known_from_ || address >= known_to_) {
      const auto range = count_.memory.find(address);
      if (!range) return true;
      known_from_ = address;
      known_to_ = range->end;
      place_ = range->where.zero_copy ? host_location : range->where.device;
    }
    return place_ == static_cast<int>(count_.device);
  }

  traffic_count& count_;
  double weight_ = 0;
  remote_traffic found_;
  // The remote sectors that the block has used: 2 * sector if read, 2 * sector + 1 if written.
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t known_from_ = 0, known_to_ = 0;  // the range of addresses to which place_ applies
  int place_ = host_location;
};

/// Runs sampled blocks with an interpreter that counts their traffic, and all other blocks with the usual engine.
class counting_engine final : public ptx::execution_engine {
 public:
  counting_engine(std::shared_ptr<ptx::execution_engine> usual, traffic_count& count)
      : count_(count), usual_(std::move(usual)), now_(usual_.get()) {}
  ~counting_engine() override { count_.add(watcher_.take()); }

  [[nodiscard]] std::uint32_t frame_slots() const override { return usual_->frame_slots(); }
  [[nodiscard]] const ptx::instruction& at(std::uint32_t point) const override { return now_->at(point); }

  void begin(ptx::block_context& block) override {
    const auto found = count_.weights.find(number_of(triple_of(block.ctaid), triple_of(block.nctaid)));
    const bool counts = found != count_.weights.end();
    if (counts) {
      watcher_.begin(found->second);
      if (interpreter_ == nullptr) interpreter_ = std::make_unique<ptx::interpreter>(count_.program, &watcher_);
    }
    now_ = counts ? interpreter_.get() : usual_.get();
    // The interpreter and the usual engine store a block's registers at different positions.
    if (const std::uint32_t slots = frame_slots(); slots != 0) {
      block.register_stride = counts ? 1 : block.thread_count;
      for (std::uint32_t t = 0; t < block.thread_count; ++t) block.bases[t] = block.frame + t;
    }
    now_->begin(block);
  }

  std::uint32_t run(ptx::block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) override {
    return now_->run(block, point, first, last);
  }
  [[nodiscard]] std::uint32_t earliest(const ptx::block_context& block, std::uint32_t first,
                                       std::uint32_t lanes) const override {
    return now_->earliest(block, first, lanes);
  }
  [[nodiscard]] std::shared_ptr<ptx::execution_engine> another() const override {
    return std::make_shared<counting_engine>(usual_->another(), count_);
  }

 private:
  traffic_count& count_;
  access_watcher watcher_{count_};
  std::shared_ptr<ptx::execution_engine> usual_;
  std::unique_ptr<ptx::interpreter> interpreter_;  // created for the first sampled block
  ptx::execution_engine* now_;
};

ptx::dimensions cluster_of(const ptx::launch_configuration& launch) {
  if (launch.cluster) return *launch.cluster;
  const auto& own = launch.kernel->cluster;
  return own[0] == 0 ? ptx::dimensions{} : ptx::dimensions{own[0], own[1], own[2]};
}

std::string key_of(const ptx::launch_configuration& launch) {
  std::string key = launch.kernel->name;
  const auto append = [&key](const void* bytes, std::size_t count) {
    key.append(static_cast<const char*>(bytes), count);
  };
  append(&launch.kernel, sizeof(void*));
  append(&launch.grid, sizeof launch.grid);
  append(&launch.block, sizeof launch.block);
  append(launch.parameters, launch.kernel->formals_size);
  return key;
}

}  // namespace

std::unordered_map<std::uint64_t, double> sampled_blocks(const ptx::dimensions& grid, const ptx::dimensions& cluster) {
  const triple all = triple_of(grid), together = triple_of(cluster);
  triple clusters{};
  for (std::size_t a = 0; a < all.size(); ++a) clusters[a] = std::max<std::uint64_t>(all[a] / together[a], 1);
  const auto xs = spans_of(clusters[0]), ys = spans_of(clusters[1]), zs = spans_of(clusters[2]);
  const std::uint64_t of_each = std::max<std::uint64_t>(samples / (xs.size() * ys.size() * zs.size()), 2);
  std::unordered_map<std::uint64_t, double> found;
  const auto add = [&](const triple& place, double weight) {
    found[number_of({place[0] * together[0], place[1] * together[1], place[2] * together[2]}, all)] += weight;
  };
  for (const auto& z : zs) {
    for (const auto& y : ys) {
      for (const auto& x : xs) {
        const triple first{x.first, y.first, z.first}, size{x.count, y.count, z.count};
        const std::uint64_t blocks = size[0] * size[1] * size[2];
        if (blocks <= of_each) {
          for (std::uint64_t n = 0; n < blocks; ++n)
            add({first[0] + n % size[0], first[1] + n / size[0] % size[1], first[2] + n / size[0] / size[1]}, 1);
        } else {
          for (std::uint64_t n = 0; n < of_each; ++n)
            add(place_in(first, size, n), static_cast<double>(blocks) / static_cast<double>(of_each));
        }
      }
    }
  }
  const auto members = static_cast<double>(cluster.count());
  if (members > 1)
    for (auto& [block, weight] : found) weight *= members;
  return found;
}

traffic_count::traffic_count(unsigned of, const address_space& where, const ptx::launch_configuration& launch)
    : device(of),
      memory(where),
      program(launch.image->program()),
      weights(sampled_blocks(launch.grid, cluster_of(launch))) {}

std::shared_ptr<ptx::execution_engine> traffic_count::engine_over(std::shared_ptr<ptx::execution_engine> usual) {
  return std::make_shared<counting_engine>(std::move(usual), *this);
}

void traffic_count::add(const remote_traffic& of_some_blocks) {
  const lock_guard lock(mutex_);
  for (const auto& [place, bytes] : of_some_blocks) {
    total_[place].read += bytes.read;
    total_[place].written += bytes.written;
  }
}

remote_traffic traffic_count::total() {
  const lock_guard lock(mutex_);
  return total_;
}

bool link_meter::has_limits() const {
  const fabric_configuration& limits = shared_.configuration();
  return limits.host_limit.bytes_per_second != 0 || limits.peer_limit.bytes_per_second != 0;
}

std::unique_ptr<traffic_count> link_meter::begin(const ptx::launch_configuration& launch) {
  if (!has_limits()) return nullptr;
  {
    const lock_guard lock(mutex_);
    const auto found = launches_.find(key_of(launch));
    if (found != launches_.end() && found->second.uses < uses_of_a_count) return nullptr;
  }
  return std::make_unique<traffic_count>(device_, memory_, launch);
}

void link_meter::end(const ptx::launch_configuration& launch, traffic_count* counted, std::uint64_t start) {
  if (!has_limits()) return;
  remote_traffic traffic;
  {
    const lock_guard lock(mutex_);
    if (launches_.size() >= most_known) launches_.clear();
    known& of = launches_[key_of(launch)];
    if (counted != nullptr) of = {counted->total(), 0};
    ++of.uses;
    traffic = of.traffic;
  }
  std::vector<movement> all;
  const auto own = static_cast<int>(device_);
  for (const auto& [place, bytes] : traffic) {
    all.push_back({find_path(shared_, device_, place, own), static_cast<std::uint64_t>(std::llround(bytes.read))});
    all.push_back({find_path(shared_, device_, own, place), static_cast<std::uint64_t>(std::llround(bytes.written))});
  }
  pass_links(all, start);
}

}  // namespace hpe::device::soft
