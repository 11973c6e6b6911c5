// Defines the entries of the stand-in for the CUDA driver. Each entry calls sweep_choose (failing_driver.cpp) at each call,
// because no target is ever stored.

#include "interpose/forwarding.inc"

        .text

#define HPE_DRIVER_ENTRY(name) HPE_FORWARD name, sweep_targets
#include "tests/sweep/cuda/failing_entries.def"
#undef HPE_DRIVER_ENTRY

        .set hpe_index, 0
#define HPE_DRIVER_ENTRY(name) HPE_FIRST_CALL name
#include "tests/sweep/cuda/failing_entries.def"
#undef HPE_DRIVER_ENTRY

        HPE_FIRST_CALLS sweep_choose

        .data
        .hidden sweep_targets
        .type sweep_targets, @object
        .p2align 6
sweep_targets:
#define HPE_DRIVER_ENTRY(name) HPE_TARGET name
#include "tests/sweep/cuda/failing_entries.def"
#undef HPE_DRIVER_ENTRY
        .size sweep_targets, . - sweep_targets

        .section .note.GNU-stack, "", @progbits
