// The kernel of the listings for soft devices.

#include "bench/listings/step.h"

#include "hpe/kernel.h"

using hpe::bench::listings::stencil;

HPE_HOST_KERNEL(listings_step, stencil) {
  const uint64_t end = parameters->cells * tiles->end / tiles->grid[0];
  for (uint64_t cell = parameters->cells * tiles->begin / tiles->grid[0]; cell < end;
       ++cell)
    parameters->out[cell] = stepped(*parameters, cell);
}
