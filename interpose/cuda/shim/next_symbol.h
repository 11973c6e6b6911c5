#pragma once

/// dlsym and related functions, without the shim's own definitions. These functions take no lock and need no
/// constructor to have run.

extern "C" {
void* hpe_next_dlopen();
void* hpe_next_dlsym();
void* hpe_next_dlvsym();
}

namespace hpe::cuda_shim {

void* next_open(const char* file, int mode);
/// Looks up like a call from the shim: RTLD_NEXT means the libraries after the shim.
void* next_look_up(void* library, const char* name);
void* next_look_up(void* library, const char* name, const char* version);

}  // namespace hpe::cuda_shim
