/* hpe: work that a program keeps in queues of its own before it hands it to hpe, as a library with streams does.
 *
 * hpe's order follows from the data that launches and copies name, in the order of the calls. Work that waits in a
 * queue of the program's is unknown to hpe. Announced when it is queued, it counts from that call on: CPU code that
 * touches memory which the work may write (or write memory that it reads) waits for its end, and so do system calls,
 * MPI and hpeMemcpy and hpeMemset on such memory. Host memory (hpeMallocHost) is left out. Announcements do not order
 * work that is handed to hpe; whoever queues it does that.
 *
 * <hpe/hpe.h> tells of errors and thread safety.
 */
#ifndef HPE_ANNOUNCE_H
#define HPE_ANNOUNCE_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpeAnnouncement_st* hpeAnnouncement;

/* Announces work that may use all memory whose home is one of these devices (a bit for each), and what accesses name;
 * addresses of ordinary memory are ignored there. What CPU code wrote goes to its home, as before a launch. Every
 * announcement has to be ended. CPU code waits without end if the work never ends, also if that is because the work
 * waits for this very CPU code.
 * Errors: HPE_ERROR_INVALID_ARGUMENT; HPE_ERROR_NOT_A_REGION for an access that leaves its allocation;
 * HPE_ERROR_DEVICE_LOST. */
HPE_API hpeStatus hpeAnnounce(hpeAnnouncement* announcement, uint64_t homes, const hpeAccess* accesses, size_t count);

/* From now on the calling thread does this work, until hpeAnnouncedEnd. All that the work comes after has finished. So
 * what the thread does with memory waits for no announcement, neither its own nor one of later work; profiles name the
 * place that announced the work. While such a thread uses memory of hpe itself (not by a launch or a copy), other
 * threads may see what it sees there. Errors: HPE_ERROR_INVALID_ARGUMENT if the thread does announced work already. */
HPE_API hpeStatus hpeAnnouncedBegin(hpeAnnouncement announcement);

/* The work has finished, or will never be done. The handle is invalid then. Called by the thread that began the work,
 * or by any thread if none did. */
HPE_API hpeStatus hpeAnnouncedEnd(hpeAnnouncement announcement);

#ifdef __cplusplus
}
#endif
#endif
