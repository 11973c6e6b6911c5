// The kernels of Fourier transforms for GPUs. A block of 256 threads computes a tile or, in fft_transpose, several
// tiles one after another; kernels/fft_parameters.h says what each kernel computes.
//
// Invariants: in every loop, neighbouring threads access neighbouring elements. Factors in single precision are rounded
// once: the angle is first reduced to an eighth of a turn, in integers and double precision.

#include "kernels/fft_parameters.h"

namespace {

using namespace hpe::kernels;

template <class T>
using number = complex_number<T>;

// The type with which an element is loaded and stored as one word of 8 or 16 bytes.
template <class T>
struct word;
template <>
struct word<float> {
  using type = float2;
};
template <>
struct word<double> {
  using type = double2;
};
template <class T>
using word_of = typename word<T>::type;

template <class T>
__device__ word_of<T> load(const number<T>* from) {
  return *reinterpret_cast<const word_of<T>*>(from);
}
template <class T>
__device__ void store(number<T>* to, word_of<T> value) {
  *reinterpret_cast<word_of<T>*>(to) = value;
}

template <class W>
__device__ W times(W a, W b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

// Sets w to exp(2 pi i turns sign); -1/2 <= turns <= 1/2 must hold.
__device__ inline void turn(double turns, int sign, float2& w) {
  const int quarter = __double2int_rn(4 * turns);
  float s, c;
  sincospif(static_cast<float>(2 * fma(-0.25, static_cast<double>(quarter), turns)), &s, &c);
  // After 0, 1, 2 and 3 quarter turns: (c, s), (-s, c), (-c, -s), (s, -c).
  const bool odd = (quarter & 1) != 0;
  const float re = odd ? s : c, im = odd ? c : s;
  const int q = quarter & 3;
  w.x = q == 1 || q == 2 ? -re : re;
  w.y = (q == 2 || q == 3) != (sign < 0) ? -im : im;
}
__device__ inline void turn(double turns, int sign, double2& w) {
  double s, c;
  sincospi(2 * turns, &s, &c);
  w = {c, sign < 0 ? -s : s};
}

// Returns w_n^(sign m); 0 <= m < n must hold. part: 1 / n.
template <class T>
__device__ word_of<T> root(long long m, long long n, double part, int sign) {
  word_of<T> w;
  turn(static_cast<double>(2 * m > n ? m - n : m) * part, sign, w);
  return w;
}

// Transposes a square through shared memory, so that threads access both source and target along rows. A block
// processes every gridDim.x-th square. It reads the next square while it writes the current one, so that a few blocks
// keep the links between GPUs busy.
template <class T>
struct square {
  static constexpr int edge = transpose_edge, step = 256 / edge, each = edge / step;
  word_of<T> held[each];

  __device__ void fetch(const fft_transpose<T>& p, typename fft_transpose<T>::corner at) {
    const long long r = at.r + threadIdx.x % edge;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const long long c = at.c + threadIdx.x / edge + i * step;
      if (r < p.end && c < p.columns) held[i] = load(p.source + c * p.rows + r);
    }
  }

  __device__ void put(word_of<T> (&shared)[edge][edge + 1]) const {
#pragma unroll
    for (int i = 0; i < each; ++i) shared[threadIdx.x / edge + i * step][threadIdx.x % edge] = held[i];
  }

  static __device__ void write(const fft_transpose<T>& p, typename fft_transpose<T>::corner at, double part,
                               const word_of<T> (&shared)[edge][edge + 1]) {
    const long long c = at.c + threadIdx.x % edge;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int k = threadIdx.x / edge + i * step;
      const long long r = at.r + k;
      if (r >= p.end || c >= p.columns) continue;
      word_of<T> value = shared[threadIdx.x % edge][k];
      if (p.root != 0) value = times(value, root<T>(r * c, p.root, part, p.sign));
      store(p.target + (r - p.begin) * p.target_row + c, value);
    }
  }
};

template <class T>
__device__ void run(const fft_transpose<T>& p) {
  __shared__ word_of<T> shared[square<T>::edge][square<T>::edge + 1];
  const double part = p.root == 0 ? 0 : 1.0 / static_cast<double>(p.root);
  const long long tiles = p.tiles();
  square<T> next;
  auto at = p.at(blockIdx.x);
  next.fetch(p, at);
  for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    next.put(shared);
    __syncthreads();
    const auto here = at;
    if (tile + gridDim.x < tiles) next.fetch(p, at = p.at(tile + gridDim.x));
    square<T>::write(p, here, part, shared);
    __syncthreads();
  }
}

// Calls body(i) for each element i of this block's tile.
template <class Parameters, class Body>
__device__ void for_elements(const Parameters& p, Body body) {
  const long long first = p.begin + static_cast<long long>(blockIdx.x) * tile_elements;
  const long long end = first + tile_elements < p.end ? first + tile_elements : p.end;
#pragma unroll 4
  for (long long i = first + threadIdx.x; i < end; i += blockDim.x) body(i);
}

template <class T>
__device__ void run(const fft_butterfly<T>& p) {
  const double part = 1.0 / static_cast<double>(p.root);
  for_elements(p, [&](long long j) {
    const word_of<T> a = load(p.a + j), b = load(p.b + j);
    store(p.lower + j, word_of<T>{a.x + b.x, a.y + b.y});
    store(p.upper + j, times(word_of<T>{a.x - b.x, a.y - b.y}, root<T>(p.offset + j, p.root, part, p.sign)));
  });
}

template <class T>
__device__ void run(const fft_interleave<T>& p) {
  for_elements(p, [&](long long i) {
    const unsigned last = static_cast<unsigned>(i) & ((1U << p.bits) - 1);
    const long long turned = p.bits == 0 ? 0 : __brev(last) >> (32 - p.bits);
    store(p.target + i, load(p.source + turned * p.length + (i >> p.bits)));
  });
}

template <class T>
__device__ void run(const fft_chirp<T>& p) {
  for_elements(p, [&](long long i) {
    const long long j = p.period > 0 && p.period - i < i ? p.period - i : i;
    if (j >= p.length) return store(p.target + i, word_of<T>{0, 0});
    const auto twice = static_cast<unsigned long long>(2 * p.length);
    const auto square = static_cast<long long>(static_cast<unsigned __int128>(j) * j % twice);
    store(p.target + i, root<T>(square, 2 * p.length, 1.0 / static_cast<double>(twice), p.sign));
  });
}

template <class T>
__device__ void run(const fft_multiply<T>& p) {
  for_elements(p, [&](long long i) {
    if (i >= p.count) return store(p.target + i, word_of<T>{0, 0});
    word_of<T> factor = load(p.right + i);
    if (p.conjugate != 0) factor.y = -factor.y;
    const word_of<T> product = times(load(p.left + i), factor);
    store(p.target + i, word_of<T>{p.scale * product.x, p.scale * product.y});
  });
}

}  // namespace

extern "C" {

#define HPE_FFT_KERNEL(name)                                                                 \
  __global__ __launch_bounds__(256) void name##_f32(hpe::kernels::name<float> p) { run(p); } \
  __global__ __launch_bounds__(256) void name##_f64(hpe::kernels::name<double> p) { run(p); }
HPE_FFT_KERNEL(fft_transpose)
HPE_FFT_KERNEL(fft_butterfly)
HPE_FFT_KERNEL(fft_interleave)
HPE_FFT_KERNEL(fft_chirp)
HPE_FFT_KERNEL(fft_multiply)
#undef HPE_FFT_KERNEL

}  // extern "C"
