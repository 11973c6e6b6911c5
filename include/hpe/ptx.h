/* hpe: kernels in PTX, the assembly language that nvcc puts into programs.
 *
 * hpe loads a PTX module on every device, like any other module (hpeModuleLoad), and finds its kernels by their names
 * in the text (mangled names for C++). On soft devices a kernel's threads run as on a GPU: blocks of threads with
 * shared memory, barriers and warps of 32. On GPUs the CUDA driver compiles and links the texts; there, programs cannot
 * access a module's variables through hpe, and launches cannot be cooperative.
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
 * Errors: HPE_ERROR_INVALID_ARGUMENT, whose message names line and instruction, for a text that is not PTX or a symbol
 * that is not defined; HPE_ERROR_NOT_SUPPORTED for an instruction that hpe does not know (on soft devices);
 * HPE_ERROR_NOT_FOUND for texts that the CUDA driver refuses; HPE_ERROR_OUT_OF_MEMORY if the module's variables do not
 * fit into device memory. */
HPE_API hpeStatus hpeModuleLoadPtx(hpeModule* module, const char* const* texts, size_t count);

/* Unloads a module of hpeModuleLoadPtx: waits for its launches and frees its variables. Its kernels become invalid.
 * Errors: HPE_ERROR_NOT_SUPPORTED for other modules; HPE_ERROR_INVALID_ARGUMENT if the module was unloaded before. */
HPE_API hpeStatus hpeModuleUnload(hpeModule module);

/* Finds a variable in the global or constant memory of a module. Sets *address to the variable's address on one device,
 * and *size to its size; either pointer may be NULL. CPU code, kernels and copies can use the variable like any
 * allocation. A managed variable (.attribute(.managed)) is the same memory on every device. Errors: HPE_ERROR_NOT_FOUND
 * (on GPUs: for all variables); HPE_ERROR_INVALID_DEVICE; HPE_ERROR_NOT_SUPPORTED for modules that are not PTX;
 * HPE_ERROR_DEVICE_LOST if the device was lost before the module was loaded. */
HPE_API hpeStatus hpeModuleGetVariable(void** address, size_t* size, hpeModule module, const char* name, int device);

typedef struct hpeKernelInfo {
  HPE_STRUCT_SIZE(struct hpeKernelInfo);
  uint32_t parameter_count;
  const uint32_t* parameter_offsets; /* offsets in the parameter bytes of a launch; this array and parameter_sizes are
                                        valid until the module is unloaded */
  const uint32_t* parameter_sizes;
  size_t parameter_bytes;       /* the size of all parameters together */
  uint32_t shared_bytes;        /* static shared memory of a block */
  uint32_t local_bytes;         /* the local memory of a thread that the kernel declares */
  uint32_t constant_bytes;      /* size of the module's variables in constant memory */
  uint32_t max_threads;         /* largest number of threads of a block: the kernel's .maxntid, else 1024 */
  uint32_t required_block[3];   /* the kernel's .reqntid; zeros without this directive */
  int32_t architecture;         /* from the text's .target: 75 for sm_75 */
  uint32_t required_cluster[3]; /* the kernel's .reqnctapercluster, in blocks; zeros without it */
  uint32_t max_cluster;         /* most blocks of a cluster: the kernel's .maxclusterrank, else 16 */
  int32_t needs_cluster; /* 1: runs only in its own clusters, or in those that a launch requests (.explicitcluster) */
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
                            memory; zeros: the kernel's own clusters, if it declares any */
} hpeGrid;

/* Like hpeLaunch, for kernels of PTX. *work becomes a handle for hpeWorkWait; work may be NULL.
 * Errors: as for hpeLaunch; HPE_ERROR_INVALID_ARGUMENT for a shape that the kernel or a device does not support (more
 * than 1024 threads or 227 KiB of shared memory in a block, a dimension that is 0, or a grid dimension above CUDA's
 * limits; a cluster that has more blocks than max_cluster, differs from the kernel's own, or does not divide the grid)
 * and for fewer parameter bytes than the kernel has; HPE_ERROR_NOT_SUPPORTED for other kernels, and on GPUs for
 * cooperative launches, and for clusters if the driver is too old. */
HPE_API hpeStatus hpeLaunchGrid(int device, hpeKernel kernel, const hpeGrid* shape, const void* parameters,
                                size_t parameter_size, const hpeAccess* accesses, size_t count, hpeWork* work);

/* The arguments of hpeLaunchGrid in one block of memory, for languages in which each argument of a call takes time:
 * parameter_size bytes of parameters follow this struct and then, at the next multiple of 8 bytes, access_count structs
 * hpeAccess. */
typedef struct hpePackedLaunch {
  hpeKernel kernel;
  size_t parameter_size;
  int32_t device;
  uint32_t access_count;
  hpeGrid shape;
} hpePackedLaunch;

/* Like hpeLaunchGrid. */
HPE_API hpeStatus hpeLaunchPacked(const hpePackedLaunch* launch);

/* Like hpeLaunchGrid with HPE_ALL, for programs that order their work themselves, as CUDA programs do with streams. The
 * launch waits for the work in `after` (work of any kind, on any device; zeros are ignored), and may run at the same
 * time as all other launches by hpeLaunchGridAfter. hpe orders the launch with work of other kinds: the launch sees the
 * data that CPU code wrote and the results of copies, fills and launches of other kinds that were queued before it, and
 * later work of these kinds waits for this launch. One exception: CPU code may use host memory (hpeMallocHost) while
 * such kernels run, so the program itself must wait for the kernels (hpeWorkWait). Memory that the device cannot reach,
 * or whose home is lost, does not move: a kernel that touches it fails. */
HPE_API hpeStatus hpeLaunchGridAfter(int device, hpeKernel kernel, const hpeGrid* shape, const void* parameters,
                                     size_t parameter_size, const hpeWork* after, size_t count, hpeWork* work);

/* Waits until the work has finished and returns its result: HPE_SUCCESS, HPE_ERROR_LAUNCH_FAILED with a message that,
 * on soft devices, names kernel, block, thread and address, or HPE_ERROR_DEVICE_LOST. hpeSynchronize does not report
 * that failure again. Before the call returns, hpe writes the kernel's output (printf) to standard output. *fault
 * (fault may be NULL) is set to the kind of failure. */
typedef enum hpeFault {
  HPE_FAULT_NONE = 0,
  HPE_FAULT_ADDRESS = 1,    /* an access out of bounds, or to memory that the device cannot use */
  HPE_FAULT_MISALIGNED = 2, /* an address that is no multiple of the size of the access */
  HPE_FAULT_TRAP = 3,       /* a trap, or a surface access out of bounds without .clamp or .zero */
  HPE_FAULT_ASSERT = 4,
  HPE_FAULT_STACK = 5,       /* local memory or call depth exhausted */
  HPE_FAULT_INSTRUCTION = 6, /* an instruction that cannot be executed, such as a call through an invalid pointer */
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
