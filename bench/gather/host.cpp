// Gather and scatter on the host, by a plain loop and by oneTBB.

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <thread>
#include <vector>

#include "bench/gather/peers.h"

namespace hpe::bench {

namespace {

template <class Index>
void loop(const movement& m, const Index* indices, std::uint64_t begin, std::uint64_t end) {
  if (m.way == kernels::gather_way::gather)
    for (std::uint64_t i = begin; i < end; ++i) m.values[i] = m.table[indices[i]];
  else
    for (std::uint64_t i = begin; i < end; ++i) m.table[indices[i]] = m.values[i];
}

void loop(const movement& m, std::uint64_t begin, std::uint64_t end) {
  if (m.index == 4)
    loop(m, static_cast<const std::uint32_t*>(m.indices), begin, end);
  else
    loop(m, static_cast<const std::uint64_t*>(m.indices), begin, end);
}

}  // namespace

void by_loop(unsigned threads, const movement& m) {
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t)
    others.emplace_back([&m, t, threads] { loop(m, m.count * t / threads, m.count * (t + 1) / threads); });
  loop(m, 0, m.count / threads);
  for (std::thread& t : others) t.join();
}

void by_tbb(unsigned threads, const movement& m) {
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, m.count),
                      [&](const auto& part) { loop(m, part.begin(), part.end()); });
  });
}

}  // namespace hpe::bench
