#include "runtime/core/operations/parts_in_time.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

namespace hpe::core {

using coherence::byte_range;

namespace {

/// The arrays of a launch, and the device memory that parts of them take.
class launch_arrays {
 public:
  launch_arrays(allocator& memory, const spread::kernel_model& kernel, const spread::launch& launch,
                std::span<const hpeAccess> others)
      : memory_(memory) {
    for (const hpeAccess& each : others)
      for (const home& h : describe(memory, each.address).homes) of_others_[h.device] += h.range.size();
    for (const spread::kernel_model::pointer& p : kernel.pointers()) {
      const void* pointer = nullptr;
      if (p.offset + sizeof pointer <= launch.parameter_bytes)
        std::memcpy(&pointer, static_cast<const std::byte*>(launch.parameters) + p.offset, sizeof pointer);
      described_.push_back(describe(memory, pointer));
      // For example, the pointer may be the end of an array: the kernel then uses an array that does not contain the
      // address.
      leads_nowhere_ |= described_.back().region == nullptr && memory.is_in_space(pointer);
    }
    for (const array& each : described_) arrays_.push_back(each.region != nullptr ? &each.what : nullptr);
  }

  /// Returns, for each pointer of the launch, the allocation into which it points; nullptr if it points to memory other
  /// than hpe memory.
  [[nodiscard]] const std::vector<const spread::kernel_array*>& of_pointers() const { return arrays_; }

  /// Whether a pointer of the launch is in hpe's address space, but in no allocation.
  [[nodiscard]] bool leads_nowhere() const { return leads_nowhere_; }

  /// Sets the accesses of a part, which uses these bytes.
  void describe(const std::vector<spread::used_bytes>& used, part_in_time& part) const {
    for (const spread::used_bytes& each : used) {
      const array& its = described_[each.pointer];
      if (each.rows && !its.homes.empty()) {
        const auto offset = static_cast<std::ptrdiff_t>(its.begin) + each.rows->offset;
        part.rows.push_back({part.accesses.size(), {offset, each.rows->shape}});
      }
      part.accesses.push_back({its.base + each.first, each.last - each.first, mode_of(each)});
    }
  }

  /// Returns how much of the devices' memory the bytes need, in whole pieces (work::residency): the largest ratio, over
  /// all devices, of the needed bytes to the device's memory.
  [[nodiscard]] double load(const std::vector<spread::used_bytes>& used) const {
    std::vector<std::tuple<const coherence::region*, byte_range, const array*>> pieces;
    for (const spread::used_bytes& each : used) {
      const array& a = described_[each.pointer];
      if (a.homes.empty()) continue;
      const std::uint64_t begin = (a.begin + each.first) / a.piece * a.piece;
      const std::uint64_t end = (a.begin + each.last + a.piece - 1) / a.piece * a.piece;
      pieces.emplace_back(a.region, byte_range{begin, end}, &a);
    }
    std::ranges::sort(pieces, [](const auto& a, const auto& b) {
      return std::tuple(std::get<0>(a)->id, std::get<1>(a).begin) <
             std::tuple(std::get<0>(b)->id, std::get<1>(b).begin);
    });
    std::map<unsigned, std::uint64_t> needed = of_others_;
    const coherence::region* of = nullptr;
    std::uint64_t counted = 0;
    for (const auto& [region, range, a] : pieces) {
      if (region != of) counted = 0;
      of = region;
      for (const home& h : a->homes) {
        const std::uint64_t first = std::max({range.begin, h.range.begin, counted}),
                            last = std::min(range.end, h.range.end);
        if (first < last) needed[h.device] += last - first;
      }
      counted = std::max(counted, range.end);
    }
    double most = 0;
    for (const auto& [device, bytes] : needed)
      most = std::max(most, static_cast<double>(bytes) / static_cast<double>(room_of(device)));
    return most;
  }

 private:
  struct home {
    unsigned device = 0;
    byte_range range;
  };
  struct array {
    const coherence::region* region = nullptr;
    std::byte* base = nullptr;
    std::uint64_t begin = 0;  // the offset of the array in its region
    std::uint64_t piece = 1;
    std::vector<home> homes;  // empty for host memory, which needs no device memory
    spread::kernel_array what;
  };

  static array describe(allocator& memory, const void* pointer) {
    array result;
    const allocation found = memory.find(pointer);
    if (found.region == nullptr) return result;
    const coherence::region& r = *found.region;
    const lock_guard lock(r.mutex);
    if (!r.alive) return result;
    result.region = &r;
    result.base = found.base;
    result.begin = r.offset_of(found.base);
    result.piece = std::max<std::uint64_t>(r.layout.piece_size, granule_size);
    result.what.address = reinterpret_cast<std::uint64_t>(found.base);
    result.what.bytes = found.bytes;
    if (r.single_copy()) return result;
    r.for_each_home({0, r.bytes_at_homes()}, [&](unsigned device, byte_range part) {
      result.homes.push_back({device, part});
    });
    return result;
  }

  [[nodiscard]] std::uint64_t room_of(unsigned device) const {
    return std::max<std::uint64_t>(memory_.most_of(device), 1);
  }

  allocator& memory_;
  std::map<unsigned, std::uint64_t> of_others_;  // for each device, the bytes that `others` need
  std::deque<array> described_;
  std::vector<const spread::kernel_array*> arrays_;
  bool leads_nowhere_ = false;
};

}  // namespace

std::vector<part_in_time> cut_in_time(allocator& memory, const spread::kernel_model& kernel,
                                      const spread::launch& launch, std::uint32_t count,
                                      std::span<const hpeAccess> others, const std::string& obstacle,
                                      const std::string& refusal) {
  const launch_arrays arrays(memory, kernel, launch, others);
  HPE_REQUIRE(!arrays.leads_nowhere(), HPE_ERROR_OUT_OF_MEMORY,
              "{}; the launch cannot run in parts one after the other: it has a pointer that is in no allocation",
              refusal);
  spread::footprint touched(kernel, launch, arrays.of_pointers());
  const spread::cut_in_time cut =
      spread::cut_for_room(touched, kernel, spread::cut_evenly(launch.grid, count).parts, obstacle,
                           [&](const std::vector<spread::used_bytes>& used) { return arrays.load(used); });
  HPE_REQUIRE(cut.obstacle.empty(), HPE_ERROR_OUT_OF_MEMORY,
              "{}; the launch cannot run in parts one after the other: {}", refusal, cut.obstacle);
  log(log_level::info, "a launch whose memory does not fit runs in {} parts, one after the other", cut.parts.size());
  std::vector<part_in_time> parts;
  for (const spread::part_of_devices& blocks : cut.parts)
    arrays.describe(touched.with_overwritten(blocks), parts.emplace_back(part_in_time{blocks, {}, {}}));
  return parts;
}

void tell_of_zero_copy(const std::string& refusal) noexcept {
  static std::atomic<bool> told{false};
  log(told.exchange(true) ? log_level::info : log_level::warn,
      "work of the program accesses data in host memory, which is slow, because {}", refusal);
}

}  // namespace hpe::core
