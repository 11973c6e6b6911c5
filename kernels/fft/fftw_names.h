#pragma once

/// FFTW's names for each precision, for use in templates. A program that uses these names links FFTW, which is under
/// the GPL.

#include <fftw3.h>

namespace hpe::kernels {

template <class T>
struct fftw_names;

template <>
struct fftw_names<float> {
  using plan = fftwf_plan;
  using element = fftwf_complex;
  static constexpr auto init_threads = fftwf_init_threads;
  static constexpr auto with_threads = fftwf_plan_with_nthreads;
  static constexpr auto make = fftwf_plan_many_dft;
  static constexpr auto execute = fftwf_execute;
  static constexpr auto execute_on = fftwf_execute_dft;
  static constexpr auto alignment = fftwf_alignment_of;
  static constexpr auto destroy = fftwf_destroy_plan;
  static constexpr auto allocate = fftwf_alloc_complex;
  static constexpr auto release = fftwf_free;
};

template <>
struct fftw_names<double> {
  using plan = fftw_plan;
  using element = fftw_complex;
  static constexpr auto init_threads = fftw_init_threads;
  static constexpr auto with_threads = fftw_plan_with_nthreads;
  static constexpr auto make = fftw_plan_many_dft;
  static constexpr auto execute = fftw_execute;
  static constexpr auto execute_on = fftw_execute_dft;
  static constexpr auto alignment = fftw_alignment_of;
  static constexpr auto destroy = fftw_destroy_plan;
  static constexpr auto allocate = fftw_alloc_complex;
  static constexpr auto release = fftw_free;
};

}  // namespace hpe::kernels
