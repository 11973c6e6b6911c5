// The kernels of the scans of scan.def for one instruction set. HPE_VARIANT is the name of the instruction set and the
// suffix of the functions. As in bodies.cpp, only the kernels have external linkage.

#include "kernels/host/scan_bodies.h"

#define HPE_SCAN_VARIANT_(suffix, variant, T, Op) HPE_HOST_SCAN(suffix##_##variant, T, Op)
#define HPE_SCAN_VARIANT(suffix, variant, T, Op) HPE_SCAN_VARIANT_(suffix, variant, T, Op)
#define HPE_SCAN(type, T, operator_name, Op) HPE_SCAN_VARIANT(type##_##operator_name, HPE_VARIANT, T, Op<T>)
#include "kernels/scan.def"
