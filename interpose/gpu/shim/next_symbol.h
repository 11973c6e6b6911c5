#pragma once

/// dlopen, dlsym and dlvsym as the C library defines them, not as the shim does. These functions take no lock and need
/// no constructor to have run.

extern "C" {
void* hpe_next_dlopen();
void* hpe_next_dlsym();
void* hpe_next_dlvsym();
}

namespace hpe::cuda_shim {

void* next_open(const char* file, int mode);
/// Looks a symbol up as if the shim had called dlsym: RTLD_NEXT means the libraries after the shim in the search order.
void* next_look_up(void* library, const char* name);
void* next_look_up(void* library, const char* name, const char* version);

}  // namespace hpe::cuda_shim
