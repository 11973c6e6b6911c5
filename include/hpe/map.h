/* hpe: files of memory at addresses that the program chooses.
 *
 * A program reserves a range of addresses and maps files of memory (memfd_create) into it. CPU code and kernels use the
 * bytes of a file in place: there is one copy, which all mappings of the file and all processes that map the file see.
 * So the program can move memory between addresses without copies, and can share memory with another process by a file
 * descriptor. The memory exists as long as a mapping or a descriptor of the file exists.
 *
 * Within each process, hpe orders accesses to a mapping as it does for memory of hpeMalloc. Programs must order
 * accesses through different mappings of the same bytes, and accesses of different processes.
 *
 * Only soft devices can map files. <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_MAP_H
#define HPE_MAP_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reserves size bytes of addresses, a multiple of hpeGetGranularity(). CPU code and kernels can use the addresses only
 * where a file is mapped. hpeFree waits for the work that uses the range, and releases the range with its mappings.
 * Errors: HPE_ERROR_INVALID_ARGUMENT for any other size; HPE_ERROR_OUT_OF_MEMORY if too little address space is left
 * (HPE_SEGMENT_SIZE); HPE_ERROR_NOT_SUPPORTED on GPUs. */
HPE_API hpeStatus hpeReserve(void** pointer, size_t size);

/* Maps size bytes of a file, from offset on, to the addresses from pointer on, in a range of hpeReserve. size and the
 * distance of pointer from the start of the range are multiples of hpeGetGranularity(); offset is a multiple of the
 * page size. The program may close the file after the call. The file must not become shorter while it is mapped; the
 * program can seal it against that (F_SEAL_SHRINK). The kind of the memory is HPE_MEMORY_HOST, but CPU code waits for
 * announced work (<hpe/announce.h>) as for device memory. Errors: HPE_ERROR_NOT_A_REGION if the addresses are not
 * inside a range of hpeReserve; HPE_ERROR_INVALID_ARGUMENT for other sizes, if the file is not open or has too few
 * bytes, or if a file is mapped in the range already. If the call fails, nothing is mapped. */
HPE_API hpeStatus hpeMapFile(void* pointer, size_t size, int file, uint64_t offset);

/* Waits for the work that uses the bytes, and unmaps the files there. The bytes must consist of whole mappings.
 * Errors: HPE_ERROR_NOT_A_REGION if the addresses are not inside a range of hpeReserve; HPE_ERROR_INVALID_ARGUMENT if
 * the bytes do not consist of whole mappings. */
HPE_API hpeStatus hpeUnmapFile(void* pointer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
