// The dlsym and dlvsym that replace the C library's functions while the shim is preloaded (dlopen:
// interpose/dl_open.S). The results may depend on the caller (RTLD_NEXT and the caller's namespace), which the C
// library finds by the return address. So if the result may depend on the caller, these functions jump to the C
// library's functions instead of calling them. dl.cpp defines the other functions that this file uses.

        .hidden hpe_dlsym, hpe_next_dlsym, hpe_dlvsym, hpe_next_dlvsym

        .text

// The result depends on the caller for RTLD_DEFAULT (0) and RTLD_NEXT (-1), but not for the handle of a library.
        .macro HPE_LOOK_UP name
        .globl \name
        .type \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        leaq 1(%rdi), %rax
        cmpq $1, %rax
        ja hpe_\name
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        pushq %rsi
        .cfi_adjust_cfa_offset 8
        pushq %rdx
        .cfi_adjust_cfa_offset 8
        call hpe_next_\name
        popq %rdx
        .cfi_adjust_cfa_offset -8
        popq %rsi
        .cfi_adjust_cfa_offset -8
        popq %rdi
        .cfi_adjust_cfa_offset -8
        jmp *%rax
        .cfi_endproc
        .size \name, . - \name
        .endm
        HPE_LOOK_UP dlsym
        HPE_LOOK_UP dlvsym

        .section .note.GNU-stack, "", @progbits
