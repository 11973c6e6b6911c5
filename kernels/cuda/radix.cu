// The kernels that sort by radix on several GPUs: splitters, counts, places, and the passes for each type of sort.def.

#include <cub/block/block_scan.cuh>

#include "kernels/cuda/radix_pass.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/sort.h"

namespace hpe::kernels::gpu {

namespace {

template <class Key>
__device__ __forceinline__ Key number_at(const radix_pass_parameters& p, uint64_t place) {
  const char* const element = static_cast<const char*>(p.from) + place * p.types.element;
  return radix_of(*reinterpret_cast<const Key*>(element), p.types.order);
}

/// Returns the place of a sample among the elements. The elements are divided into `count` equal pieces, and each piece
/// contains one sample at a pseudo-random place.
__device__ __forceinline__ uint64_t place_of_sample(uint64_t elements, uint32_t sample, uint32_t count) {
  const uint64_t begin = radix_bound(elements, sample, count),
                 length = radix_bound(elements, sample + 1, count) - begin;
  const uint64_t hash = (uint64_t{sample} + 1) * 0x9E3779B97F4A7C15U >> 32;
  return begin + (length * hash >> 32);
}

struct sample_memory {
  uint32_t counts[radix_digits];
  uint32_t digit, rank;
};

/// Sets shared.digit to the digit of the element whose rank among the counted elements is shared.rank, then sets
/// shared.rank to this element's rank among the elements with this digit, and clears the counts. All threads of the
/// block must call it.
__device__ void find_digit(sample_memory& shared) {
  __syncthreads();
  if (threadIdx.x < warp_size) {
    constexpr uint32_t each = radix_digits / warp_size;
    const unsigned lane = lane_number();
    const uint32_t rank = shared.rank;
    uint32_t own = 0;
    for (uint32_t i = 0; i < each; ++i) own += shared.counts[lane * each + i];
    const auto add = [](uint32_t a, uint32_t b) { return a + b; };
    uint32_t before = warp_scan(own, add, lane) - own;
    if (before <= rank && rank < before + own) {
      uint32_t digit = lane * each;
      while (before + shared.counts[digit] <= rank) before += shared.counts[digit++];
      shared.digit = digit;
      shared.rank = rank - before;
    }
  }
  __syncthreads();
  if (threadIdx.x < radix_digits) shared.counts[threadIdx.x] = 0;
  __syncthreads();
}

/// Finds the splitter between range blockIdx.x and the next range: first the digits of the splitter's key; then the
/// digits of its number as a sample, among the samples with this key.
template <class Key>
__device__ void sample(const radix_pass_parameters& p) {
  __shared__ sample_memory shared;
  constexpr uint32_t each = radix_samples / radix_sample_threads, key_bits = 8 * sizeof(Key), sample_bits = 16;
  const uint64_t elements = p.begins[p.devices];
  const uint32_t count = elements < radix_samples ? uint32_t(elements) : radix_samples;
  Key numbers[each];
#pragma unroll
  for (uint32_t i = 0; i < each; ++i) {
    const uint32_t sample = i * radix_sample_threads + threadIdx.x;
    if (sample < count) numbers[i] = number_at<Key>(p, place_of_sample(elements, sample, count));
  }
  if (threadIdx.x < radix_digits) shared.counts[threadIdx.x] = 0;
  if (threadIdx.x == 0) shared.rank = uint32_t(uint64_t{blockIdx.x + 1} * count / p.devices);
  __syncthreads();
  Key key = 0;  // the key's digits, of which those not found yet are 0
  for (uint32_t shift = key_bits; shift > 0;) {
    shift -= radix_bits;
#pragma unroll
    for (uint32_t i = 0; i < each; ++i) {
      const Key rest = Key(numbers[i] - key) >> shift;
      if (i * radix_sample_threads + threadIdx.x < count && rest < radix_digits) atomicAdd(&shared.counts[rest], 1);
    }
    find_digit(shared);
    key |= Key(shared.digit) << shift;
  }
  uint32_t sample = 0;
  for (uint32_t shift = sample_bits; shift > 0;) {
    shift -= radix_bits;
#pragma unroll
    for (uint32_t i = 0; i < each; ++i) {
      const uint32_t number = i * radix_sample_threads + threadIdx.x, rest = (number - sample) >> shift;
      if (number < count && numbers[i] == key && rest < radix_digits) atomicAdd(&shared.counts[rest], 1);
    }
    find_digit(shared);
    sample |= shared.digit << shift;
  }
  if (threadIdx.x != 0) return;
  p.state->splitter_keys[blockIdx.x] = key;
  p.state->splitter_places[blockIdx.x] = place_of_sample(elements, sample, count);
}

/// The counters in shared memory. If there are too few counters for all later passes, the elements are counted in
/// several rounds.
struct count_memory {
  static constexpr uint32_t counters = 18 * radix_most_bins;
  uint32_t first[radix_most_bins], later[counters];
};

/// The positions of the digits of all passes in a key.
template <class Key>
struct digit_places {
  static constexpr uint32_t later = sizeof(Key) == 4 ? 3 : radix_most_later_passes;
  uint32_t low_bits, shift[later], mask[later];

  __device__ explicit digit_places(const radix_digits_of_passes& digits) : low_bits(digits.low_bits()) {
#pragma unroll
    for (uint32_t pass = 0; pass < later; ++pass) {
      shift[pass] = digits.shift(pass + 1);
      mask[pass] = (1U << digits.bits(pass + 1)) - 1;
    }
  }
};

/// Counts an element of range `range` for the later passes from `begin` to `end`, and in the first round (begin == 0)
/// also for the first pass.
template <class Key>
__device__ __forceinline__ void count_number(Key number, uint32_t range, const digit_places<Key>& places,
                                             uint32_t begin, uint32_t end, uint32_t devices, count_memory& shared) {
  if (begin == 0)
    atomicAdd(&shared.first[range << places.low_bits | (uint32_t(number) & ((1U << places.low_bits) - 1))], 1);
#pragma unroll
  for (uint32_t pass = 0; pass < digit_places<Key>::later; ++pass)
    if (pass >= begin && pass < end)
      atomicAdd(&shared.later[((pass - begin) * devices + range) * radix_most_bins +
                              (uint32_t(number >> places.shift[pass]) & places.mask[pass])],
                1);
}

template <radix_order order, class Element, class Key>
__device__ __forceinline__ void count(const radix_pass_parameters& p) {
  __shared__ count_memory shared;
  __shared__ tile_splitters<Key> splitters;
  const auto* const from = static_cast<const Element*>(p.from);
  const radix_digits_of_passes digits = p.digits();
  const digit_places<Key> places(digits);
  const radix_sequence own = p.own();
  const uint32_t tiles = own.tiles(p.tile()), of_pass = p.devices * radix_most_bins;
  const uint32_t together = count_memory::counters / of_pass;
  clear_sums(p.sums, tiles, digits.bins(0));
  radix_pass_counts& counts = *p.counts[p.device];
  const auto add = [](uint64_t& to, uint32_t value) {
    if (value != 0) atomicAdd(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(value));
  };
  for (uint32_t begin = 0; begin < digits.later_passes(); begin += together) {
    const uint32_t end = begin + together < digits.later_passes() ? begin + together : digits.later_passes();
    for (uint32_t i = threadIdx.x; i < radix_most_bins; i += blockDim.x) shared.first[i] = 0;
    for (uint32_t i = threadIdx.x; i < (end - begin) * of_pass; i += blockDim.x) shared.later[i] = 0;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const radix_sequence part = own.part(tile, p.tile());
      __syncthreads();
      splitters.set(p, part.begin);
      __syncthreads();
      constexpr uint32_t each = 8;  // number of elements that a thread loads together
      const auto* const first = from + part.begin;
      const auto length = uint32_t(part.end - part.begin);
      for (uint32_t i = threadIdx.x; i < length; i += each * radix_pass_threads) {
        Key numbers[each];
#pragma unroll
        for (uint32_t u = 0; u < each; ++u)
          if (i + u * radix_pass_threads < length) numbers[u] = first[i + u * radix_pass_threads].words[0];
#pragma unroll
        for (uint32_t u = 0; u < each; ++u) {
          if (i + u * radix_pass_threads >= length) break;
          const Key number = radix_of(numbers[u], order);
          count_number(number, splitters.range_of(number), places, begin, end, p.devices, shared);
        }
      }
    }
    __syncthreads();
    if (begin == 0)
      for (uint32_t i = threadIdx.x; i < radix_most_bins; i += blockDim.x) add(counts.first[i], shared.first[i]);
    for (uint32_t i = threadIdx.x; i < (end - begin) * of_pass; i += blockDim.x)
      add(counts.later[begin + i / of_pass][i % of_pass / radix_most_bins][i % radix_most_bins], shared.later[i]);
    __syncthreads();
  }
}

/// Computes sums over the threads of a block of radix_most_bins threads. Each thread contributes one value.
class block_sums {
 public:
  /// Returns the sum of the values `own` of all threads before this one. Sets `all` to the sum of the values of all
  /// threads.
  __device__ uint64_t before(uint64_t own, uint64_t& all) {
    __shared__ typename scan::TempStorage memory;
    uint64_t result;
    __syncthreads();
    scan(memory).ExclusiveSum(own, result, all);
    return result;
  }
  __device__ uint64_t before(uint64_t own) {
    uint64_t all;
    return before(own, all);
  }

 private:
  using scan = cub::BlockScan<uint64_t, radix_most_bins>;
};

}  // namespace

}  // namespace hpe::kernels::gpu

extern "C" __global__ __launch_bounds__(hpe::kernels::radix_sample_threads) void radix_sample(
    const __grid_constant__ hpe::kernels::radix_pass_parameters p) {
  if (p.types.key == 4)
    hpe::kernels::gpu::sample<uint32_t>(p);
  else
    hpe::kernels::gpu::sample<uint64_t>(p);
}

extern "C" __global__ __launch_bounds__(hpe::kernels::radix_most_bins) void radix_places(
    const __grid_constant__ hpe::kernels::radix_pass_parameters p) {
  using namespace hpe::kernels;
  gpu::block_sums sums;
  radix_pass_state& state = *p.state;
  const uint32_t bin = threadIdx.x, low = p.digits().low_bits(), range = bin >> low;
  // Orders the runs of this device's range by their lowest bits, and runs with the same lowest bits by device.
  uint64_t of_ranges_before = 0, of_range = 0;
  for (uint32_t d = 0; d < p.devices; ++d) {
    const uint64_t own = p.counts[d]->first[bin], begin = p.begins[d] + sums.before(own);
    if (d == p.device) state.offsets[0][bin] = begin;
    if (range < p.device) of_ranges_before += own;
    if (range != p.device) continue;
    of_range += own;
    state.runs[(bin & ((1U << low) - 1)) * p.devices + d] = {begin, begin + own};
  }
  uint64_t begin, length, tiles;
  sums.before(of_ranges_before, begin);
  sums.before(of_range, length);
  const uint32_t runs = p.devices << low;
  const uint64_t before = sums.before(bin < runs ? state.runs[bin].tiles(p.tile()) : 0, tiles);
  if (bin < runs) state.run_tiles[bin] = uint32_t(before);
  if (bin == 0) {
    state.range = {begin, begin + length};
    state.run_count = runs;
    state.run_tiles[runs] = uint32_t(tiles);
  }
  if (bin < p.digits().passes()) state.next_tile[bin] = 0;
  for (uint32_t pass = 0; pass < p.digits().later_passes(); ++pass) {
    uint64_t own = 0;
    for (uint32_t d = 0; d < p.devices; ++d) own += p.counts[d]->later[pass][p.device][bin];
    state.offsets[pass + 1][bin] = begin + sums.before(own);
  }
}

namespace hpe::kernels::gpu {

/// The key, element and order with which elements of type T are sorted by radix.
template <class T>
struct radix_form {
  using key = typename bits_of_size<sizeof(T)>::type;
  using element = radix_element<key, 1>;
  static constexpr radix_order order = T(0.5) != T(0) ? radix_order::floating
                                       : T(-1) < T(0) ? radix_order::with_sign
                                                      : radix_order::without_sign;
};
template <class Key, class Value>
struct radix_form<sort_pair<Key, Value>> {
  using key = typename radix_form<Key>::key;
  using element = radix_element<key, 2>;
  static constexpr radix_order order = radix_form<Key>::order;
};

/// The number of blocks that run on a multiprocessor at a time; the compiler limits the registers of a thread
/// accordingly. With these numbers, the compiler does not spill registers.
template <class T>
inline constexpr unsigned radix_blocks_at_once = sizeof(T) == 4 ? 3 : 2;

template <class T>
__device__ __forceinline__ void radix_count_of(const radix_pass_parameters& p) {
  using form = radix_form<T>;
  count<form::order, typename form::element, typename form::key>(p);
}

template <class T, unsigned bits, bool first>
__device__ __forceinline__ void radix_pass_of(const radix_pass_parameters& p) {
  using form = radix_form<T>;
  radix_pass<form::order, typename form::element, typename form::key, bits, first>(p);
}

}  // namespace hpe::kernels::gpu

#define HPE_RADIX_COUNT(kernel, T)                                                       \
  extern "C" __global__ __launch_bounds__(hpe::kernels::radix_pass_threads) void kernel( \
      const __grid_constant__ hpe::kernels::radix_pass_parameters p) {                   \
    hpe::kernels::gpu::radix_count_of<T>(p);                                             \
  }
#define HPE_RADIX_PASS(kernel, T, bits, first)                                             \
  extern "C" __global__ __launch_bounds__(hpe::kernels::radix_pass_threads,                \
                                          hpe::kernels::gpu::radix_blocks_at_once<T>) void \
  kernel(const __grid_constant__ hpe::kernels::radix_pass_parameters p) {                  \
    hpe::kernels::gpu::radix_pass_of<T, bits, first>(p);                                   \
  }
#define HPE_SORT_PAIR(K, V) hpe::kernels::sort_pair<K, V>
#define HPE_SORT(name, ...)                                              \
  using radix_element_##name = __VA_ARGS__;                              \
  HPE_RADIX_COUNT(radix_count_##name, radix_element_##name)              \
  HPE_RADIX_PASS(radix_pass_first_##name, radix_element_##name, 9, true) \
  HPE_RADIX_PASS(radix_pass_wide_##name, radix_element_##name, 9, false) \
  HPE_RADIX_PASS(radix_pass_##name, radix_element_##name, 8, false)
#include "kernels/sort.def"
#undef HPE_SORT
#undef HPE_SORT_PAIR
