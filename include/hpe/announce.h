/* hpe: announcements of work that waits in a queue of the program, such as a CUDA stream, before the program passes the
 * work to hpe.
 *
 * hpe orders work by the data that launches and copies name and by the order of the calls. It does not see work that
 * still waits in a queue of the program. The program can announce this work when it queues the work. After the
 * announcement, CPU code waits for the end of the work before it reads or writes memory that the work may write, and
 * before it writes memory that the work may read. System calls, MPI calls, copies, fills and launches wait in the same
 * way. Only hpeLaunchGridAfter does not wait; the program itself must order such launches and announced work.
 * Announcements do not protect host memory (hpeMallocHost).
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
 * launch. The program must end every announcement (hpeAnnouncedEnd). If the work waits for CPU code that waits for the
 * announcement, both wait forever.
 * Errors: HPE_ERROR_INVALID_ARGUMENT; HPE_ERROR_NOT_A_REGION for an access that leaves its allocation;
 * HPE_ERROR_DEVICE_LOST. */
HPE_API hpeStatus hpeAnnounce(hpeAnnouncement* announcement, uint64_t homes, const hpeAccess* accesses, size_t count);

/* Announces work that the program queues right after the call, on any stream of the device that has the bytes: for
 * libraries and kernels that hpe does not see. Like hpeAnnounce without homes, but the call first waits for announced
 * work on the bytes, as a launch does, makes the bytes valid in device memory, and returns when hpe's earlier work on
 * them has finished. So the work may begin at once, and no function is called back under a lock of hpe. The program
 * ends the announcement when the work has finished; after it has queued the work, a stream can do so
 * (hpeAnnouncedEndOnStream). Before it has queued the end, the thread that acquired the bytes must not acquire them
 * again, touch them in CPU code or pass them to calls of hpe, because it would wait forever. Errors: as for
 * hpeAnnounce; HPE_ERROR_OUT_OF_MEMORY if the bytes do not fit into device memory at once. */
HPE_API hpeStatus hpeAcquire(hpeAnnouncement* announcement, const hpeAccess* accesses, size_t count);

/* Tells hpe that the calling thread does the work from now until hpeAnnouncedEnd. Everything on which the work depends
 * must have finished, because until hpeAnnouncedEnd the thread's accesses, and its calls of hpeFree, wait for no
 * announcement. Profiles attribute the work to the place in the program that announced the work. Until hpeAnnouncedEnd,
 * other threads can also access the memory that this thread's CPU code touches. Errors: HPE_ERROR_INVALID_ARGUMENT if
 * the thread does announced work already. */
HPE_API hpeStatus hpeAnnouncedBegin(hpeAnnouncement announcement);

/* Ends an announcement because its work has finished or will never be done. The handle becomes invalid. Only the thread
 * that began the work may call this function; if no thread has begun it, any thread may. */
HPE_API hpeStatus hpeAnnouncedEnd(hpeAnnouncement announcement);

/* Ends an announcement like hpeAnnouncedEnd, as a callback of a CUDA stream, which CUDA calls even if the stream's work
 * has failed: cuStreamAddCallback(stream, (CUstreamCallback)hpeAnnouncedEndOnStream, announcement, 0). Ignores stream
 * and status. */
HPE_API void hpeAnnouncedEndOnStream(void* stream, int status, void* announcement);

/* Like hpeFree, but does not wait for announced work. The caller knows that none of the announced work uses the
 * allocation, for example because it has waited for its streams. hpeFree waits for all announced work that may use the
 * allocation: work that is announced with homes may use all memory of these devices, and all host memory. */
HPE_API hpeStatus hpeFreeFinished(void* pointer);

/* ---- memory of other libraries ----------------------------------------------------------------- */

/* Sets *bytes to the number of bytes, from pointer to the end of its allocation, that CPU code can use and for which it
 * waits for device work: memory of hpe and, in a program that `hpe run` has started, device memory that the program or
 * its libraries have allocated through CUDA. All other memory, also ordinary memory, gives 0. */
HPE_API hpeStatus hpeGetAccessibleBytes(const void* pointer, size_t* bytes);

#ifdef __cplusplus
}
#endif
#endif
