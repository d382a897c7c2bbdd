# Functions whose names are markup, control characters and separators.
    .text
    .globl main
    .type main, @function
main:
    .cfi_startproc
    subq $8, %rsp
    .cfi_def_cfa_offset 16
    movq $300000000, %rdi
    call "<img src=x onerror=alert(1)>"
    movq $300000000, %rdi
    call "a;b]]>&amp;'</script>"
    xorl %eax, %eax
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size main, .-main

    .type "<img src=x onerror=alert(1)>", @function
"<img src=x onerror=alert(1)>":
    .cfi_startproc
1:  decq %rdi
    jnz 1b
    ret
    .cfi_endproc
    .size "<img src=x onerror=alert(1)>", .-"<img src=x onerror=alert(1)>"

    .type "a;b]]>&amp;'</script>", @function
"a;b]]>&amp;'</script>":
    .cfi_startproc
1:  decq %rdi
    jnz 1b
    ret
    .cfi_endproc
    .size "a;b]]>&amp;'</script>", .-"a;b]]>&amp;'</script>"
    .section .note.GNU-stack,"",@progbits
