/* hpe: one pointer for the host and every device.
 *
 * The C interface. A program allocates memory with hpeMalloc and its variants, uses the pointer in CPU code and in
 * kernels alike, and launches kernels with hpeLaunch. The runtime moves data to the processor that uses the data.
 * <hpe/hpe.hpp> is the C++ interface to the same functions.
 *
 * Meaning of a program. A thread sees its launches, copies and accesses as if each had finished before the next one
 * began, on any device; the calls themselves return as soon as the work is queued. Between threads the rules of C++
 * apply: if two threads use the same bytes and at least one of them writes, the program must order the accesses by the
 * usual means (mutexes, joins, atomics). After this synchronisation, the second thread sees the results of everything
 * that the first thread launched before it.
 *
 * Thread safety. Every function may be called from any thread at any time, except from a signal handler and from a
 * child made by fork that has not called exec. A signal handler may access hpe memory, unless it interrupted a call of
 * hpe in its own thread: the access might then wait forever for that call.
 *
 * Errors. Every function except hpeVersion, hpeStatusName and hpeGetLastErrorMessage returns a status.
 * hpeGetLastErrorMessage() gives the message of the last failure in the calling thread. The message says what the
 * caller requested and what is possible. A call that fails leaves its arguments and the memory named by them unchanged,
 * unless its description says otherwise. The descriptions do not repeat the errors that every function that needs the
 * runtime can return: HPE_ERROR_INITIALIZATION and HPE_ERROR_FORKED as for hpeInit, HPE_ERROR_INVALID_ARGUMENT if a
 * required pointer is NULL, HPE_ERROR_OUT_OF_MEMORY if the host has too little memory, and HPE_ERROR_SYSTEM if a system
 * call fails.
 *
 * Units. Sizes are bytes. Devices are numbered from 0 to hpeGetDeviceCount() - 1.
 *
 * Structs that functions fill begin with struct_size, which the caller sets to sizeof of the struct; in C++, a default
 * member initializer sets struct_size. Therefore later versions of hpe can append members: a function fills the members
 * that the program's header and the library both have, and sets to zero those that only the header has. An invalid
 * struct_size, such as 0, gives HPE_ERROR_INVALID_ARGUMENT.
 */
#ifndef HPE_HPE_H
#define HPE_HPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HPE_API __attribute__((visibility("default")))
#else
#define HPE_API
#endif

/* The first member of a struct that a function fills. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define HPE_STRUCT_SIZE(type) size_t struct_size = sizeof(type)
#else
#define HPE_STRUCT_SIZE(type) size_t struct_size
#endif

/* ---- version -------------------------------------------------------------------------------- */

/* The version of this header. CMake and pkg-config take the version of the package from here. */
#define HPE_VERSION_MAJOR 0
#define HPE_VERSION_MINOR 1
#define HPE_VERSION_PATCH 0

/* Versions as one number that can be compared. */
#define HPE_MAKE_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define HPE_VERSION HPE_MAKE_VERSION(HPE_VERSION_MAJOR, HPE_VERSION_MINOR, HPE_VERSION_PATCH)

/* Returns the HPE_VERSION of the library that is loaded at run time. Does not start the runtime. */
HPE_API int hpeVersion(void);

/* ---- statuses ------------------------------------------------------------------------------- */

typedef enum hpeStatus {
  HPE_SUCCESS = 0,
  HPE_ERROR_INVALID_ARGUMENT = 1, /* an invalid size, pointer, mode or name */
  HPE_ERROR_NOT_A_REGION = 2,     /* no live allocation contains the address, or the range leaves the allocation */
  HPE_ERROR_OUT_OF_MEMORY = 3,    /* a device, or the host, has too little memory left */
  HPE_ERROR_INVALID_DEVICE = 4,   /* no device has this number */
  HPE_ERROR_NOT_FOUND = 5,        /* the module, kernel, variable, file or export does not exist */
  HPE_ERROR_LAUNCH_FAILED = 6,    /* a kernel failed; afterwards a soft device stays usable, but a GPU is lost */
  HPE_ERROR_DEVICE_LOST = 7,      /* the device died; data of which only the device had a valid copy is lost */
  HPE_ERROR_NOT_SUPPORTED = 8,    /* a valid request that this device or build cannot fulfil */
  HPE_ERROR_INITIALIZATION = 9,   /* the runtime could not start; the message gives the reason */
  HPE_ERROR_FORKED = 10,          /* the runtime was started by the parent of this process */
  HPE_ERROR_SYSTEM = 11,          /* a system call failed; the message names it */
  HPE_ERROR_INTERNAL = 12         /* a bug in hpe */
} hpeStatus;

/* Returns the name of a status, such as "HPE_SUCCESS", or "unknown status" for any other number. Never returns NULL. */
HPE_API const char* hpeStatusName(hpeStatus status);

/* Returns the message of the last failed call of this thread, or "" if no call failed. The text is valid until the next
 * call of an hpe function in this thread. */
HPE_API const char* hpeGetLastErrorMessage(void);

/* ---- start and devices ----------------------------------------------------------------------- */

/* Starts the runtime: opens the devices that HPE_DEVICES names and reserves the address space. The first call of any
 * function that needs the runtime also starts the runtime. A program needs hpeInit only to learn early whether the
 * runtime can start.
 * Errors: HPE_ERROR_INITIALIZATION, HPE_ERROR_FORKED. */
HPE_API hpeStatus hpeInit(void);

typedef enum hpeDeviceKind { HPE_DEVICE_SOFT = 0, HPE_DEVICE_CUDA = 1 } hpeDeviceKind;

typedef struct hpeDeviceInfo {
  HPE_STRUCT_SIZE(struct hpeDeviceInfo);
  hpeDeviceKind kind;
  char name[64];
  uint64_t memory_total;  /* bytes that allocations can use */
  uint64_t memory_free;   /* bytes of memory_total that are free now */
  uint32_t compute_units; /* multiprocessors, or worker threads of a soft device */
  int32_t lost;           /* 1 after the device died */
  uint64_t peers;         /* bit d is set if kernels on this device can use memory whose home is d */
} hpeDeviceInfo;

/* Sets *count to the number of devices, which is at least 1. */
HPE_API hpeStatus hpeGetDeviceCount(int* count);

/* Describes one device. Errors: HPE_ERROR_INVALID_DEVICE. */
HPE_API hpeStatus hpeGetDeviceInfo(int device, hpeDeviceInfo* info);

/* Sets or gets the device that allocations and launches of the calling thread use if they name no device. A new thread
 * uses device 0. The setting does not restrict access: any thread may use any device's memory at any time.
 * Errors: HPE_ERROR_INVALID_DEVICE. */
HPE_API hpeStatus hpeSetDevice(int device);
HPE_API hpeStatus hpeGetDevice(int* device);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Allocates size bytes whose home is the current device (hpeMallocOn: the device named). The pointer is valid in CPU
 * code and in kernels, and aligned to 256 bytes. On the host, new memory reads as zero until it is written. The program
 * owns the memory and frees it with hpeFree. Allocations may exceed the device's memory, unless HPE_OVERSUBSCRIBE is
 * off.
 * Errors: HPE_ERROR_INVALID_ARGUMENT for size 0; HPE_ERROR_OUT_OF_MEMORY, whose message names the free bytes;
 * HPE_ERROR_INVALID_DEVICE; HPE_ERROR_DEVICE_LOST. */
HPE_API hpeStatus hpeMalloc(void** pointer, size_t size);
HPE_API hpeStatus hpeMallocOn(void** pointer, size_t size, int device);

/* Allocates memory whose home is the host: CPU code uses this memory like any other memory, and kernels of every device
 * access it over the link of their device. Host memory suits small data that CPU code and kernels change often.
 * Errors: HPE_ERROR_INVALID_ARGUMENT for size 0; HPE_ERROR_OUT_OF_MEMORY. */
HPE_API hpeStatus hpeMallocHost(void** pointer, size_t size);

/* Like hpeMallocHost, but CPU code may access the memory at all times, as with cudaMallocHost: CPU code does not wait
 * for kernels that use the memory, so the program itself must wait for them (hpeSynchronize) where necessary. Therefore
 * system calls that hpe does not see (io_uring, the syscall instruction) may use the memory. Copies, launches and the
 * calls that hpe does see are ordered as usual. Errors: as for hpeMallocHost. */
HPE_API hpeStatus hpeMallocOpen(void** pointer, size_t size);

/* How the bytes of a striped allocation are distributed over devices. The homes change only at multiples of
 * hpeGetGranularity() bytes; the sizes of parts and chunks are rounded up to such a multiple. */
typedef enum hpeDistributionKind {
  HPE_DISTRIBUTE_BLOCK = 0,       /* one contiguous part for each device */
  HPE_DISTRIBUTE_CYCLIC = 1,      /* granules go to the devices in turn */
  HPE_DISTRIBUTE_BLOCK_CYCLIC = 2 /* chunks of `chunk` bytes go to the devices in turn */
} hpeDistributionKind;

typedef struct hpeDistribution {
  hpeDistributionKind kind;
  size_t chunk;       /* block-cyclic: bytes in a chunk; otherwise ignored */
  const int* devices; /* the devices in the order of their parts; NULL: all devices, in ascending order */
  size_t device_count;
} hpeDistribution;

/* Allocates one contiguous range of addresses whose parts have different devices as homes. distribution NULL means a
 * block distribution over all devices.
 * Errors: as for hpeMallocOn; HPE_ERROR_INVALID_ARGUMENT also for an unknown kind, a block-cyclic distribution in
 * chunks of 0 bytes, an empty list of devices, or a device that is named twice. */
HPE_API hpeStatus hpeMallocStriped(void** pointer, size_t size, const hpeDistribution* distribution);

/* The unit of placement in bytes: the homes of a striped allocation change only at multiples of this unit. */
HPE_API hpeStatus hpeGetGranularity(size_t* bytes);

/* Waits until the work that uses an allocation has finished, including announced work (<hpe/announce.h>), and frees the
 * allocation. pointer is the address that hpeMalloc, a variant of it, hpeExportOpen or hpeReserve returned. Does
 * nothing if pointer is NULL. Errors: HPE_ERROR_NOT_A_REGION for any other address, including an address inside an
 * allocation; HPE_ERROR_INVALID_ARGUMENT while bytes of the allocation are exported (<hpe/node.h>). */
HPE_API hpeStatus hpeFree(void* pointer);

/* Copies size bytes. Either side may be an hpe pointer or any memory of the program, on any device; the ranges must not
 * overlap. When the call returns, the program may change an ordinary source and read an ordinary destination. If both
 * sides are hpe pointers, the call returns as soon as the copy is queued. The destination keeps its home.
 * Errors: HPE_ERROR_INVALID_ARGUMENT if the ranges overlap, or a pointer is NULL and size is not 0;
 * HPE_ERROR_NOT_A_REGION if a range starts in an allocation and leaves it, or lies in memory that was freed;
 * HPE_ERROR_DEVICE_LOST if the destination's home is lost, or the only valid copy of source bytes was on a lost device.
 * A copy may fail part-way: each byte of the destination then has its old or its new value, the same on the host and
 * all devices, unless the byte's only valid copy was on a lost device. hpeSynchronize reports failures of queued
 * copies. */
HPE_API hpeStatus hpeMemcpy(void* destination, const void* source, size_t size);

/* Sets size bytes, of an hpe allocation or any memory of the program, to value. For an hpe pointer the call returns as
 * soon as the fill is queued. Errors: HPE_ERROR_INVALID_ARGUMENT if destination is NULL and size is not 0;
 * HPE_ERROR_NOT_A_REGION if the range starts in an allocation and leaves it, or lies in memory that was freed;
 * HPE_ERROR_DEVICE_LOST if the home of the range is lost. If the fill fails part-way, each byte has its old or its new
 * value, as with hpeMemcpy. The next hpeSynchronize reports failures that occur after the call has returned. */
HPE_API hpeStatus hpeMemset(void* destination, int value, size_t size);

/* Tells hpe that device `where`, or CPU code (HPE_HOST), will soon use the bytes. The call does not wait for copies and
 * does not change results. size 0 means all bytes up to the end of the allocation. Errors: HPE_ERROR_NOT_A_REGION,
 * HPE_ERROR_INVALID_DEVICE, HPE_ERROR_DEVICE_LOST. */
#define HPE_HOST (-1)
HPE_API hpeStatus hpePrefetch(const void* pointer, size_t size, int where);

/* Tells hpe how the program uses a whole allocation. Advice changes only speed, except that HPE_ADVISE_WRITE_ONLY can
 * also change results. Allocations of up to 256 KiB share blocks with other allocations; hpe accepts advice about them,
 * but ignores it.
 * Errors: HPE_ERROR_NOT_A_REGION, HPE_ERROR_INVALID_ARGUMENT. */
typedef enum hpeAdvice {
  HPE_ADVISE_DEFAULT = 0,    /* rolling upload for sequential writers, prefetch for sequential readers */
  HPE_ADVISE_LAZY = 1,       /* upload only when a kernel needs the data */
  HPE_ADVISE_ROLLING = 2,    /* upload finished blocks while the host writes further blocks, in any order */
  HPE_ADVISE_WRITE_ONLY = 3, /* the host overwrites whole blocks and never reads, so hpe fetches nothing before a write.
                                Bytes of a touched block that the host does not write become undefined. */
  HPE_ADVISE_READ_MOSTLY = 4 /* the host often reads all of the allocation: fetch far ahead */
} hpeAdvice;
HPE_API hpeStatus hpeAdvise(const void* pointer, hpeAdvice advice);

/* Makes device the home of the whole allocation; the address does not change. Waits for work that uses the memory, also
 * for announced work (<hpe/announce.h>).
 * Allocations of up to 256 KiB share granules with other allocations, and move together with these. Errors:
 * HPE_ERROR_NOT_A_REGION; HPE_ERROR_INVALID_DEVICE; HPE_ERROR_NOT_SUPPORTED for host memory and for memory that other
 * processes use (<hpe/node.h>); HPE_ERROR_OUT_OF_MEMORY; HPE_ERROR_DEVICE_LOST if the only valid copy of some bytes is
 * on a lost device. A call that fails leaves the allocation unchanged. */
HPE_API hpeStatus hpeMigrate(void* pointer, int device);

typedef enum hpeMemoryKind {
  HPE_MEMORY_ORDINARY = 0, /* not an hpe allocation */
  HPE_MEMORY_DEVICE = 1,
  HPE_MEMORY_STRIPED = 2,
  HPE_MEMORY_HOST = 3
} hpeMemoryKind;

typedef struct hpePointerInfo {
  HPE_STRUCT_SIZE(struct hpePointerInfo);
  hpeMemoryKind kind;
  void* base;        /* start of the allocation */
  size_t size;       /* the size that the program requested */
  int device;        /* home of the byte pointed to; HPE_HOST for host memory */
  int32_t on_host;   /* 1 if the host's copy of this byte is valid now */
  int32_t on_device; /* 1 if the home's copy is valid now; both are 0 if no byte of the block was ever written, except
                        in host memory */
  size_t block;      /* bytes in a unit of coherence */
} hpePointerInfo;

/* Describes the memory that a pointer points to; a pointer to ordinary memory is not an error. */
HPE_API hpeStatus hpeGetPointerInfo(const void* pointer, hpePointerInfo* info);

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct hpeModule_st* hpeModule;
typedef struct hpeKernel_st* hpeKernel;

/* Loads a shared object of kernels (see <hpe/kernel.h>) on every device. If path is NULL, hpe loads its own kernels.
 * Loading the same file again returns the same module. Modules stay loaded until the program ends. Errors:
 * HPE_ERROR_NOT_FOUND with the loader's message; HPE_ERROR_INVALID_ARGUMENT for an empty path. */
HPE_API hpeStatus hpeModuleLoad(hpeModule* module, const char* path);

/* Finds a kernel by name. Errors: HPE_ERROR_NOT_FOUND. */
HPE_API hpeStatus hpeModuleGetKernel(hpeKernel* kernel, hpeModule module, const char* name);

/* The shape of a launch: the numbers of tiles (grid) and of threads for each tile (block) in three dimensions. For a
 * kernel of a shared object, a soft device calls the kernel's function for ranges of tiles and ignores block. A size of
 * 0 counts as 1. */
typedef struct hpeShape {
  uint32_t grid[3];
  uint32_t block[3];
} hpeShape;

typedef enum hpeAccessMode {
  HPE_IN = 1,   /* the kernel reads the range */
  HPE_OUT = 2,  /* the kernel writes every byte of the range and reads none of the old bytes */
  HPE_INOUT = 3 /* the kernel reads and writes the range, or writes only parts of it */
} hpeAccessMode;

/* Bytes that a kernel uses. size 0 means from address to the end of its allocation. */
typedef struct hpeAccess {
  const void* address;
  size_t size;
  hpeAccessMode mode;
} hpeAccess;

/* The largest size of a parameter struct in bytes, and the largest number of accesses of one launch. */
#define HPE_MAX_PARAMETERS 4000
#define HPE_MAX_ACCESSES 1048576

/* Queues kernel on device (HPE_CURRENT_DEVICE: the calling thread's) and returns. If all data together is larger than
 * device memory, the call first waits until enough device memory is free. The parameters are copied before the call
 * returns. accesses names everything that the kernel touches through hpe pointers; with count HPE_ALL (accesses NULL)
 * the kernel may read and write any allocation. The launch runs after everything that was queued on the same bytes
 * before, from any thread and on any device, and before later work on them. If the device cannot reach an allocation,
 * or the allocation's home is lost, the allocation first moves to the device. If the kernel fails, the next
 * hpeSynchronize reports the failure.
 * Errors: HPE_ERROR_INVALID_ARGUMENT, also for more than HPE_MAX_ACCESSES accesses; HPE_ERROR_NOT_A_REGION;
 * HPE_ERROR_INVALID_DEVICE; HPE_ERROR_OUT_OF_MEMORY if the bytes of all accesses do not fit into device memory at once,
 * or if an allocation that has to move to the device does not fit there; HPE_ERROR_NOT_SUPPORTED if other processes use
 * an allocation that has to move (<hpe/node.h>); HPE_ERROR_DEVICE_LOST. */
#define HPE_CURRENT_DEVICE (-2)
#define HPE_ALL ((size_t)-1)
HPE_API hpeStatus hpeLaunch(int device, hpeKernel kernel, const hpeShape* shape, const void* parameters,
                            size_t parameter_size, const hpeAccess* accesses, size_t count);

/* The part of a launch on several devices (hpeLaunchTeam) that one device runs. */
typedef struct hpeTeamMember {
  int device; /* HPE_CURRENT_DEVICE: the calling thread's */
  hpeShape shape;
  const void* parameters; /* this member's parameters: parameter_size bytes */
} hpeTeamMember;

/* Queues one kernel on several devices as one launch, and returns. accesses names the bytes that all parts use
 * together; the kernel decides which part uses which bytes. All parts begin after earlier work on these bytes, and
 * later work on the bytes runs after all parts. Tiles on one device may wait for tiles on another, through memory that
 * both reach: hpe never queues two teams so that each blocks a device that the other needs. But a device may run only a
 * few tiles at a time, so a tile must not wait for a tile that begins later on the same device. If a member cannot
 * reach an allocation, the allocation moves to the first member's device.
 * Errors: as for hpeLaunch; HPE_ERROR_INVALID_ARGUMENT also if there is no member, if two members name the same device,
 * or if count is HPE_ALL; HPE_ERROR_NOT_SUPPORTED if an allocation would have to move to a device whose memory some
 * member cannot reach either, and for PTX kernels. */
HPE_API hpeStatus hpeLaunchTeam(const hpeTeamMember* members, size_t member_count, hpeKernel kernel,
                                size_t parameter_size, const hpeAccess* accesses, size_t count);

/* Queues work through the program's own code: kernels compiled with it, or calls of libraries such as cuFFT and CUB.
 * Calls function(stream, argument) in the calling thread, and returns when function has returned. stream is a CUstream
 * (a cudaStream_t), and the primary context of the device is current. function queues work on the stream. hpe records
 * this work by CUDA's stream capture, and queues it, as one launch with these accesses, when function has returned. The
 * work may use no hpe memory except the bytes that accesses names.
 * hpe holds no lock while function runs. So function may access hpe memory in CPU code, may call hpe, and may wait for
 * other threads, for example for a lock of an interpreter. function must not wait for its work, and must not make other
 * calls that CUDA cannot capture. function returns 0, or the number of an error, and must not throw an exception.
 * Soft devices need a program that `hpe run --cuda soft` has started.
 * Errors: as for hpeLaunch; HPE_ERROR_LAUNCH_FAILED if function does not return 0, or if CUDA cannot capture the work;
 * then nothing runs. HPE_ERROR_NOT_SUPPORTED on soft devices in other programs. */
typedef int (*hpeEnqueueFunction)(void* stream, void* argument);
HPE_API hpeStatus hpeEnqueue(int device, hpeEnqueueFunction function, void* argument, const hpeAccess* accesses,
                             size_t count);

/* Like hpeEnqueue, but the work may begin at once: function may wait for its work, and may make calls that CUDA cannot
 * capture. A call costs less time than a call of hpeEnqueue. hpe::enqueue (<hpe/cuda.hpp>) is the C++ form.
 * hpe holds locks while function runs. Therefore function must not access hpe memory in CPU code, and must not wait for
 * threads that access hpe memory. Inside function, calls of hpe functions that return a status fail with
 * HPE_ERROR_INVALID_ARGUMENT.
 * Errors: as for hpeLaunch; HPE_ERROR_LAUNCH_FAILED if function does not return 0. In this case, the call waits until
 * the work that function queued has run. Bytes named with HPE_OUT and HPE_INOUT then have their old values where the
 * host had a valid copy; the other bytes have the values that this work left. HPE_ERROR_NOT_SUPPORTED on soft devices,
 * which run kernels of modules only. */
HPE_API hpeStatus hpeEnqueueLocked(int device, hpeEnqueueFunction function, void* argument, const hpeAccess* accesses,
                                   size_t count);

/* Waits until everything queued so far, by any thread, has finished (hpeSynchronizeDevice: on one device), and returns
 * the first failure of a kernel or a copy since the last such call. Programs need these calls to measure times and to
 * learn of errors, but not to order work, except on memory of hpeMallocOpen. Errors: HPE_ERROR_LAUNCH_FAILED;
 * HPE_ERROR_DEVICE_LOST; HPE_ERROR_INVALID_DEVICE. */
HPE_API hpeStatus hpeSynchronize(void);
HPE_API hpeStatus hpeSynchronizeDevice(int device);

/* Waits until all work that uses the bytes has finished: queued launches and copies, and announced work
 * (<hpe/announce.h>). size 0 means all bytes up to the end of the allocation. CPU code need not call this function,
 * because its accesses wait; but a thread that holds a lock can release the lock for the wait. Does not report failures
 * of the work. Errors: HPE_ERROR_NOT_A_REGION. */
HPE_API hpeStatus hpeWait(const void* pointer, size_t size);

/* ---- options ---------------------------------------------------------------------------------- */

/* An option that users set as an environment variable. Programs iterate over an array of this struct, so no later
 * version appends members. */
typedef struct hpeOptionInfo {
  const char* variable;
  const char* initial;  /* the default */
  const char* sentence; /* what the option does */
} hpeOptionInfo;

/* Sets *options to an array of all options, for help texts, and *count to its length. The array is valid until the
 * program ends. Does not start the runtime. */
HPE_API hpeStatus hpeGetOptions(const hpeOptionInfo** options, size_t* count);

/* ---- statistics ------------------------------------------------------------------------------ */

/* Counts since the start or the last reset, over all threads and devices. */
typedef struct hpeStatistics {
  HPE_STRUCT_SIZE(struct hpeStatistics);
  uint64_t faults_read;       /* page faults of reads by CPU code, except those that found a copy in progress */
  uint64_t faults_write;      /* page faults of writes by CPU code, except those that found a copy in progress */
  uint64_t bytes_to_device;   /* copied from the host to devices, for any reason */
  uint64_t bytes_to_host;     /* copied from devices to the host, for any reason */
  uint64_t bytes_peer;        /* copied from device to device */
  uint64_t bytes_staged;      /* of the three counts above, bytes that went through staging buffers */
  uint64_t blocks_prefetched; /* blocks fetched before the host accessed them */
  uint64_t blocks_rolled;     /* blocks uploaded while the host still wrote the allocation */
  uint64_t launches;
  uint64_t protections;        /* changes of page protection */
  uint64_t migrations;         /* regions that changed their home */
  uint64_t degraded;           /* regions protected as a whole because the system allows no more mappings */
  uint64_t bytes_evicted;      /* bytes of data that hpe evicted from device memory to free memory for other data */
  uint64_t bytes_written_back; /* bytes of bytes_evicted that hpe first copied to the host; the host had a valid copy of
                                  the other bytes */
  uint64_t bytes_brought_in;   /* bytes of data that hpe moved into device memory because device work needed the data */
  uint64_t evicting_ns;        /* nanoseconds that threads waited for free device memory */
  uint64_t bytes_given_back;   /* bytes of data that hpe evicted to free device memory for other processes
                                  (HPE_SHARE) */
  uint64_t turn_wait_ns;       /* nanoseconds of evicting_ns that threads waited for their process's turn (HPE_SHARE) */
  uint64_t bytes_spilled;      /* bytes written to the spill file because host memory was full (HPE_HOST_MEMORY) */
  uint64_t bytes_unspilled;    /* bytes read from the spill file */
} hpeStatistics;

HPE_API hpeStatus hpeGetStatistics(hpeStatistics* statistics);
HPE_API hpeStatus hpeResetStatistics(void);

#ifdef __cplusplus
}
#endif
#endif
