// The sort of a program's own element and order, for soft devices.

#include "kernels/host/sort_bodies.h"
#include "tests/sort/descending.h"

HPE_HOST_SORT(measured, measured, by_size_descending)
