// This dlopen replaces the C library's dlopen if a library that contains this file is preloaded. The C library finds
// the caller by the return address, because the caller's search path and namespace may affect the result. So this
// dlopen jumps to the C library's dlopen instead of calling it. The library that contains this file defines:
//
//   const char* hpe_name_to_open(const char* file)   the file to open in place of `file`; null: `file`
//   void* hpe_next_dlopen()                          the C library's dlopen

        .hidden hpe_name_to_open, hpe_next_dlopen

        .text

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

        .section .note.GNU-stack, "", @progbits
