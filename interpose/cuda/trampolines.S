// One function for each entry of the driver: a jump through a table, to the driver's own function or to a hook of hpe. A
// slot of the table first leads to code that finds the target (hpe_cuda_resolve, in shim.cpp) and preserves all registers
// that carry arguments. Nothing here changes the stack of a forwarded call, so any number of arguments arrives.

        .hidden hpe_cuda_resolve

        .text

        .set hpe_index, 0
        .macro HPE_FORWARD name
        .globl \name
        .type \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        jmp *(hpe_cuda_targets + 8 * hpe_index)(%rip)
        .cfi_endproc
        .size \name, . - \name
        .set hpe_index, hpe_index + 1
        .endm
#define HPE_DRIVER_ENTRY(name) HPE_FORWARD name
#include "interpose/cuda/driver_entries.def"
#undef HPE_DRIVER_ENTRY

        .set hpe_index, 0
        .macro HPE_FIRST_CALL name
        .p2align 4
hpe_first_\name:
        .cfi_startproc
        pushq $hpe_index
        .cfi_adjust_cfa_offset 8
        jmp hpe_first_call
        .cfi_endproc
        .set hpe_index, hpe_index + 1
        .endm
#define HPE_DRIVER_ENTRY(name) HPE_FIRST_CALL name
#include "interpose/cuda/driver_entries.def"
#undef HPE_DRIVER_ENTRY

// The stack holds the index and, above it, the caller's return address.
        .type hpe_first_call, @function
hpe_first_call:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        pushq %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_offset %rbp, -24
        movq %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq $-16, %rsp
        subq $192, %rsp
        movq %rdi, (%rsp)
        movq %rsi, 8(%rsp)
        movq %rdx, 16(%rsp)
        movq %rcx, 24(%rsp)
        movq %r8, 32(%rsp)
        movq %r9, 40(%rsp)
        movq %rax, 48(%rsp)
        movaps %xmm0, 64(%rsp)
        movaps %xmm1, 80(%rsp)
        movaps %xmm2, 96(%rsp)
        movaps %xmm3, 112(%rsp)
        movaps %xmm4, 128(%rsp)
        movaps %xmm5, 144(%rsp)
        movaps %xmm6, 160(%rsp)
        movaps %xmm7, 176(%rsp)
        movq 8(%rbp), %rdi
        call hpe_cuda_resolve
        movq %rax, %r11
        movq (%rsp), %rdi
        movq 8(%rsp), %rsi
        movq 16(%rsp), %rdx
        movq 24(%rsp), %rcx
        movq 32(%rsp), %r8
        movq 40(%rsp), %r9
        movq 48(%rsp), %rax
        movaps 64(%rsp), %xmm0
        movaps 80(%rsp), %xmm1
        movaps 96(%rsp), %xmm2
        movaps 112(%rsp), %xmm3
        movaps 128(%rsp), %xmm4
        movaps 144(%rsp), %xmm5
        movaps 160(%rsp), %xmm6
        movaps 176(%rsp), %xmm7
        leave
        .cfi_def_cfa %rsp, 16
        addq $8, %rsp
        .cfi_def_cfa_offset 8
        jmp *%r11
        .cfi_endproc
        .size hpe_first_call, . - hpe_first_call

        .data
        .globl hpe_cuda_targets
        .hidden hpe_cuda_targets
        .type hpe_cuda_targets, @object
        .p2align 6
hpe_cuda_targets:
        .macro HPE_TARGET name
        .quad hpe_first_\name
        .endm
#define HPE_DRIVER_ENTRY(name) HPE_TARGET name
#include "interpose/cuda/driver_entries.def"
#undef HPE_DRIVER_ENTRY
        .size hpe_cuda_targets, . - hpe_cuda_targets

        .section .note.GNU-stack, "", @progbits
