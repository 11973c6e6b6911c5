// This dlopen replaces the C library's if a library that contains it is preloaded. The result may depend on the caller
// (its search path and namespace), which the C library finds by the return address, so the function ends in a jump. The
// library that contains it defines:
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
