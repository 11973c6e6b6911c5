// The sort kernels for a program's own element type and order, on soft devices.

#include "kernels/host/sort_bodies.h"
#include "tests/sort/descending.h"

HPE_HOST_SORT(measured, measured, by_size_descending)
