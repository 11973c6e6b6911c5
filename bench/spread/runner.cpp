#include "bench/spread/runner.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace hpe::bench {

namespace {

constexpr std::uint32_t poison = 0x7fc0dead;  // a NaN, as a float

placement place_of(std::uint64_t bytes, way how, const std::vector<int>& devices) {
  if (how != way::spread || bytes < granularity() * devices.size()) return on_device(0);
  return block_distribution(devices);
}

}  // namespace

running_program::running_program(const single_gpu_program& what, const ptx_module& kernels, way how, int devices)
    : what_(what), kernels_(kernels), how_(how) {
  for (int d = 0; d < devices; ++d) devices_.push_back(d);
  for (const memory& m : what.arrays) arrays_.emplace_back(m.words, place_of(4 * m.words, how, devices_));
}

void running_program::fill() {
  for (std::size_t n = 0; n < arrays_.size(); ++n) {
    const memory& m = what_.arrays[n];
    const auto target = argument{static_cast<int>(n), 0};
    const std::array<std::uint32_t, 3> grid{static_cast<std::uint32_t>((m.words + 255) / 256), 1, 1}, block{256, 1, 1};
    switch (m.what) {
      case memory::content::random_floats:
        launch({"fill_random", grid, block, {target, {-1, m.words}, {-1, n + 1}}});
        break;
      case memory::content::result: launch({"fill_word", grid, block, {target, {-1, m.words}, {-1, poison}}}); break;
      case memory::content::zeros: hpe::fill(arrays_[n].data(), 0, 4 * m.words); break;
      case memory::content::given: copy(arrays_[n].data(), m.given.data(), 4 * m.words); break;
    }
  }
  synchronize();
}

void running_program::run() {
  spread_steps_ = 0;
  reason_.clear();
  for (const step& s : what_.steps) launch(s);
}

void running_program::launch(const step& s) {
  const hpeKernel kernel = kernels_[s.kernel.c_str()];
  hpeKernelInfo info{};
  check(hpeKernelGetInfo(kernel, &info));
  std::vector<std::byte> bytes(info.parameter_bytes);
  std::vector<hpeAccess> accesses;
  for (std::uint32_t n = 0; n < info.parameter_count; ++n) {
    const argument& a = s.arguments.at(n);
    const void* pointer = nullptr;
    const void* from = &a.bits;
    if (a.array >= 0) {
      pointer = arrays_.at(static_cast<std::size_t>(a.array)).data();
      from = &pointer;
      accesses.push_back({pointer, 0, HPE_INOUT});
    }
    std::memcpy(bytes.data() + info.parameter_offsets[n], from, info.parameter_sizes[n]);
  }
  const hpeGrid shape{{s.grid[0], s.grid[1], s.grid[2]}, {s.block[0], s.block[1], s.block[2]}, 0, 0, {}};
  switch (how_) {
    case way::as_it_is:
      check(hpeLaunchGrid(0, kernel, &shape, bytes.data(), bytes.size(), accesses.data(), accesses.size(), nullptr));
      return;
    case way::patched: {
      const hpePart whole{0, {0, 0, 0}, {s.grid[0], s.grid[1], s.grid[2]}};
      check(hpeLaunchParts(&whole, 1, kernel, &shape, bytes.data(), bytes.size()));
      return;
    }
    case way::spread: {
      hpeSpread became{};
      check(hpeLaunchOver(devices_.data(), devices_.size(), kernel, &shape, bytes.data(), bytes.size(), &became));
      if (became.parts > 1) {
        ++spread_steps_;
      } else if (reason_.empty()) {
        reason_ = s.kernel + ": " + became.reason;
      }
    }
  }
}

contents running_program::results() const {
  synchronize();
  contents all;
  for (const int n : what_.results) {
    const auto& from = arrays_.at(static_cast<std::size_t>(n));
    copy(all.emplace_back(from.size()).data(), from.data(), 4 * from.size());
  }
  return all;
}

std::uint64_t differences(const contents& a, const contents& b, const single_gpu_program& what) {
  std::uint64_t count = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    for (std::size_t i = 0; i < a[n].size(); ++i) {
      if (a[n][i] == b[n][i]) continue;
      const float x = std::bit_cast<float>(a[n][i]), y = std::bit_cast<float>(b[n][i]);
      constexpr float rounding = 2e-4F;
      const bool close = what.are_floats && std::abs(x - y) <= rounding * (1 + std::max(std::abs(x), std::abs(y)));
      count += close ? 0 : 1;
    }
  }
  return count;
}

std::uint64_t differences(const running_program& a, const running_program& b, const single_gpu_program& what,
                          const ptx_module& kernels) {
  if (!what.is_exact) return differences(a.results(), b.results(), what);
  const array<std::uint64_t> count(1, on_device(0));
  count[0] = 0;
  for (const int n : what.results) {
    const auto &x = a.arrays()[static_cast<std::size_t>(n)], &y = b.arrays()[static_cast<std::size_t>(n)];
    launch_over({0}, kernels["count_differences"], {(x.size() + 255) / 256}, {256}, count.data(), x.data(), y.data(),
                static_cast<unsigned long long>(x.size()));
  }
  synchronize();
  return count[0];
}

}  // namespace hpe::bench
