// The bodies of all kernels, compiled once for each instruction set. HPE_VARIANT is the name of the instruction set and
// the suffix of the functions.
//
// Invariants: a vector applies the same operations to several points, so that results do not depend on the width of
// vectors. Only the kernels have external linkage, and no header defines inline functions. Otherwise, the linker could
// use a function compiled for a newer instruction set on an older machine.

#include "hpe/kernel.h"
#include "kernels/host/absorb_bodies.h"
#include "kernels/host/boxes_bodies.h"
#include "kernels/host/compression_bodies.h"
#include "kernels/host/fdtd_bodies.h"
#include "kernels/host/wave_bodies.h"

#define HPE_JOIN_(a, b) a##_##b
#define HPE_JOIN(a, b) HPE_JOIN_(a, b)
#define HPE_DEFINE(name, Parameters) \
  HPE_HOST_KERNEL(name, Parameters) { run(*parameters, *tiles); }
#define HPE_KERNEL(name, ...) HPE_DEFINE(HPE_JOIN(name, HPE_VARIANT), __VA_ARGS__)
#include "kernels/kernels.def"
