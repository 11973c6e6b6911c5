/* hpe: memory of other processes on the same machine.
 *
 * A process exports bytes of an hpe allocation and gives the handle, which is plain data, to another process of the
 * same user, for example in a message. That process copies from it, directly between the devices where they reach each
 * other, or opens it as memory of its own.
 *
 * Order between processes is the programs' affair: an exporting process does not write the bytes while others read
 * them, and an importing one is told by the exporter when they are ready. Within each process hpe orders as always.
 *
 * Processes find each other through Unix sockets whose names are in the handles. A process of another user, or in a
 * container with a network of its own, is not reachable. A child made by fork cannot use handles before exec.
 *
 * <hpe/hpe.h> tells of errors and thread safety.
 */
#ifndef HPE_NODE_H
#define HPE_NODE_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names exported bytes. It may be copied and sent; it holds until hpeExportEnd, or the end of the process that made it.
 */
typedef struct hpeExport {
  unsigned char bytes[64];
} hpeExport;

/* Waits for work that writes the bytes, makes the copy at their home valid, and lets other processes of the user read
 * it. The host may still read the bytes. Bytes may be exported several times at once. Until hpeExportEnd the allocation
 * stays where it is: hpeFree gives HPE_ERROR_INVALID_ARGUMENT, hpeMigrate (and a launch on a device that does not reach
 * the allocation) HPE_ERROR_NOT_SUPPORTED.
 * Errors: HPE_ERROR_NOT_A_REGION; HPE_ERROR_INVALID_ARGUMENT for 0 bytes; HPE_ERROR_NOT_SUPPORTED where a device has no
 * way to share memory, for an allocation of more than 4096 parts on several devices, for memory that hpeExportOpen
 * gave; HPE_ERROR_OUT_OF_MEMORY beyond 65,536 exports at once. */
HPE_API hpeStatus hpeExportBegin(hpeExport* handle, const void* pointer, size_t size);

/* Ends an export of this process. Copies that others have begun are their programs' affair: one that is still under way
 * gives HPE_ERROR_NOT_FOUND there. Errors: HPE_ERROR_NOT_FOUND if the handle is not one of this process that holds. */
HPE_API hpeStatus hpeExportEnd(const hpeExport* handle);

/* Whether this process can use the handle: it was made on this machine by a living process of the same user, and did
 * not end. Cheap after the first handle of a process: some microseconds. */
HPE_API hpeStatus hpeExportReachable(const hpeExport* handle, int* reachable);

/* Copies size bytes from offset of what was exported to destination, which is an hpe pointer or any memory, and returns
 * when they are there. The handle may be of this process itself.
 * Errors: HPE_ERROR_NOT_FOUND for a handle that ended or whose process did; nothing is written then, unless that
 * happened during the copy, which leaves the destination undefined. (A copy whose source process dies during it may
 * succeed; the bytes are right then.) HPE_ERROR_INVALID_ARGUMENT beyond the end of what was exported;
 * HPE_ERROR_NOT_A_REGION beyond the end of the destination; HPE_ERROR_NOT_SUPPORTED if no device of this process
 * reaches the memory. */
HPE_API hpeStatus hpeExportCopy(void* destination, const hpeExport* handle, size_t offset, size_t size);

/* Opens what was exported, as memory that CPU code and kernels of this process use in place (one copy, which both
 * processes see: like hpeMallocHost, and with that kind). The pointer lies in its page as the exported one does.
 * hpeFree gives it back; the memory lives until the last process lets go of it, whatever becomes of the export, of the
 * exporter's allocation and of its process.
 *
 * Kernels of the exporting process see at once what others write. Its CPU code may have a copy of its own, and sees it
 * after hpeExportEnd, or hpeExportBegin of the same bytes; while others write, it leaves the allocation alone.
 * Errors: HPE_ERROR_NOT_FOUND as above; HPE_ERROR_NOT_SUPPORTED for handles of this process, and on GPUs, where
 * programs have CUDA's own handles for this. */
HPE_API hpeStatus hpeExportOpen(void** pointer, const hpeExport* handle);

#ifdef __cplusplus
}
#endif
#endif
