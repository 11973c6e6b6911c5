#pragma once

/// cuFFT, loaded when it is first needed: programs can be built and started without it. The declarations are those of
/// <cufft.h>, whose types and constants are fixed; tests/fft compares them if a toolkit is installed.

#include <cstddef>

namespace hpe::fft::cufft {

using handle = int;
using status = int;

inline constexpr int c2c = 0x29;
inline constexpr int z2z = 0x69;

struct library {
  status (*create)(handle*);
  status (*destroy)(handle);
  status (*set_auto_allocation)(handle, int);
  status (*make_plan_many)(handle, int rank, long long* lengths, long long* inembed, long long istride, long long idist,
                           long long* onembed, long long ostride, long long odist, int type, long long batch,
                           std::size_t* work_bytes);
  status (*set_work_area)(handle, void*);
  status (*set_stream)(handle, void*);
  status (*execute_c2c)(handle, void*, void*, int sign);
  status (*execute_z2z)(handle, void*, void*, int sign);
};

/// Throws hpe::error (HPE_ERROR_NOT_SUPPORTED) with the loader's message if cuFFT cannot be loaded.
[[nodiscard]] const library& load();

}  // namespace hpe::fft::cufft
