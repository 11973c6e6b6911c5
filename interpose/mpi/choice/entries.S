// Defines each function of MPI that hpe wraps under both of its names, MPI_X and PMPI_X. Each function jumps to the
// address in its element of a table: a wrapper, a function of a tool, or a function of the MPI library. hpe_mpi_resolve
// (choice.cpp) fills the table.

#include "interpose/forwarding.inc"

        .text

#define HPE_MPI_FUNCTION(name) HPE_FORWARD MPI_##name, hpe_mpi_targets; HPE_FORWARD PMPI_##name, hpe_mpi_targets
#define HPE_MPI_NEWER_FUNCTION(name) HPE_MPI_FUNCTION(name)
#include "mpi_functions.def"
#undef HPE_MPI_FUNCTION

        .set hpe_index, 0
#define HPE_MPI_FUNCTION(name) HPE_FIRST_CALL MPI_##name; HPE_FIRST_CALL PMPI_##name
#include "mpi_functions.def"
#undef HPE_MPI_FUNCTION

        HPE_FIRST_CALLS hpe_mpi_resolve

        .data
        .globl hpe_mpi_targets
        .hidden hpe_mpi_targets
        .type hpe_mpi_targets, @object
        .p2align 6
hpe_mpi_targets:
#define HPE_MPI_FUNCTION(name) HPE_TARGET MPI_##name; HPE_TARGET PMPI_##name
#include "mpi_functions.def"
#undef HPE_MPI_FUNCTION
        .size hpe_mpi_targets, . - hpe_mpi_targets

// For each newer function (present.cpp), this defines code that returns the function's address if the MPI library has
// the function, and a table that contains the address of this code.
        .text
        .hidden hpe_mpi_present
        .macro HPE_PRESENT name
        .p2align 4
hpe_present_\name:
        .cfi_startproc
        endbr64
        movl $hpe_index, %edi
        leaq hpe_forward_\name(%rip), %rsi
        jmp hpe_mpi_present
        .cfi_endproc
        .set hpe_forward_\name, \name  // this library's own function, even if other libraries define the same name
        .set hpe_index, hpe_index + 1
        .endm

        .macro HPE_NEWER name
        .quad hpe_index, hpe_present_\name
        .set hpe_index, hpe_index + 1
        .endm

#undef HPE_MPI_NEWER_FUNCTION
#define HPE_MPI_FUNCTION(name)
        .set hpe_index, 0
#define HPE_MPI_NEWER_FUNCTION(name) HPE_PRESENT MPI_##name
#include "mpi_functions.def"
#undef HPE_MPI_NEWER_FUNCTION

        .section .data.rel.ro.local, "aw"
        .globl hpe_mpi_newer, hpe_mpi_newer_end
        .hidden hpe_mpi_newer, hpe_mpi_newer_end
        .p2align 4
hpe_mpi_newer:
        .set hpe_index, 0
#define HPE_MPI_NEWER_FUNCTION(name) HPE_NEWER MPI_##name
#include "mpi_functions.def"
#undef HPE_MPI_NEWER_FUNCTION
#undef HPE_MPI_FUNCTION
hpe_mpi_newer_end:

        .section .note.GNU-stack, "", @progbits
