// The local sort on GPUs for a program's own element type and order.

#include "apps/sort/local_sort.cuh"
#include "tests/sort/descending.h"

const hpe::sort::local_sort* descending_on_gpus() { return &hpe::sort::local_sort_by<measured, by_size_descending>; }
