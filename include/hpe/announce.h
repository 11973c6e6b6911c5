/* hpe: announces work that waits in a queue of the program, such as a stream, before the program gives it to hpe.
 *
 * hpe orders work by the data that launches and copies name and by the order of the calls. It does not see work that
 * still waits in a queue of the program. The program can announce this work when it queues the work: from then on, CPU
 * code waits for the end of the work before it touches memory that the work may write, or writes memory that the work
 * may read. System calls, MPI, hpeMemcpy and hpeMemset wait in the same way. Host memory (hpeMallocHost) is not
 * covered. Announcements do not order work that is handed to hpe; the code that queues that work must order it.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_ANNOUNCE_H
#define HPE_ANNOUNCE_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpeAnnouncement_st* hpeAnnouncement;

/* Announces work that may use the ranges in accesses and all memory whose home is one of the devices in homes (bit d:
 * device d). Accesses to ordinary memory are ignored. Data that CPU code wrote is uploaded to its home, as before a
 * launch. Every announcement must be ended. CPU code that waits for the work waits forever if the work never ends, for
 * example because it waits for that CPU code.
 * Errors: HPE_ERROR_INVALID_ARGUMENT; HPE_ERROR_NOT_A_REGION for an access that leaves its allocation;
 * HPE_ERROR_DEVICE_LOST. */
HPE_API hpeStatus hpeAnnounce(hpeAnnouncement* announcement, uint64_t homes, const hpeAccess* accesses, size_t count);

/* Tells hpe that the calling thread does the work from now until hpeAnnouncedEnd. Everything on which the work depends
 * must have finished, because the thread's accesses do not wait for announcements, neither for its own nor for those of
 * later work. Profiles name the place that announced the work. Until hpeAnnouncedEnd, other threads can also access the
 * memory that this thread's CPU code touches. Errors: HPE_ERROR_INVALID_ARGUMENT if the thread does announced work
 * already. */
HPE_API hpeStatus hpeAnnouncedBegin(hpeAnnouncement announcement);

/* Ends an announcement because its work has finished or will never be done. The handle becomes invalid. Only the thread
 * that began the work may call this function; if no thread has begun it, any thread may. */
HPE_API hpeStatus hpeAnnouncedEnd(hpeAnnouncement announcement);

#ifdef __cplusplus
}
#endif
#endif
