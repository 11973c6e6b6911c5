/* hpe: where devices are in the machine.
 *
 * On a machine with several NUMA nodes, each device is attached to one node. hpe places its own threads and buffers for
 * the device on that node; a program may want to do the same with threads that use much of the device's memory.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_PLACEMENT_H
#define HPE_PLACEMENT_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives the operating system's number of the NUMA node next to a device; -1 if the machine has only one node, or if the
 * node is not known. Soft devices have the nodes that HPE_SOFT_NODES names.
 * Errors: HPE_ERROR_INVALID_DEVICE. */
HPE_API hpeStatus hpeGetDeviceNumaNode(int device, int* node);

#ifdef __cplusplus
}
#endif

#endif
