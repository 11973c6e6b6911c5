/* hpe: one launch of a kernel on several devices.
 *
 * A PTX kernel (<hpe/ptx.h>) that was written for one device runs on several devices, each of which runs some of the
 * grid's blocks. The kernel sees the block indices and the grid of one launch; its atomic operations and fences reach
 * all devices. hpe derives the memory that the kernel uses from its PTX, so a launch does not name this memory.
 *
 * Some kernels cannot run on several devices, for example kernels whose blocks wait for each other. Such kernels run on
 * one device, and hpe gives the reason. docs/spread.md describes the method and its limits; <hpe/ndarray.hpp> has a C++
 * form.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_SPREAD_H
#define HPE_SPREAD_H

#include "hpe/hpe.h"
#include "hpe/ptx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *reason to the reason why a PTX kernel has to run on one device, or to NULL if several devices may run the
 * kernel. The text is valid until the kernel's module is unloaded. The first call for a module analyses its kernels and
 * loads the patched kernels, which can run a part of a grid. Errors: HPE_ERROR_NOT_SUPPORTED for other kernels. */
HPE_API hpeStatus hpeKernelGetObstacle(hpeKernel kernel, const char** reason);

/* Finds the PTX of a kernel that nvcc compiled into the program or a library: `function` is the kernel (the address of
 * the __global__ function in host code) and name its name in PTX (cudaFuncGetName). The kernel is valid until the
 * program ends. It has its own copies of the module's variables, so kernels that use variables or constants have to run
 * on one device (hpeKernelGetObstacle). Errors: HPE_ERROR_NOT_FOUND if the file of the program or library contains no
 * PTX of this kernel. */
HPE_API hpeStatus hpeKernelOfProgram(hpeKernel* kernel, const void* function, const char* name);

/* How hpe has cut a launch. */
typedef struct hpeSpread {
  HPE_STRUCT_SIZE(struct hpeSpread);
  uint32_t parts;   /* 1: one device runs the whole grid */
  char reason[256]; /* why hpe cut the launch in this way, or did not cut it; a longer text is truncated */
  hpeWork work[16]; /* the work of the parts, for hpeWorkWait; further elements are zeros */
} hpeSpread;

/* Queues a PTX kernel and returns. Of the given devices, hpe uses those with which it predicts that the kernel finishes
 * first. hpe moves arrays to other devices if this makes the launches faster. With HPE_SPREAD_CUT=even, hpe uses all
 * given devices. devices NULL means all devices that are not lost. A kernel that has to run on one device runs on the
 * first one. The launch is ordered with all other work like a launch by hpeLaunchGrid whose accesses name the
 * allocations to which its pointers point; if the kernel uses pointers that it finds in memory, hpe assumes that the
 * kernel uses all allocations. If a part fails, the next hpeSynchronize reports the failure; its message counts blocks
 * within the part. *how (how may be NULL) describes the launch. The variables of the module are those of the first
 * device (hpeModuleGetVariable). If the memory of a launch does not fit on the devices, and the calling thread does
 * announced work (hpeAnnouncedBegin), the launch runs in parts of its grid, one after the other; other work may run
 * between two parts. In this case, how->work contains the work of the last parts. If hpe notices that a part has
 * failed, it queues no further parts, and how->work begins with the failed part. Errors: as for hpeLaunchGrid;
 * HPE_ERROR_INVALID_ARGUMENT also if the list is empty or names a device twice. */
HPE_API hpeStatus hpeLaunchOver(const int* devices, size_t device_count, hpeKernel kernel, const hpeGrid* shape,
                                const void* parameters, size_t parameter_size, hpeSpread* how);

/* The blocks that one device runs. Along axis i: blocks[i] blocks, the first of which has the index first[i]. */
typedef struct hpePart {
  int device;
  uint32_t first[3];
  uint32_t blocks[3];
} hpePart;

/* Like hpeLaunchOver, with parts that the program chooses; a device may run several parts. Blocks that are in no part
 * do not run; blocks that are in two parts run twice. Errors: HPE_ERROR_INVALID_ARGUMENT also for a part that has no
 * blocks or leaves the grid; HPE_ERROR_NOT_SUPPORTED for kernels that have to run on one device, with the reason. */
HPE_API hpeStatus hpeLaunchParts(const hpePart* parts, size_t part_count, hpeKernel kernel, const hpeGrid* shape,
                                 const void* parameters, size_t parameter_size);

#ifdef __cplusplus
}
#endif
#endif
