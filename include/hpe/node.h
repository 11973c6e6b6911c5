/* hpe: memory of other processes on the same machine.
 *
 * A process exports bytes of an hpe allocation and sends the handle, which is plain data, to another process of the
 * same user, for example in a message. The other process copies the bytes, or opens them as memory in its own address
 * space. If the devices of the two processes reach each other, a copy goes directly from device to device.
 *
 * Programs must order accesses of different processes: the exporting process must not write the bytes while others read
 * them, and must tell the importing process when the bytes are ready. Within each process, hpe orders accesses as it
 * does for all hpe memory.
 *
 * Processes find each other through Unix sockets whose names are in the handles. A process of another user, or in a
 * container with its own network, cannot be reached. A child made by fork cannot use handles before exec.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_NODE_H
#define HPE_NODE_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of exported bytes: plain data that may be copied and sent. The handle is valid until hpeExportEnd, or until
 * the process that created it ends. */
typedef struct hpeExport {
  unsigned char bytes[64];
} hpeExport;

/* Waits for work that writes the bytes, makes the copy at their home valid, and lets other processes of the user read
 * that copy. CPU code of this process may read the bytes during the export. The same bytes may be exported several
 * times at once. Until hpeExportEnd, the allocation can neither be freed nor move: hpeFree returns
 * HPE_ERROR_INVALID_ARGUMENT; hpeMigrate, and a launch on a device that does not reach the allocation, return
 * HPE_ERROR_NOT_SUPPORTED.
 * Errors: HPE_ERROR_NOT_A_REGION; HPE_ERROR_INVALID_ARGUMENT for 0 bytes; HPE_ERROR_NOT_SUPPORTED if a device cannot
 * share memory, for an allocation that is distributed over devices in more than 4096 parts, and for memory from
 * hpeExportOpen; HPE_ERROR_OUT_OF_MEMORY if 65,536 exports exist already; HPE_ERROR_DEVICE_LOST if the home is lost. */
HPE_API hpeStatus hpeExportBegin(hpeExport* handle, const void* pointer, size_t size);

/* Ends an export of this process. CPU code of this process then sees the bytes that other processes have written,
 * including processes that have already closed the memory. As soon as no process has the allocation open, its device
 * memory may be used for other data again. Does not wait for copies by other processes: if another process is still
 * copying the bytes, its copy fails with HPE_ERROR_NOT_FOUND. Errors: HPE_ERROR_NOT_FOUND if the handle is not a valid
 * handle of this process. */
HPE_API hpeStatus hpeExportEnd(const hpeExport* handle);

/* Sets *reachable to 1 if this process can use the handle, else to 0. A process can use a handle that a living process
 * of the same user on this machine created, until the export ends. The call takes some microseconds, but longer for the
 * first handle of each exporting process. */
HPE_API hpeStatus hpeExportReachable(const hpeExport* handle, int* reachable);

/* Copies size bytes from offset in the exported bytes to destination, which is an hpe pointer or any memory, and
 * returns when the copy is complete. The handle may be a handle of this process itself.
 * Errors: HPE_ERROR_NOT_FOUND if the export or its process has ended; in this case nothing is written, unless the
 * export or the process ended during the copy: the contents of the destination are then undefined. (If the source
 * process dies during a copy and the copy succeeds nevertheless, the bytes are correct.) HPE_ERROR_INVALID_ARGUMENT
 * beyond the end of the exported bytes; HPE_ERROR_NOT_A_REGION beyond the end of the destination;
 * HPE_ERROR_NOT_SUPPORTED if no device of this process reaches the memory; HPE_ERROR_DEVICE_LOST if the destination's
 * home, or each device that reaches the memory, is lost. */
HPE_API hpeStatus hpeExportCopy(void* destination, const hpeExport* handle, size_t offset, size_t size);

/* Opens the exported bytes as memory that CPU code and kernels of this process use in place: there is one copy, which
 * both processes see. The kind of the memory is HPE_MEMORY_HOST, as for hpeMallocHost. The returned pointer has the
 * same offset within its page as the exported pointer. hpeFree closes the memory. The memory exists until the last
 * process has closed it, even if the export ends, or if the exporting process frees its allocation or ends. Until then
 * the exporter's allocation keeps its home and its device memory.
 *
 * Kernels of the exporting process see writes by other processes at once. CPU code of the exporting process may use a
 * copy of its own, and sees these writes after hpeExportEnd, or after hpeExportBegin of the same bytes; it must not
 * touch the allocation while others write. Allocations of up to 256 KiB share blocks of 64 KiB: while others write, the
 * exporter's CPU code must not write to other allocations in these blocks.
 * Errors: HPE_ERROR_NOT_FOUND as above; HPE_ERROR_NOT_SUPPORTED for handles of this process, and on GPUs, where
 * programs can use CUDA's own IPC handles. */
HPE_API hpeStatus hpeExportOpen(void** pointer, const hpeExport* handle);

#ifdef __cplusplus
}
#endif
#endif
