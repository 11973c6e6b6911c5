// The definition of descending_on_gpus() for builds without a CUDA toolkit.

#include "apps/sort/local_sort.h"
#include "tests/sort/descending.h"

const hpe::sort::local_sort* descending_on_gpus() { return nullptr; }
