// Fourier transforms on soft devices, by FFTW. This is the only file of hpe that uses FFTW. It is compiled into a
// shared library that only the processes of soft devices load.
//
// Invariants: FFTW's planner is not thread-safe; therefore, all calls of the planner hold one lock. Plans exist until
// the process ends. A plan is also executed on arrays other than those for which it was created; therefore, the plan's
// key contains all properties that FFTW requires to be equal.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#include "hpe/kernel.h"
#include "kernels/fft/fftw_names.h"
#include "kernels/fft_parameters.h"

extern "C" {
void fft_transpose_f32(const void* parameters, const hpeTiles* tiles);
void fft_transpose_f64(const void* parameters, const hpeTiles* tiles);
void fft_twiddle_f32(const void* parameters, const hpeTiles* tiles);
void fft_twiddle_f64(const void* parameters, const hpeTiles* tiles);
}

namespace {

using namespace hpe::kernels;

/// FFTW's names for a precision, and the names of the hpe kernels that are called here.
template <class T>
struct names;
template <>
struct names<float> : fftw_names<float> {
  static constexpr auto transpose = fft_transpose_f32;
  static constexpr auto twiddle = fft_twiddle_f32;
};
template <>
struct names<double> : fftw_names<double> {
  static constexpr auto transpose = fft_transpose_f64;
  static constexpr auto twiddle = fft_twiddle_f64;
};

unsigned flags(fft_effort effort) {
  switch (effort) {
    case fft_effort::measure: return FFTW_MEASURE;
    case fft_effort::patient: return FFTW_PATIENT;
    default: return FFTW_ESTIMATE;
  }
}

struct aligned_delete {
  void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};
template <class E>
using scratch = std::unique_ptr<E[], aligned_delete>;

template <class E>
scratch<E> make_scratch(int64_t count) {
  return scratch<E>(
      static_cast<E*>(::operator new (sizeof(E) * static_cast<std::size_t>(count), std::align_val_t{64})));
}

/// The shape of a batch of transforms of consecutive arrays.
struct shape {
  int64_t lengths[2];
  int64_t count;
  int32_t sign;
  fft_effort effort;
  int32_t threads;

  [[nodiscard]] int64_t elements() const { return lengths[0] * lengths[1] * count; }
};

template <class T>
class transforms {
 public:
  using element = typename names<T>::element;

  static transforms& all() {
    static transforms it;
    return it;
  }

  void execute(const shape& s, const complex_number<T>* source, complex_number<T>* target) {
    auto* const from = reinterpret_cast<element*>(const_cast<complex_number<T>*>(source));
    auto* const to = reinterpret_cast<element*>(target);
    names<T>::execute_on(find(s, from, to), from, to);
  }

 private:
  using key = std::tuple<int64_t, int64_t, int64_t, int32_t, fft_effort, int32_t, bool, int, int>;

  transforms() {
    if (names<T>::init_threads() == 0) throw std::runtime_error("FFTW cannot start its threads");
  }

  typename names<T>::plan find(const shape& s, element* from, element* to) {
    const int alignment_from = names<T>::alignment(&(*from)[0]), alignment_to = names<T>::alignment(&(*to)[0]);
    const key wanted{s.lengths[0], s.lengths[1], s.count,        s.sign,      s.effort,
                     s.threads,    from == to,   alignment_from, alignment_to};
    const std::lock_guard lock(mutex_);
    auto& plan = plans_[wanted];
    if (plan == nullptr) plan = make(s, from == to, alignment_from, alignment_to);
    return plan;
  }

  static typename names<T>::plan make(const shape& s, bool in_place, int alignment_from, int alignment_to) {
    const int lengths[2] = {static_cast<int>(s.lengths[0]), static_cast<int>(s.lengths[1])};
    const int rank = s.lengths[0] == 1 ? 1 : 2;
    const auto one = static_cast<int>(s.lengths[0] * s.lengths[1]);
    // The planner writes to this memory. The 16 additional elements allow a shift to the alignment of the caller's
    // arrays.
    const auto room_for = [&] { return make_scratch<element>(s.elements() + 16); };
    const auto shifted = [](element* p, int bytes) {
      return reinterpret_cast<element*>(reinterpret_cast<char*>(p) + bytes);
    };
    const auto first = room_for();
    const auto second = in_place ? scratch<element>() : room_for();
    element* const from = shifted(first.get(), alignment_from);
    element* const to = in_place ? from : shifted(second.get(), alignment_to);
    names<T>::with_threads(s.threads);
    const auto plan = names<T>::make(rank, lengths + (2 - rank), static_cast<int>(s.count), from, nullptr, 1, one, to,
                                     nullptr, 1, one, s.sign, flags(s.effort) | FFTW_PRESERVE_INPUT);
    if (plan == nullptr) throw std::runtime_error("FFTW has no plan for a length of " + std::to_string(one));
    return plan;
  }

  std::mutex mutex_;
  std::map<key, typename names<T>::plan> plans_;
};

template <class T>
void run(const fft_local<T>& p, const hpeTiles& tiles) {
  const int64_t one = p.lengths[0] * p.lengths[1];
  const auto of = [&p](int64_t count) {
    return shape{{p.lengths[0], p.lengths[1]}, count, p.sign, p.effort, p.threads};
  };
  auto& all = transforms<T>::all();
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const int64_t first = static_cast<int64_t>(tile) * p.per_tile;
    all.execute(of(std::min(p.per_tile, p.count - first)), p.source + first * one, p.target + first * one);
  }
}

/// Returns memory for `count` elements, which belongs to the calling thread. The memory is freed only when the thread
/// ends, so that its pages are allocated only once.
template <class T>
complex_number<T>* line_memory(int64_t count) {
  thread_local scratch<complex_number<T>> memory;
  thread_local int64_t size = 0;
  if (size < count) {
    memory = make_scratch<complex_number<T>>(count);
    size = count;
  }
  return memory.get();
}

template <class T>
void transpose(const fft_transpose<T>& p) {
  const hpeTiles squares{0, static_cast<uint64_t>(p.tiles()), {static_cast<uint32_t>(p.tiles()), 1, 1}};
  names<T>::transpose(&p, &squares);
}

template <class T>
void run(const fft_lines<T>& p, const hpeTiles& tiles) {
  const fft_transpose<T>& g = p.gather;
  complex_number<T>* const gathered = line_memory<T>(2 * line_block * g.columns);
  complex_number<T>* const transformed = gathered + line_block * g.columns;
  auto& all = transforms<T>::all();
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    fft_transpose<T> block = g;
    block.begin = g.begin + static_cast<int64_t>(tile) * line_block;
    block.end = std::min(block.begin + line_block, g.end);
    block.target = gathered;
    block.target_row = g.columns;
    block.root = 0;
    block.spread = 1;
    transpose(block);
    const int64_t rows = block.end - block.begin;
    if (g.root != 0) {
      const fft_twiddle<T> factors{gathered, g.columns, block.begin, block.end, g.root, g.sign};
      const hpeTiles lines{0, static_cast<uint64_t>(rows), {static_cast<uint32_t>(rows), 1, 1}};
      names<T>::twiddle(&factors, &lines);
    }
    complex_number<T>* const result = p.back != 0 ? transformed : g.target + (block.begin - g.begin) * g.columns;
    all.execute({{1, g.columns}, rows, g.sign, p.effort, 1}, gathered, result);
    if (p.back != 0)
      transpose(fft_transpose<T>{transformed, g.target + block.begin, g.columns, rows, 0, g.columns, 0, g.sign, 1, 0,
                                 g.target_row});
  }
}

}  // namespace

HPE_HOST_KERNEL(fft_local_f32, fft_local<float>) { run(*parameters, *tiles); }
HPE_HOST_KERNEL(fft_local_f64, fft_local<double>) { run(*parameters, *tiles); }
HPE_HOST_KERNEL(fft_lines_f32, fft_lines<float>) { run(*parameters, *tiles); }
HPE_HOST_KERNEL(fft_lines_f64, fft_lines<double>) { run(*parameters, *tiles); }
