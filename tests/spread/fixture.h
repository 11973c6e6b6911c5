#pragma once

/// Tests decisions about launches, but launches nothing. Allocations are only descriptions, without memory.

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/ptx/text/parser.h"
#include "runtime/spread/planner.h"

namespace hpe::spread::test {

inline constexpr std::uint64_t kib = 1U << 10U, mib = 1U << 20U, gib = 1U << 30U;
inline constexpr std::uint64_t granule = 2 * mib;

/// Returns a part of the grid that has a block.
inline subgrid random_part(std::mt19937& random, const dimension& grid) {
  subgrid part;
  for (std::size_t a = 0; a < grid.size(); ++a) {
    part.first[a] = static_cast<std::uint32_t>(random() % grid[a]);
    part.count[a] = static_cast<std::uint32_t>(1 + random() % (grid[a] - part.first[a]));
  }
  return part;
}

/// Returns the linear indices of a part's blocks.
inline std::vector<std::uint64_t> blocks_of(const subgrid& part, const dimension& grid) {
  std::vector<std::uint64_t> result;
  for (std::uint32_t z = 0; z < grid[2]; ++z)
    for (std::uint32_t y = 0; y < grid[1]; ++y)
      for (std::uint32_t x = 0; x < grid[0]; ++x)
        if (part.contains({x, y, z})) result.push_back(x + std::uint64_t{grid[0]} * (y + std::uint64_t{grid[1]} * z));
  return result;
}

/// scale(a, n, factor): a[i] *= factor for the global index i < n.
inline constexpr const char* scale_kernel = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 a, .param .u64 n, .param .f32 factor) {
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .f32 %f<3>;
  ld.param.u64 %d0, [a]; ld.param.u64 %d1, [n]; ld.param.f32 %f0, [factor];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mul.wide.u32 %d2, %r0, %r1;
  mov.u32 %r2, %tid.x; cvt.u64.u32 %d3, %r2; add.s64 %d2, %d2, %d3;
  setp.ge.u64 %p, %d2, %d1; @%p bra END;
  cvta.to.global.u64 %d4, %d0; shl.b64 %d2, %d2, 2; add.s64 %d4, %d4, %d2;
  ld.global.f32 %f1, [%d4]; mul.f32 %f1, %f1, %f0; st.global.f32 [%d4], %f1;
END: ret;
}
)";

/// Allocations and a planner.
class program_on {
 public:
  explicit program_on(std::uint32_t devices) : planner_(machine_of(devices)) {}
  explicit program_on(const machine& m) : planner_(m) {}

  static machine machine_of(std::uint32_t devices) {
    machine m;
    m.devices = devices;
    return m;
  }

  /// Makes an allocation: in parts over all devices or, if is_on_one, on device 0.
  kernel_array& allocate(std::uint64_t bytes, bool is_on_one = false) {
    kernel_array& a = allocations_.emplace_back();
    a.address = next_;
    a.bytes = bytes;
    a.granule = granule;
    a.version = 1;
    array_placement first = planner_.first_placement(bytes, granule);
    if (is_on_one) first = {array_placement::kind::one, 0, {}, 0};
    a.homes = homes_under(first, a, planner_.rates().devices);
    next_ += (bytes / granule + 2) * granule;
    return a;
  }

  /// The parameters of a launch. A number is its own value; an allocation becomes a pointer to its first byte.
  class arguments {
   public:
    explicit arguments(const ptx::function& f) : function_(f), bytes_(f.formals_size + 16) {}
    arguments& operator<<(const kernel_array& a) {
      pointers_[function_.formals.at(next_).offset] = &a;
      return *this << a.address;
    }
    template <class T>
    requires std::is_arithmetic_v<T> arguments& operator<<(T value) {
      std::memcpy(bytes_.data() + function_.formals.at(next_++).offset, &value, sizeof value);
      return *this;
    }
    [[nodiscard]] const void* data() const { return bytes_.data(); }
    [[nodiscard]] const kernel_array* at(std::uint32_t offset) const {
      const auto found = pointers_.find(offset);
      return found == pointers_.end() ? nullptr : found->second;
    }

   private:
    const ptx::function& function_;
    std::vector<std::uint8_t> bytes_;
    std::map<std::uint32_t, const kernel_array*> pointers_;
    std::size_t next_ = 0;
  };

  [[nodiscard]] static std::vector<const kernel_array*> arrays_of(const kernel_model& k, const arguments& a) {
    std::vector<const kernel_array*> arrays;
    for (const kernel_model::pointer& p : k.pointers()) arrays.push_back(a.at(p.offset));
    return arrays;
  }

  const decision& decide(const kernel_model& k, const dimension& grid, const dimension& block, const arguments& a) {
    const launch l{grid, block, a.data(), k.analysis().kernel->formals_size};
    return planner_.decide(k, l, arrays_of(k, a));
  }

  /// Changes the descriptions of the arrays to the places that the decision demands.
  static void move(const kernel_model& k, const arguments& a, const decision& d, std::uint32_t devices) {
    for (std::size_t n = 0; n < d.arrays.size(); ++n) {
      auto* const moved = const_cast<kernel_array*>(a.at(k.pointers()[n].offset));
      const array_placement& to = d.arrays[n].move_to;
      if (moved == nullptr || to.how == array_placement::kind::stay) continue;
      moved->homes = homes_under(to, *moved, devices);
      moved->is_replicated = to.how == array_placement::kind::replicated;
      ++moved->version;
    }
  }

  [[nodiscard]] spread::planner& planner() { return planner_; }

 private:
  spread::planner planner_;
  std::deque<kernel_array> allocations_;
  std::uint64_t next_ = std::uint64_t{1} << 32U;
};

}  // namespace hpe::spread::test
