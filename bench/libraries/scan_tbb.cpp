#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_scan.h>
#include <oneapi/tbb/task_arena.h>

#include <functional>

#include "bench/libraries/scan_peers.h"

namespace hpe::bench {

template <class T>
void tbb_sum(unsigned threads, const T* input, T* output, std::uint64_t count) {
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_scan(
        tbb::blocked_range<std::uint64_t>(0, count), T(0),
        [=](const tbb::blocked_range<std::uint64_t>& part, T sum, bool is_final) {
          if (is_final) {
            for (std::uint64_t i = part.begin(); i != part.end(); ++i) {
              sum = sum + input[i];
              output[i] = sum;
            }
          } else {
            for (std::uint64_t i = part.begin(); i != part.end(); ++i) sum = sum + input[i];
          }
          return sum;
        },
        std::plus<T>());
  });
}

template void tbb_sum(unsigned, const std::int32_t*, std::int32_t*, std::uint64_t);
template void tbb_sum(unsigned, const std::int64_t*, std::int64_t*, std::uint64_t);
template void tbb_sum(unsigned, const float*, float*, std::uint64_t);
template void tbb_sum(unsigned, const double*, double*, std::uint64_t);

}  // namespace hpe::bench
