// Each function of MPI that hpe wraps, under both of its names: a jump through a table, to a wrapper, to a tool or to the
// MPI library. The targets are found by hpe_mpi_resolve (choice.cpp).

#include "interpose/forwarding.inc"

        .text

#define HPE_MPI_FUNCTION(name) HPE_FORWARD MPI_##name, hpe_mpi_targets; HPE_FORWARD PMPI_##name, hpe_mpi_targets
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

        .section .note.GNU-stack, "", @progbits
