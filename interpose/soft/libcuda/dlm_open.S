// This dlmopen replaces the C library's dlmopen as interpose/dl_open.S replaces dlopen. The library that contains this
// file defines:
//
//   const char* hpe_name_to_open_in_base(const char* file)   the file to open in place of `file`, in the base namespace
//                                                            instead of the given one; null: neither changes
//   void* hpe_next_dlmopen()                                 the C library's dlmopen

        .hidden hpe_name_to_open_in_base, hpe_next_dlmopen

        .text

        .globl dlmopen
        .type dlmopen, @function
        .p2align 4
dlmopen:
        .cfi_startproc
        endbr64
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        pushq %rsi
        .cfi_adjust_cfa_offset 8
        pushq %rdx
        .cfi_adjust_cfa_offset 8
        subq $16, %rsp
        .cfi_adjust_cfa_offset 16
        movq %rsi, %rdi
        call hpe_name_to_open_in_base
        movq %rax, (%rsp)
        call hpe_next_dlmopen
        movq %rax, %r11
        movq (%rsp), %rax
        addq $16, %rsp
        .cfi_adjust_cfa_offset -16
        popq %rdx
        .cfi_adjust_cfa_offset -8
        popq %rsi
        .cfi_adjust_cfa_offset -8
        popq %rdi
        .cfi_adjust_cfa_offset -8
        testq %rax, %rax
        jz 1f
        movq %rax, %rsi
        xorl %edi, %edi         // LM_ID_BASE
1:      jmp *%r11
        .cfi_endproc
        .size dlmopen, . - dlmopen

        .section .note.GNU-stack, "", @progbits
