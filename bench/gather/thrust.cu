// The references on a GPU: Thrust and a plain kernel.

#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>

#include "bench/gather/peers.h"
#include "hpe/cuda.hpp"

namespace hpe::bench {

namespace {

template <class Index>
__global__ void plain(kernels::gather_way way, std::uint64_t* table, const Index* indices, std::uint64_t* values,
                      std::uint64_t count) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (way == kernels::gather_way::gather)
    values[i] = table[indices[i]];
  else
    table[indices[i]] = values[i];
}

/// Queues body(stream, indices) as device work of hpe. `indices` points to 32-bit or 64-bit indices, as m.index says.
template <class Body>
void queue(int device, const movement& m, const Body& body) {
  const bool gathers = m.way == kernels::gather_way::gather;
  const std::span table(m.table, m.table_count), values(m.values, m.count);
  const std::span indices(static_cast<const std::byte*>(m.indices), m.count * m.index);
  enqueue(
      device,
      [&](cudaStream_t stream) {
        if (m.index == 4)
          body(stream, static_cast<const std::uint32_t*>(m.indices));
        else
          body(stream, static_cast<const std::uint64_t*>(m.indices));
      },
      in(indices), gathers ? in(table) : inout(table), gathers ? out(values) : in(values));
}

}  // namespace

bool thrust_there() { return true; }

void by_thrust(int device, const movement& m) {
  queue(device, m, [&](cudaStream_t stream, const auto* indices) {
    const auto policy = thrust::cuda::par_nosync.on(stream);
    if (m.way == kernels::gather_way::gather)
      thrust::gather(policy, indices, indices + m.count, m.table, m.values);
    else
      thrust::scatter(policy, m.values, m.values + m.count, indices, m.table);
  });
}

void by_plain_kernel(int device, const movement& m) {
  queue(device, m, [&](cudaStream_t stream, const auto* indices) {
    constexpr unsigned threads = 256;
    plain<<<static_cast<unsigned>((m.count + threads - 1) / threads), threads, 0, stream>>>(m.way, m.table, indices,
                                                                                            m.values, m.count);
  });
}

}  // namespace hpe::bench
