// One function for each entry of the driver. The function jumps to an address in a table, which is the address of the
// driver's own function or of hpe's hook. hpe_cuda_resolve (function_lookup.cpp) finds these addresses.

#include "interpose/forwarding.inc"

        .text

#define HPE_DRIVER_ENTRY(name) HPE_FORWARD name, hpe_cuda_targets
#include "interpose/gpu/shim/driver_entries.def"
#undef HPE_DRIVER_ENTRY

        .set hpe_index, 0
#define HPE_DRIVER_ENTRY(name) HPE_FIRST_CALL name
#include "interpose/gpu/shim/driver_entries.def"
#undef HPE_DRIVER_ENTRY

        HPE_FIRST_CALLS hpe_cuda_resolve

        .data
        .globl hpe_cuda_targets
        .hidden hpe_cuda_targets
        .type hpe_cuda_targets, @object
        .p2align 6
hpe_cuda_targets:
#define HPE_DRIVER_ENTRY(name) HPE_TARGET name
#include "interpose/gpu/shim/driver_entries.def"
#undef HPE_DRIVER_ENTRY
        .size hpe_cuda_targets, . - hpe_cuda_targets

        .section .note.GNU-stack, "", @progbits
