// The bodies of all kernels, compiled once for each instruction set: HPE_VARIANT is its name and the suffix of the
// functions.
//
// Invariants: a vector runs the same operations on several points, so results do not depend on vectors. Only the
// kernels have external linkage, and no header defines inline functions: the linker must not choose a function compiled
// for a newer instruction set for the code of an older machine.

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
