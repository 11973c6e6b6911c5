// The kernels of `hpe bench remote` for soft devices. A tile of the launch computes one block of threads.

#include "bench/remote/pass.h"

#include <atomic>
#include <chrono>
#include <cmath>

#include "hpe/kernel.h"

namespace {

using namespace hpe::bench::remote;

uint64_t clock_now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

element computed(element e, uint32_t steps) {
  for (float& v : e.at)
    for (uint32_t s = 0; s < steps; ++s) v = std::fma(v, factor, addend);
  return e;
}

void add(element& sum, const element& e) {
  for (int i = 0; i < 4; ++i) sum.at[i] += e.at[i];
}

}  // namespace

HPE_HOST_KERNEL(remote_pass, pass) {
  const pass& p = *parameters;
  for (uint64_t block = tiles->begin; block < tiles->end; ++block) {
    element* const sums = p.sums + block * tile_elements;
    if (p.writes == 0)
      for (uint32_t t = 0; t < tile_elements; ++t) sums[t] = {};
    for (uint64_t tile = block; tile < uint64_t{p.columns} * p.rows; tile += tiles->grid[0]) {
      if (p.stamps != nullptr) p.stamps[2 * tile] = clock_now();
      const auto column = static_cast<uint32_t>(tile % p.columns), row = static_cast<uint32_t>(tile / p.columns);
      const element* const in = p.in[where(p.far_reads, column, row)] + tile * tile_elements;
      element* const out = p.out[where(p.far_writes, column, row)] + tile * tile_elements;
      for (uint32_t t = 0; t < tile_elements; ++t) {
        const auto number = static_cast<float>(t);
        const element e = computed(p.reads != 0 ? in[t] : element{{number, number, number, number}}, p.steps);
        if (p.writes != 0)
          out[t] = e;
        else
          add(sums[t], e);
      }
      if (p.stamps != nullptr) p.stamps[2 * tile + 1] = clock_now();
    }
  }
}

HPE_HOST_KERNEL(remote_look_up, look_up) {
  const look_up& p = *parameters;
  for (uint64_t block = tiles->begin; block < tiles->end; ++block)
    for (uint32_t t = 0; t < tile_elements; ++t) {
      element sum{};
      for (uint32_t k = 0; k < p.reads; ++k) add(sum, p.table[entry(static_cast<uint32_t>(block), t, k, p.entries)]);
      p.sums[block * tile_elements + t] = sum;
    }
}

HPE_HOST_KERNEL(remote_add, adding) {
  const adding& p = *parameters;
  for (uint64_t block = tiles->begin; block < tiles->end; ++block)
    for (uint32_t t = 0; t < tile_elements; ++t)
      for (uint32_t k = 0; k < p.adds; ++k)
        std::atomic_ref(p.counters[entry(static_cast<uint32_t>(block), t, k, p.entries)])
            .fetch_add(1, std::memory_order_relaxed);
}

HPE_HOST_KERNEL(remote_filter, filter) {
  const filter& p = *parameters;
  const int64_t side = p.side, reach = p.reach, pixels = side * side;
  const float* const weights = p.path == weight_path::parameter ? p.by_value : p.weights;
  for (uint64_t block = tiles->begin; block < tiles->end; ++block)
    for (int64_t i = static_cast<int64_t>(block) * tile_elements; i < pixels;
         i += int64_t{tiles->grid[0]} * tile_elements)
      for (int64_t t = i; t < i + tile_elements && t < pixels; ++t) {
        float sum = 0;
        for (int64_t dy = -reach; dy <= reach; ++dy)
          for (int64_t dx = -reach; dx <= reach; ++dx)
            sum = std::fma(weights[(dy + reach) * (2 * reach + 1) + dx + reach],
                           p.in[in_image(t / side + dy, p.side) * side + in_image(t % side + dx, p.side)], sum);
        p.out[t] = sum;
      }
}
