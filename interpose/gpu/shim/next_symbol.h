#pragma once

/// Return or call the C library's dlopen, dlsym and dlvsym, not the shim's functions of these names. May be called
/// before any constructor has run.

extern "C" {
void* hpe_next_dlopen();
void* hpe_next_dlsym();
void* hpe_next_dlvsym();
}

namespace hpe::cuda_shim {

void* next_open(const char* file, int mode);
/// Looks up a symbol as if the shim had called dlsym: with RTLD_NEXT, the search begins at the library after the shim.
void* next_look_up(void* library, const char* name);
void* next_look_up(void* library, const char* name, const char* version);

}  // namespace hpe::cuda_shim
