// The kernels under their plain names: each calls the variant for the best instruction set of this machine. All
// variants are exported too, as name_variant, so that they can be tested and compared.

#include "kernels/absorb.h"
#include "kernels/fdtd.h"
#include "kernels/host/variant.h"
#include "kernels/wave.h"

extern "C" {
#define HPE_KERNEL(name, ...) HPE_DISPATCHED_KERNEL(name)
#include "kernels/kernels.def"
}
