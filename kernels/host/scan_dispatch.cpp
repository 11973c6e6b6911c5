// Defines the scan kernels under names without an instruction set; each calls the variant for the best instruction set
// that the machine supports.

#include "kernels/host/variant.h"

extern "C" {
#define HPE_SCAN(type, T, operator_name, Op)                  \
  HPE_DISPATCHED_KERNEL(scan_reduce_##type##_##operator_name) \
  HPE_DISPATCHED_KERNEL(scan_sums_##type##_##operator_name)   \
  HPE_DISPATCHED_KERNEL(scan_chunks_##type##_##operator_name) \
  HPE_DISPATCHED_KERNEL(scan_single_pass_##type##_##operator_name)
#include "kernels/scan.def"

__attribute__((visibility("default"))) void scan_fence(const void* /*parameters*/, const hpeTiles* /*tiles*/) {}
}
