// The scan of a program's own operator, for soft devices.

#include "kernels/host/scan_bodies.h"
#include "tests/scan/affine.h"

HPE_HOST_SCAN(affine, affine, compose)
