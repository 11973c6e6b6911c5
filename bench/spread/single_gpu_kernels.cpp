#include "bench/spread/single_gpu_kernels.h"

// HPE_SINGLE_GPU_PTX is the path of the PTX file.
asm(R"(.section .rodata
hpe_single_gpu_ptx: .incbin ")" HPE_SINGLE_GPU_PTX R"("
hpe_single_gpu_ptx_end: .byte 0
.text)");

extern const char begin[] asm("hpe_single_gpu_ptx");
extern const char end[] asm("hpe_single_gpu_ptx_end");

namespace hpe::bench {

std::string single_gpu_kernels() { return {begin, end}; }

}  // namespace hpe::bench
