#pragma once

/// Merges up to four sorted runs on a GPU, and reads each run only once.

#include <string.h>

#include "kernels/cuda/merge_near.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/sort.h"

namespace hpe::kernels::gpu {

/// The sizes of a merge of four runs, as merge_shape. The first two runs are merged into one half, the last two runs
/// into the other half, and the two halves into the outputs. Each half is a ring buffer. Each step adds as many
/// elements to the halves as the previous step took from them.
template <class T>
struct merge_four_shape {
  static_assert(sizeof(T) <= 32, "elements of merges on GPUs have at most 32 bytes");
  static constexpr uint32_t capacity = power_of_two_within(8192 / sizeof(T)), half = capacity / 2;
  using run = ring<T, capacity, merge_threads>;
  static constexpr uint32_t fitting = half - run::line, of_thread = fitting / merge_threads;
  static constexpr uint32_t each = of_thread < 2 ? 1 : (of_thread % 2 == 0 ? of_thread - 1 : of_thread);
  static constexpr uint32_t step = of_thread > 0 ? each* merge_threads : fitting;
};

template <class T>
struct merge_four_memory {
  using shape = merge_four_shape<T>;
  // The ring buffers of the runs, followed by the ring buffers of the halves.
  alignas(16) unsigned char near[(sort_runs * shape::capacity + 2 * shape::half) * sizeof(T)];
  alignas(16) unsigned char merged[shape::step * sizeof(T)];
  uint64_t bounds[2][sort_runs];
  uint32_t from_half, from_run[2];
};

/// Returns the value that `value` has in lane `lane`.
template <class T>
[[nodiscard]] __device__ __forceinline__ T element_of_lane(const T& value, unsigned lane) {
  unsigned words[(sizeof(T) + 3) / 4] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (unsigned& word : words) word = shuffle(word, lane);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

/// Computes kernels::select_runs by a warp: sets split[r] to the number of elements of run r among the first `place`
/// elements of the merged sequence. Each group of eight lanes reads elements of one run. The elements that the lanes
/// read in the other runs bound the number of elements that precede a lane's element. These bounds usually show on
/// which side of the split the lane's element is.
template <class T, class Less>
__device__ void warp_select(const sort_merge_four<T>& p, uint64_t place, Less less, uint64_t* split) {
  constexpr unsigned looks = warp_size / sort_runs, of_run = (1U << looks) - 1;
  const unsigned lane = lane_number(), run = lane / looks, number = lane % looks, first = run * looks;
  const uint64_t others = p.total() - p.counts[run];
  uint64_t low = place > others ? place - others : 0, high = place < p.counts[run] ? place : p.counts[run];
  while (__any_sync(all_lanes, low < high)) {
    const uint64_t range = high - low;
    const uint64_t at = low + (range <= looks ? number : range / (looks + 1) * (number + 1));
    const bool there = at < high;
    T mine;
    if (there) mine = p.runs[run][at];
    uint64_t least = at, most = at;  // bounds on how many elements of the merged sequence precede `mine`
#pragma unroll
    for (unsigned r = 0; r < sort_runs; ++r) {
      const unsigned looked = __popc(__ballot_sync(all_lanes, there) >> r * looks & of_run);
      unsigned before = 0;  // number of elements read in run r that precede `mine`
#pragma unroll
      for (unsigned more = looks; more > 0; more /= 2) {
        const unsigned next = before + more;
        const T theirs = element_of_lane(mine, r * looks + (next <= looked ? next : 1) - 1);
        if (next <= looked && (r < run ? !less(mine, theirs) : less(theirs, mine))) before = next;
      }
      const uint64_t last = shuffle(at, r * looks + (before > 0 ? before : 1) - 1);
      const uint64_t next = shuffle(at, r * looks + (before < looked ? before : 0));
      const uint64_t its_low = shuffle(low, r * looks), its_high = shuffle(high, r * looks);
      if (r == run) continue;
      least += before == 0 ? its_low : last + 1;
      most += before == looked ? its_high : next;
    }
    const unsigned inside = __ballot_sync(all_lanes, there && most < place) >> first & of_run;
    const unsigned beyond = __ballot_sync(all_lanes, there && least >= place) >> first & of_run;
    const uint64_t new_low = shuffle(at, inside == 0 ? lane : first + warp_size - 1 - __clz(inside)) + 1;
    const uint64_t new_high = shuffle(at, beyond == 0 ? lane : first + __ffs(beyond) - 1);
    if (inside != 0) low = new_low;
    if (beyond != 0) high = new_high;
  }
  if (number == 0) split[run] = low;
}

/// The first element and the number of elements of each half; the values are the same in all threads.
struct halves_of_four {
  uint32_t begin[2], count[2];
};

/// Adds elements to the halves until each half has `wanted` elements, or its two runs are used up. endless: each run
/// has enough elements left for this step, so that its end is not tested.
template <bool endless, class T, class Less>
__device__ __forceinline__ void fill_halves(typename merge_four_shape<T>::run (&runs)[sort_runs],
                                            halves_of_four& halves, uint32_t wanted, merge_four_memory<T>& shared,
                                            Less less) {
  using shape = merge_four_shape<T>;
  constexpr uint32_t each = shape::each;
  T* const near = reinterpret_cast<T*>(shared.near);
  near_sequence rings[sort_runs];
  uint32_t added[2];
#pragma unroll
  for (uint32_t r = 0; r < sort_runs; ++r)
    rings[r] = {r * shape::capacity, runs[r].place(0), shape::capacity - 1,
                endless || runs[r].left() > shape::step ? shape::step : static_cast<uint32_t>(runs[r].left())};
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t there = rings[2 * h].count + rings[2 * h + 1].count;
    const uint32_t missing = wanted > halves.count[h] ? wanted - halves.count[h] : 0;
    added[h] = endless || missing < there ? missing : there;
  }
  // The first threads add elements to the first half, the next threads to the second half. Usually each thread makes
  // one iteration.
  const uint32_t first = (added[0] + each - 1) / each, both = first + (added[1] + each - 1) / each;
  for (uint32_t i = threadIdx.x; i < both; i += merge_threads) {
    const uint32_t h = i < first ? 0 : 1, place = (h == 0 ? i : i - first) * each;
    const uint32_t count = h == 0 ? added[0] : added[1];
    T mine[each];
    const uint32_t from_left =
        merge_near<endless>(near, h == 0 ? rings[0] : rings[2], h == 0 ? rings[1] : rings[3], place, count, mine, less);
    if (place + each >= count) shared.from_run[h] = from_left;
    const uint32_t end = h == 0 ? halves.begin[0] + halves.count[0] : halves.begin[1] + halves.count[1];
    T* const half = near + sort_runs * shape::capacity + h * shape::half;
#pragma unroll
    for (uint32_t k = 0; k < each; ++k)
      if (place + k < count) half[(end + place + k) & (shape::half - 1)] = mine[k];
  }
  __syncthreads();
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t from_left = added[h] == 0 ? 0 : shared.from_run[h];
    runs[2 * h].drop(from_left);
    runs[2 * h + 1].drop(added[h] - from_left);
    halves.count[h] += added[h];
  }
}

/// Merges the next `count` outputs from the halves. whole: the step has the full size, and each half has at least as
/// many elements.
template <bool whole, class T, class Less>
__device__ __forceinline__ void merge_halves(halves_of_four& halves, uint32_t count, merge_four_memory<T>& shared,
                                             Less less) {
  using shape = merge_four_shape<T>;
  constexpr uint32_t base = sort_runs * shape::capacity, mask = shape::half - 1;
  const near_sequence a{base, halves.begin[0], mask, halves.count[0]};
  const near_sequence b{base + shape::half, halves.begin[1], mask, halves.count[1]};
  merge_beginning<whole, shape::each>(reinterpret_cast<const T*>(shared.near), a, b, count,
                                      reinterpret_cast<T*>(shared.merged), shared.from_half, less);
  __syncthreads();
  const uint32_t taken[2] = {shared.from_half, count - shared.from_half};
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    halves.begin[h] += taken[h];
    halves.count[h] -= taken[h];
  }
}

/// Computes one range of the outputs from four runs, as merge_part does from two sequences.
template <class T, class Less>
__device__ void merge_four_part(const sort_merge_four<T>& p, merge_four_memory<T>& shared) {
  const Less less{};
  using shape = merge_four_shape<T>;
  using run = typename shape::run;
  auto [begin, end] = part_of_block(p.from, p.to, run::line);
  if (begin >= end) return;
  const unsigned warp = threadIdx.x / warp_size;
  if (warp < 2) warp_select(p, warp == 0 ? begin : end, less, shared.bounds[warp]);
  __syncthreads();
  T* const near = reinterpret_cast<T*>(shared.near);
  const auto run_of = [&](unsigned r) {
    return run(near + r * shape::capacity, p.runs[r], shared.bounds[0][r], shared.bounds[1][r]);
  };
  run runs[sort_runs] = {run_of(0), run_of(1), run_of(2), run_of(3)};
  const auto load = [&] {
#pragma unroll
    for (run& r : runs) r.load();
    end_loads();
  };
  load();
  wait_for_loads<0>();
  __syncthreads();
  halves_of_four halves{};
  while (begin < end) {
    const uint32_t step = end - begin < shape::step ? static_cast<uint32_t>(end - begin) : shape::step;
    bool endless = true;
#pragma unroll
    for (const run& r : runs) endless &= r.left() >= shape::step + shape::each;
    if (endless)
      fill_halves<true>(runs, halves, step, shared, less);
    else
      fill_halves<false>(runs, halves, step, shared, less);
    load();
    // merge_halves<true> requires that every thread writes `each` outputs and that neither half ends within the step.
    constexpr bool of_all_threads = shape::step == shape::each * merge_threads;
    if (of_all_threads && step == shape::step && halves.count[0] >= step && halves.count[1] >= step)
      merge_halves<true>(halves, step, shared, less);
    else
      merge_halves<false>(halves, step, shared, less);
    write_step<shape>(reinterpret_cast<const T*>(shared.merged), p.output + begin, step);
    begin += step;
    wait_for_loads<1>();  // waits for all loads but the last group, which the next step does not need
    __syncthreads();
  }
}

}  // namespace hpe::kernels::gpu
