// The kernels of sorts for soft devices, for the types of sort.def.

#include "kernels/host/sort_bodies.h"

#define HPE_SORT_PAIR(K, V) hpe::kernels::sort_pair<K, V>
#define HPE_SORT(name, ...)           \
  using element_##name = __VA_ARGS__; \
  HPE_HOST_SORT(name, element_##name, hpe::kernels::by_key)
#include "kernels/sort.def"
