#pragma once

/// The shared objects with the kernels of transforms, in the folder of libhpe.so.

#include <string>

#include "apps/fft/local.h"
#include "apps/modules/modules.h"

namespace hpe::fft {

/// Returns NAME_f32 or NAME_f64, the name of a kernel for the type T.
template <class T>
[[nodiscard]] std::string name_for(const char* name) {
  return std::string(name) + (sizeof(T) == sizeof(float) ? "_f32" : "_f64");
}

/// Kernels for transforms that several devices share (libhpe-fft-kernels.so), on any kind of device.
template <class T>
struct kernel_set {
  module from{modules::path_of("libhpe-fft-kernels.so")};
  kernel<kernels::fft_transpose<T>> transpose{from, name_for<T>("fft_transpose").c_str()};
  kernel<kernels::fft_butterfly<T>> butterfly{from, name_for<T>("fft_butterfly").c_str()};
  kernel<kernels::fft_interleave<T>> interleave{from, name_for<T>("fft_interleave").c_str()};
  kernel<kernels::fft_chirp<T>> chirp{from, name_for<T>("fft_chirp").c_str()};
  kernel<kernels::fft_multiply<T>> multiply{from, name_for<T>("fft_multiply").c_str()};
};

/// Kernels that use FFTW (libhpe-fft-fftw.so), for soft devices.
template <class T>
struct fftw_kernel_set {
  fftw_kernel_set();
  module from;
  kernel<kernels::fft_local<T>> local;
  kernel<kernels::fft_lines<T>> lines;
};

}  // namespace hpe::fft
