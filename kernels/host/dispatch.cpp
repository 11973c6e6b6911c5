// Defines the kernels under names without an instruction set; each calls the variant for the best instruction set that
// the machine supports. The library also exports all variants, as name_variant, so that tests can compare them.

#include "kernels/absorb.h"
#include "kernels/fdtd.h"
#include "kernels/host/variant.h"
#include "kernels/wave_parameters.h"

extern "C" {
#define HPE_KERNEL(name, ...) HPE_DISPATCHED_KERNEL(name)
#include "kernels/kernels.def"
}
