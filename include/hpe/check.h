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
  HPE_RECORDED_ATOMIC = 2,     /* atomic operations, and stores that are volatile, relaxed or release */
  HPE_RECORDED_STRONG_READ = 3 /* loads that are volatile, relaxed or acquire */
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
 * hpeTakeRecordedRaces for the device: waits for launches of other threads. hpe does not compare these launches with
 * their declared accesses. Error: HPE_ERROR_NOT_SUPPORTED if accesses are not recorded. */
HPE_API hpeStatus hpeRecordLaunches(int device);

/* Calls visit for the bytes that kernels of PTX on a device have accessed since the last call for this device, by use:
 * for each use first bytes that were accessed in units of less than 4 bytes, then the others, both in ascending order.
 * A byte that several instructions have accessed with the same use belongs to one of them. To know the accesses of one
 * launch, the program must not run another launch on the device between two calls. Error: HPE_ERROR_NOT_SUPPORTED if
 * accesses are not recorded, because HPE_CHECK is off or the device is a GPU. */
HPE_API hpeStatus hpeTakeRecordedRanges(int device, void (*visit)(const hpeRecordedRange* range, void* data),
                                        void* data);

/* Two accesses by threads of one launch that nothing orders. A site is a number of hpeGetRecordedSites; if it is 0,
 * place is the place in the source, otherwise "". shared: whether the threads belong to one block and access its shared
 * memory, in which case begin and end are offsets in it, and variable is the name of the variable, or "" if it is
 * unknown. */
typedef struct hpeRecordedRace {
  uint64_t begin;
  uint64_t end;
  uint32_t shared;
  uint32_t earlier_use;
  uint32_t earlier_site;
  uint32_t later_use;
  uint32_t later_site;
  const char* earlier_place;
  const char* later_place;
  const char* variable;
} hpeRecordedRace;

/* Calls visit for each race in the launches whose accesses hpeTakeRecordedRanges has visited since the last call for
 * this device. The texts are valid during the call. Ends what hpeRecordLaunches has begun. */
HPE_API hpeStatus hpeTakeRecordedRaces(int device, void (*visit)(const hpeRecordedRace* race, void* data), void* data);

/* Calls visit for each place in the source at which launches of a kernel may access memory: first those of the kernel,
 * then those of the functions that kernels of its module call. Several places can have the same number. place is valid
 * during the call. *complete becomes 0 if kernels of the module may write memory without a record, by copies and
 * fills that they queue, otherwise 1. */
HPE_API hpeStatus hpeGetRecordedSites(hpeKernel kernel,
                                      void (*visit)(uint32_t site, uint32_t use, const char* place, void* data),
                                      void* data, int* complete);

/* An access of CPU code to watched memory. */
typedef struct hpeTouch {
  const void* fault; /* the address at which the access failed */
  uint64_t begin;    /* the bytes of the whole access; only the byte at fault if they are not known */
  uint64_t bytes;
  bool writes;
  const void* instruction; /* NULL if not known */
} hpeTouch;

typedef enum hpeTouchAnswer {
  HPE_TOUCH_NOT_WATCHED = 0, /* hpe looks for another cause of the fault */
  HPE_TOUCH_REPEAT = 1,      /* the watcher has opened the page; the thread repeats the access */
  HPE_TOUCH_STEP = 2         /* as HPE_TOUCH_REPEAT; behind the access, hpe calls stepped */
} hpeTouchAnswer;

/* Functions that watch the accesses of CPU code. hpe calls faulted and stepped in the signal handler of the thread, so
 * both must be async-signal-safe. */
typedef struct hpeTouchWatcher {
  /* For every page fault of the process, before hpe looks for its cause. */
  hpeTouchAnswer (*faulted)(const hpeTouch* touch);
  void (*stepped)(void); /* NOLINT(modernize-redundant-void-arg): also C */
  /* hpe is about to allow no access (0), reads (1) or all accesses (2) to pages that the program uses. The function
   * sets the protection, or returns 0 if it watches none of the pages. *failed becomes 1 if mprotect has failed. */
  bool (*protects)(void* begin, size_t bytes, int allowed, bool* failed);
  /* A function of libc that hpe replaces is about to access the bytes, through another mapping. */
  void (*called)(const void* begin, size_t bytes, bool writes);
  /* A system call has failed with EFAULT. The function opens the pages, and returns whether one was closed; hpe then
   * repeats the call. */
  bool (*refused)(void); /* NOLINT(modernize-redundant-void-arg): also C */
  /* A function of libc is about to pass the bytes to the operating system. The function opens their pages, and returns
   * whether one was closed. */
  bool (*opens)(const void* begin, size_t bytes);
} hpeTouchWatcher;

/* Sets the functions, all at once, for the rest of the process. *can_step tells whether HPE_TOUCH_STEP is possible on
 * this processor. Error: HPE_ERROR_INVALID_ARGUMENT if functions have been set, or one is NULL. */
HPE_API hpeStatus hpeWatchTouches(const hpeTouchWatcher* watcher, bool* can_step);

/* For hpe's own libraries, which come from the same build: compares the accesses of work that hpeEnqueue has queued
 * with those that the call declared. work: a const hpe::check::operation_ptr; ranges: a const
 * std::vector<hpe::check::access_range>, with all reads. Accesses to allocations without a declared byte are not
 * compared. */
HPE_API hpeStatus hpeCompareAccesses(const void* work, const void* ranges, const hpeAccess* accesses, size_t count);

/* For hpe's own libraries, which come from the same build: adds a checker, a hpe::check::report_source that must exist
 * until the process ends, to the report of the process. Its findings stand before hpe's findings about launches. */
HPE_API hpeStatus hpeAddToReport(void* source);

#ifdef __cplusplus
}
#endif
#endif
