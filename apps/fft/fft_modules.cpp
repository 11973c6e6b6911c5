#include "apps/fft/fft_modules.h"

#include <filesystem>

namespace hpe::fft {

namespace {

module fftw_module() {
  const std::string path = modules::path_of("libhpe-fft-fftw.so");
  if (!std::filesystem::exists(path))
    throw error(HPE_ERROR_NOT_SUPPORTED,
                "Fourier transforms on soft devices need FFTW, and hpe was built without it: " + path +
                    " does not exist (install libfftw3-dev and build again)");
  return module(path);
}

}  // namespace

template <class T>
fftw_kernel_set<T>::fftw_kernel_set()
    : from(fftw_module()),
      local(from, name_for<T>("fft_local").c_str()),
      lines(from, name_for<T>("fft_lines").c_str()) {}

template struct fftw_kernel_set<float>;
template struct fftw_kernel_set<double>;

}  // namespace hpe::fft
