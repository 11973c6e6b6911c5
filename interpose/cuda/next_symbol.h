#pragma once

/// dlsym and its relatives as they would be if the shim did not define them. Nothing here takes a lock or needs a
/// constructor to have run.

extern "C" {
void* hpe_next_dlopen();
void* hpe_next_dlsym();
void* hpe_next_dlvsym();
}

namespace hpe::cuda_shim {

void* next_open(const char* file, int mode);
/// As from the shim itself: RTLD_NEXT is what comes after it.
void* next_look_up(void* library, const char* name);
void* next_look_up(void* library, const char* name, const char* version);

}  // namespace hpe::cuda_shim
