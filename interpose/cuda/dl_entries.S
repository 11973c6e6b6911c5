// dlopen, dlsym and dlvsym as the process sees them while the shim is preloaded. What they mean may depend on who calls
// (RTLD_NEXT, the search path and the namespace of the caller), which the C library reads off the return address: so they
// end in a jump, never in a call, wherever that can matter. The functions behind are in dl.cpp.

        .hidden hpe_name_to_open, hpe_next_dlopen, hpe_dlsym, hpe_next_dlsym, hpe_dlvsym, hpe_next_dlvsym

        .text

// A name of the driver is replaced by the shim's own; everything else arrives as it was.
        .globl dlopen
        .type dlopen, @function
        .p2align 4
dlopen:
        .cfi_startproc
        endbr64
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        pushq %rsi
        .cfi_adjust_cfa_offset 8
        subq $8, %rsp
        .cfi_adjust_cfa_offset 8
        call hpe_name_to_open
        movq %rax, (%rsp)
        call hpe_next_dlopen
        movq %rax, %r11
        movq (%rsp), %rax
        addq $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq %rsi
        .cfi_adjust_cfa_offset -8
        popq %rdi
        .cfi_adjust_cfa_offset -8
        testq %rax, %rax
        cmovnzq %rax, %rdi
        jmp *%r11
        .cfi_endproc
        .size dlopen, . - dlopen

// RTLD_DEFAULT is 0 and RTLD_NEXT is -1: the caller matters. Handles name libraries: it does not.
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
