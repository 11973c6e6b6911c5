/* hpe: the accesses of kernels, for programs that check other programs (HPE_CHECK). hpe's own CUDA runtime library uses
 * these functions for `hpe run --check`.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_CHECK_H
#define HPE_CHECK_H

#include <stdbool.h>

#include "hpe/ptx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hpeRecordedUse {
  HPE_RECORDED_READ = 0,
  HPE_RECORDED_WRITE = 1,
  HPE_RECORDED_ATOMIC = 2 /* atomic operations, and loads and stores that are volatile, relaxed, acquire or release */
} hpeRecordedUse;

/* Bytes [begin, end) that a kernel has accessed; site is a number of hpeGetRecordedSites. */
typedef struct hpeRecordedRange {
  uint64_t begin;
  uint64_t end;
  uint32_t use;
  uint32_t site;
} hpeRecordedRange;

/* Like hpeModuleLoadPtx, for modules whose launches the program checks itself. If HPE_CHECK is on, kernels of such a
 * module record all reads; kernels of other modules record only reads of bytes that their launch has not written
 * before. */
HPE_API hpeStatus hpeModuleLoadRecorded(hpeModule* module, const char* const* texts, size_t count);

/* Makes the calling thread the only one that launches kernels of PTX on the device, until it calls
 * hpeTakeRecordedRanges for the device: waits for launches of other threads. hpe does not compare these launches with
 * their declared accesses. Error: HPE_ERROR_NOT_SUPPORTED if accesses are not recorded. */
HPE_API hpeStatus hpeRecordLaunches(int device);

/* Calls visit for the bytes that kernels of PTX on a device have accessed since the last call for this device: first
 * all that they read, then all that they wrote, then all that they accessed atomically, each in ascending order. A byte
 * that several instructions have accessed belongs to one of them. To know the accesses of one launch, the program must
 * not run another launch on the device between two calls. Error: HPE_ERROR_NOT_SUPPORTED if accesses are not recorded,
 * because HPE_CHECK is off or the device is a GPU. */
HPE_API hpeStatus hpeTakeRecordedRanges(int device, void (*visit)(const hpeRecordedRange* range, void* data),
                                        void* data);

/* Calls visit for each place in the source at which launches of a kernel may access memory: first those of the kernel,
 * then those of the functions that kernels of its module call. Several places can have the same number. place is valid
 * during the call. *complete becomes 0 if the module contains instructions that write memory without a record (bulk
 * copies, stores of matrices and surfaces), otherwise 1. */
HPE_API hpeStatus hpeGetRecordedSites(hpeKernel kernel,
                                      void (*visit)(uint32_t site, uint32_t use, const char* place, void* data),
                                      void* data, int* complete);

/* Makes hpe's signal handler call watcher for every page fault of the process first, in the thread that faulted. If
 * watcher has changed the protection of the page and returns a value other than 0, the thread repeats the access.
 * watcher must be async-signal-safe. NULL: no function. */
HPE_API hpeStatus hpeWatchFaults(bool (*watcher)(void* address, bool is_write));

/* For hpe's own libraries, which come from the same build: appends hpe's findings about launches to *findings, a
 * std::vector<hpe::check::finding>. After this call, the caller reports them, and hpe itself writes no report. */
HPE_API hpeStatus hpeTakeFindings(void* findings);

#ifdef __cplusplus
}
#endif
#endif
