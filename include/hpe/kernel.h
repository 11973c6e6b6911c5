/* How a kernel for soft devices is written.
 *
 * Kernels live in shared objects that the device's process loads (hpeModuleLoad). A kernel is an exported function that
 * gets its parameter struct and a range of tiles of the launch's grid. Tiles of one launch may run on several threads
 * at once and in any order, so a kernel must keep no state between calls. Pointers in the parameters are hpe pointers,
 * which are valid on the device and on the host.
 *
 *   struct scale_parameters { float* data; uint64_t count; float factor; };
 *
 *   HPE_HOST_KERNEL(scale, scale_parameters) {
 *     for (uint64_t tile = tiles->begin; tile < tiles->end; ++tile) ... parameters->data ...
 *   }
 */
#ifndef HPE_KERNEL_H
#define HPE_KERNEL_H

#include <stdint.h>

/* Tiles begin <= t < end of a grid, numbered with x fastest: t = x + grid[0] * (y + grid[1] * z). */
typedef struct hpeTiles {
  uint64_t begin;
  uint64_t end;
  uint32_t grid[3];
} hpeTiles;

/* The function that a device calls. parameters points to the device's own aligned copy of the struct given to
 * hpeLaunch. */
typedef void (*hpeHostKernel)(const void* parameters, const hpeTiles* tiles);

#ifdef __cplusplus
#define HPE_KERNEL_LINKAGE extern "C"
#else
#define HPE_KERNEL_LINKAGE
#endif

/* Defines the exported function `name`. The body of the function follows the macro and uses two pointers: `parameters`
 * (to a Parameters struct) and `tiles`. */
#define HPE_HOST_KERNEL(name, Parameters)                                                                           \
  static void name##_body(const Parameters* parameters, const hpeTiles* tiles);                                     \
  HPE_KERNEL_LINKAGE __attribute__((visibility("default"))) void name(const void* untyped, const hpeTiles* tiles) { \
    name##_body((const Parameters*)untyped, tiles);                                                                 \
  }                                                                                                                 \
  static void name##_body(const Parameters* parameters, const hpeTiles* tiles)

#endif
