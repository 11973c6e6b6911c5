/* hpe: kernels in PTX, the assembly language that nvcc puts into programs.
 *
 * A module of PTX is loaded on every device like any other (hpeModuleLoad), and its kernels are found by their names in
 * the text (mangled ones for C++). On soft devices a kernel's threads run as on a GPU: blocks of threads with shared
 * memory, barriers and warps of 32. On GPUs the CUDA driver compiles and links the texts; there a module's variables
 * are the driver's, and launches are not cooperative.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_PTX_H
#define HPE_PTX_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads PTX texts and links them if there are several, so that they can refer to each other's symbols. The texts are
 * copied. Every call makes a new module with variables of its own, which lives until hpeModuleUnload.
 * Errors: HPE_ERROR_INVALID_ARGUMENT with line and instruction for a text that is not PTX or a symbol that is not
 * defined; HPE_ERROR_NOT_SUPPORTED for an instruction that hpe does not know (on soft devices);
 * HPE_ERROR_NOT_FOUND for texts that the CUDA driver refuses; HPE_ERROR_OUT_OF_MEMORY for the module's variables. */
HPE_API hpeStatus hpeModuleLoadPtx(hpeModule* module, const char* const* texts, size_t count);

/* Unloads a module of hpeModuleLoadPtx: waits for its launches and frees its variables. Its kernels become invalid.
 * Errors: HPE_ERROR_NOT_SUPPORTED for other modules; HPE_ERROR_INVALID_ARGUMENT if it was unloaded before. */
HPE_API hpeStatus hpeModuleUnload(hpeModule module);

/* Gives the address on one device of a variable in the global or constant memory of a module, and its size; either
 * pointer may be NULL. Like any allocation, CPU code, kernels and copies can use it. A managed variable
 * (.attribute(.managed)) is the same memory on every device. Errors: HPE_ERROR_NOT_FOUND, on GPUs for all variables;
 * HPE_ERROR_INVALID_DEVICE; HPE_ERROR_NOT_SUPPORTED for modules that are not PTX; HPE_ERROR_DEVICE_LOST if the device
 * was lost before the module was loaded. */
HPE_API hpeStatus hpeModuleGetVariable(void** address, size_t* size, hpeModule module, const char* name, int device);

typedef struct hpeKernelInfo {
  HPE_STRUCT_SIZE(struct hpeKernelInfo);
  uint32_t parameter_count;
  const uint32_t* parameter_offsets; /* of each parameter in the bytes given to a launch; live as long as the module */
  const uint32_t* parameter_sizes;
  size_t parameter_bytes;       /* all of them together */
  uint32_t shared_bytes;        /* static shared memory of a block */
  uint32_t local_bytes;         /* of a thread, as far as declared */
  uint32_t constant_bytes;      /* of the module's variables in constant memory */
  uint32_t max_threads;         /* of a block; what the kernel demands (.maxntid), else 1024 */
  uint32_t required_block[3];   /* .reqntid; zeros if there is none */
  int32_t architecture;         /* of the text's .target: 75 for sm_75 */
  uint32_t required_cluster[3]; /* blocks of a cluster, where it declares one (.reqnctapercluster); else zeros */
  uint32_t max_cluster;         /* blocks of a cluster; what the kernel demands (.maxclusterrank), else 16 */
  int32_t needs_cluster; /* 1: runs in clusters only, its own or those that a launch asks for (.explicitcluster) */
} hpeKernelInfo;

/* Describes a kernel of a module of PTX. Errors: HPE_ERROR_NOT_SUPPORTED for other kernels. */
HPE_API hpeStatus hpeKernelGetInfo(hpeKernel kernel, hpeKernelInfo* info);

/* A handle of one piece of queued work. A handle of zeros names work that is finished. */
typedef struct hpeWork {
  uint64_t position;
  uint32_t line;
  uint32_t reserved;
} hpeWork;

typedef struct hpeGrid {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes; /* dynamic shared memory of a block */
  int32_t cooperative;   /* all blocks run at once and may wait for each other (grid synchronisation) */
  uint32_t cluster[3];   /* blocks of a cluster, which run at once, may wait for each other and use each other's shared
                            memory; zeros: as the kernel declares, or no clusters */
} hpeGrid;

/* Like hpeLaunch, for kernels of PTX. *work becomes a handle for hpeWorkWait; work may be NULL.
 * Errors: as for hpeLaunch; HPE_ERROR_INVALID_ARGUMENT for a shape that the kernel or a device cannot have (more than
 * 1024 threads or 227 KiB of shared memory in a block, a grid dimension above CUDA's limits, zero; a cluster of more
 * than 16 blocks or other than the kernel's own, or one that does not divide the grid); HPE_ERROR_NOT_SUPPORTED for
 * other kernels, and on GPUs for cooperative launches, and for clusters if the driver is too old. */
HPE_API hpeStatus hpeLaunchGrid(int device, hpeKernel kernel, const hpeGrid* shape, const void* parameters,
                                size_t parameter_size, const hpeAccess* accesses, size_t count, hpeWork* work);

/* Like hpeLaunchGrid with HPE_ALL, for programs that order their work themselves, as CUDA programs do with streams.
 * Among launches of this kind, this one waits only for those in after (work of any kind, on any device; zeros are
 * ignored), and may run at the same time as the others. With other work hpe keeps the order: this launch sees what CPU
 * code wrote and the results of copies, fills and launches of other kinds that were queued before; those queued later
 * wait for it. One exception: CPU code may use host memory (hpeMallocHost) while such kernels run, and must wait for
 * them itself (hpeWorkWait). Memory that the device cannot reach, or whose home is lost, does not move: a kernel that
 * touches it fails. */
HPE_API hpeStatus hpeLaunchGridAfter(int device, hpeKernel kernel, const hpeGrid* shape, const void* parameters,
                                     size_t parameter_size, const hpeWork* after, size_t count, hpeWork* work);

/* Waits until the work has finished and returns its result: HPE_SUCCESS, HPE_ERROR_LAUNCH_FAILED with a message that
 * names kernel, block, thread and address, or HPE_ERROR_DEVICE_LOST. hpeSynchronize does not report that failure again.
 * The kernel's output is then on standard output. *fault (fault may be NULL) is set to the kind of failure. */
typedef enum hpeFault {
  HPE_FAULT_NONE = 0,
  HPE_FAULT_ADDRESS = 1,    /* out of bounds, or not memory of the device */
  HPE_FAULT_MISALIGNED = 2, /* not a multiple of the size of the access */
  HPE_FAULT_TRAP = 3,       /* also a surface access out of bounds, unless the kernel says .clamp or .zero */
  HPE_FAULT_ASSERT = 4,
  HPE_FAULT_STACK = 5,       /* local memory or call depth exhausted */
  HPE_FAULT_INSTRUCTION = 6, /* something that cannot be executed, such as a call through a pointer to no function */
  HPE_FAULT_DEADLOCK = 7,    /* threads wait for each other forever */
  HPE_FAULT_OTHER = 8
} hpeFault;
HPE_API hpeStatus hpeWorkWait(hpeWork work, hpeFault* fault);

/* Sets *done to 1 if the work has finished, successfully or not, else to 0. */
HPE_API hpeStatus hpeWorkQuery(hpeWork work, int* done);

#ifdef __cplusplus
}
#endif
#endif
