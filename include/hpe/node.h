/* hpe: memory of other processes on the same machine.
 *
 * A process exports bytes of an hpe allocation and gives the handle, which is plain data, to another process of the
 * same user, for example in a message. That process copies the bytes, directly between the devices where they reach
 * each other, or opens them as memory of its own.
 *
 * Programs must order accesses of different processes: the exporting process must not write the bytes while others read
 * them, and must tell the importing process when the bytes are ready. Within each process hpe orders as always.
 *
 * Processes find each other through Unix sockets whose names are in the handles. A process of another user, or in a
 * container with a network of its own, is not reachable. A child made by fork cannot use handles before exec.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_NODE_H
#define HPE_NODE_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of exported bytes: plain data that may be copied and sent. It is valid until hpeExportEnd, or until the
 * process that made it ends. */
typedef struct hpeExport {
  unsigned char bytes[64];
} hpeExport;

/* Waits for work that writes the bytes, makes the copy at their home valid, and lets other processes of the user read
 * that copy. The host may still read the bytes. Bytes may be exported several times at once. Until hpeExportEnd the
 * allocation stays where it is: hpeFree gives HPE_ERROR_INVALID_ARGUMENT; hpeMigrate, and a launch on a device that
 * does not reach the allocation, give HPE_ERROR_NOT_SUPPORTED.
 * Errors: HPE_ERROR_NOT_A_REGION; HPE_ERROR_INVALID_ARGUMENT for 0 bytes; HPE_ERROR_NOT_SUPPORTED if a device cannot
 * share memory, for an allocation of more than 4096 parts on several devices, and for memory from hpeExportOpen;
 * HPE_ERROR_OUT_OF_MEMORY beyond 65,536 exports at once; HPE_ERROR_DEVICE_LOST if the home is lost. */
HPE_API hpeStatus hpeExportBegin(hpeExport* handle, const void* pointer, size_t size);

/* Ends an export of this process. CPU code of this process then sees the bytes that other processes have written,
 * including processes that have closed the memory since. As soon as no process has the allocation open, its device
 * memory may be used for other data again. Does not wait for copies by other processes: if another process is still
 * copying the bytes, its copy fails with HPE_ERROR_NOT_FOUND. Errors: HPE_ERROR_NOT_FOUND if the handle is not a valid
 * handle of this process. */
HPE_API hpeStatus hpeExportEnd(const hpeExport* handle);

/* Sets *reachable to whether this process can use the handle: a living process of the same user on this machine made
 * it, and the export has not ended. Takes some microseconds, but longer for the first handle of a process. */
HPE_API hpeStatus hpeExportReachable(const hpeExport* handle, int* reachable);

/* Copies size bytes from offset in the exported bytes to destination, which is an hpe pointer or any memory, and
 * returns when the copy is complete. The handle may be a handle of this process itself.
 * Errors: HPE_ERROR_NOT_FOUND if the export or its process has ended; nothing is written then, unless the export or the
 * process ended during the copy, which leaves the destination undefined. (If the source process dies during a copy and
 * the copy succeeds nevertheless, the bytes are correct.) HPE_ERROR_INVALID_ARGUMENT beyond the end of the exported
 * bytes; HPE_ERROR_NOT_A_REGION beyond the end of the destination; HPE_ERROR_NOT_SUPPORTED if no device of this process
 * reaches the memory; HPE_ERROR_DEVICE_LOST if the destination's home, or each device that reaches the memory, is
 * lost. */
HPE_API hpeStatus hpeExportCopy(void* destination, const hpeExport* handle, size_t offset, size_t size);

/* Opens the exported bytes as memory that CPU code and kernels of this process use in place: there is one copy, which
 * both processes see. The kind of the memory is HPE_MEMORY_HOST, as for hpeMallocHost. The pointer has the offset in
 * its page that the exported pointer has. hpeFree closes it. The memory lives until the last process has closed it,
 * even if the export, the exporter's allocation or its process ends. Until then the exporter's allocation keeps its
 * home and its device memory.
 *
 * Kernels of the exporting process see writes by other processes at once. CPU code of the exporting process may use a
 * copy of its own, and sees these writes after hpeExportEnd, or after hpeExportBegin of the same bytes; it must not
 * touch the allocation while others write. Allocations of up to 256 KiB share blocks of 64 KiB: while others write, the
 * exporter's CPU code must not write to other allocations in these blocks.
 * Errors: HPE_ERROR_NOT_FOUND as above; HPE_ERROR_NOT_SUPPORTED for handles of this process, and on GPUs, where
 * programs have CUDA's own handles for this. */
HPE_API hpeStatus hpeExportOpen(void** pointer, const hpeExport* handle);

#ifdef __cplusplus
}
#endif
#endif
