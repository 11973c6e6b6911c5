/* hpe: where devices are in the machine.
 *
 * On a machine with several NUMA nodes, each device is attached to one node. hpe places its own threads and buffers for
 * the device on that node; a program may place threads that use much of the device's memory on the same node.
 *
 * <hpe/hpe.h> describes errors and thread safety.
 */
#ifndef HPE_PLACEMENT_H
#define HPE_PLACEMENT_H

#include "hpe/hpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *node to the operating system's number of the NUMA node to which a device is attached, or to -1 if the machine
 * has only one node, or if the node is not known. HPE_SOFT_NODES sets the nodes of soft devices.
 * Errors: HPE_ERROR_INVALID_DEVICE. */
HPE_API hpeStatus hpeGetDeviceNumaNode(int device, int* node);

#ifdef __cplusplus
}
#endif

#endif
