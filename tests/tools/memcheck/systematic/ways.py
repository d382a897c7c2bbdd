"""What the programs are made of: kinds of errors, and the ways to reach them.

A way is C (and C++) that acts on `p`, the place that is wrong, in a function of its own. The places
below say what `p` is. `here` is a fine buffer of 256 bytes, `fine` a fine string, `null` the file
/dev/null open for reading and writing.
"""

# ---- instructions: the operand in memory is at p ----

def instruction(text, clobbers=''):
    return f'__asm__ volatile("{text}" : : [p] "r"(p), [h] "r"(here) : "memory", "cc"{clobbers});'


RAX, RDX, XMM, YMM = ', "rax"', ', "rdx"', ', "xmm0"', ', "xmm0", "xmm1"'
STRING = ', "rcx", "rsi", "rdi", "rax"'
READING_INSTRUCTIONS = {
    'mov_1': instruction('movb (%[p]), %%al', RAX),
    'mov_2': instruction('movw (%[p]), %%ax', RAX),
    'mov_4': instruction('movl (%[p]), %%eax', RAX),
    'mov_8': instruction('movq (%[p]), %%rax', RAX),
    'movzx': instruction('movzbl (%[p]), %%eax', RAX),
    'movsx': instruction('movslq (%[p]), %%rax', RAX),
    'movbe': instruction('movbe (%[p]), %%rax', RAX),
    'movups': instruction('movups (%[p]), %%xmm0', XMM),
    'movsd': instruction('movsd (%[p]), %%xmm0', XMM),
    'movd': instruction('movd (%[p]), %%xmm0', XMM),
    'vmovdqu': instruction('vmovdqu (%[p]), %%ymm0\\n\\tvzeroupper', YMM),
    'vbroadcast': instruction('vbroadcastss (%[p]), %%ymm0\\n\\tvzeroupper', YMM),
    'pmovzx': instruction('pmovzxbd (%[p]), %%xmm0', XMM),
    'lddqu': instruction('lddqu (%[p]), %%xmm0', XMM),
    'paddd': instruction('movdqu (%[p]), %%xmm1\\n\\tpaddd %%xmm1, %%xmm0', YMM),
    'cvtsi2sd': instruction('cvtsi2sdl (%[p]), %%xmm0', XMM),
    'fld_8': instruction('fldl (%[p])\\n\\tfstp %%st(0)'),
    'fild': instruction('fildl (%[p])\\n\\tfstp %%st(0)'),
    'lods': instruction('mov %[p], %%rsi\\n\\tcld\\n\\tlodsq', STRING),
    'rep_movs': instruction('mov %[p], %%rsi\\n\\tmov %[h], %%rdi\\n\\tmov $4, %%ecx\\n\\tcld\\n\\trep movsb', STRING),
    'push': instruction('pushq (%[p])\\n\\tpopq %%rax', RAX),
    'mul': instruction('mov $3, %%eax\\n\\tmulq (%[p])', RAX + RDX),
    'popcnt': instruction('popcntq (%[p]), %%rax', RAX),
}
WRITING_INSTRUCTIONS = {
    'store_1': instruction('movb $1, (%[p])'),
    'store_2': instruction('movw $1, (%[p])'),
    'store_4': instruction('movl $1, (%[p])'),
    'store_8': instruction('movq $1, (%[p])'),
    'movups_store': instruction('xorps %%xmm0, %%xmm0\\n\\tmovups %%xmm0, (%[p])', XMM),
    'vmovdqu_store': instruction('vpxor %%xmm0, %%xmm0, %%xmm0\\n\\tvmovdqu %%ymm0, (%[p])\\n\\tvzeroupper', YMM),
    'movlps_store': instruction('xorps %%xmm0, %%xmm0\\n\\tmovlps %%xmm0, (%[p])', XMM),
    'movnti': instruction('xor %%eax, %%eax\\n\\tmovnti %%eax, (%[p])', RAX),
    'movd_store': instruction('xorps %%xmm0, %%xmm0\\n\\tmovd %%xmm0, (%[p])', XMM),
    'pextr': instruction('xorps %%xmm0, %%xmm0\\n\\tpextrw $1, %%xmm0, (%[p])', XMM),
    'setcc': instruction('xor %%eax, %%eax\\n\\tsetz (%[p])', RAX),
    'fst': instruction('fldz\\n\\tfstpl (%[p])'),
    'fist': instruction('fldz\\n\\tfistpl (%[p])'),
    'fnstcw': instruction('fnstcw (%[p])'),
    'stmxcsr': instruction('stmxcsr (%[p])'),
    'stos': instruction('mov %[p], %%rdi\\n\\txor %%eax, %%eax\\n\\tcld\\n\\tstosl', STRING),
    'rep_stos': instruction('mov %[p], %%rdi\\n\\tmov $3, %%ecx\\n\\txor %%eax, %%eax\\n\\tcld\\n\\trep stosb', STRING),
    'pop': instruction('pushq $7\\n\\tpopq (%[p])'),
}
# They read what they write.
CHANGING_INSTRUCTIONS = {
    'add': instruction('addl $1, (%[p])'),
    'inc': instruction('incq (%[p])'),
    'neg': instruction('negw (%[p])'),
    'shl': instruction('shll $2, (%[p])'),
    'xchg': instruction('mov $1, %%eax\\n\\txchgl %%eax, (%[p])', RAX),
    'lock_xadd': instruction('mov $1, %%eax\\n\\tlock xaddl %%eax, (%[p])', RAX),
    'cmpxchg': instruction('mov $1, %%eax\\n\\tlock cmpxchgl %%eax, (%[p])', RAX),
    'bts': instruction('btsl $3, (%[p])'),
}

# ---- functions of the C library; p holds the string "some text" where it is in memory that was freed ----

READING_FUNCTIONS = {
    'memcpy_from': 'memcpy(here, p, n);',
    'memmove_from': 'memmove(here, p, n);',
    'memcmp': 'sink = memcmp(p, fine, n);',
    'memchr': "sink = memchr(p, 'x', n) != NULL;",
    'bcopy_from': 'bcopy(p, here, n);',
    'fwrite': 'fwrite(p, 1, n, file);',
    'strncpy_from': 'strncpy(here, p, 3);',
    'strncmp': 'sink = strncmp(p, fine, 3);',
    'strnlen': 'sink = strnlen(p, 3);',
    'wmemcmp': 'sink = wmemcmp((wchar_t *)p, (wchar_t *)fine, 1);',
}
READING_STRINGS = {
    'strlen': 'sink = strlen(p);',
    'strcpy_from': 'strcpy(here, p);',
    'strcat_from': 'strcat(strcpy(here, fine), p);',
    'strcmp': 'sink = strcmp(p, fine);',
    'strcasecmp': 'sink = strcasecmp(p, fine);',
    'strchr': "sink = strchr(p, 'x') != NULL;",
    'strrchr': "sink = strrchr(p, 'x') != NULL;",
    'strstr': 'sink = strstr(p, "xt") != NULL;',
    'strspn': 'sink = strspn(p, "some");',
    'strpbrk': 'sink = strpbrk(p, "xyz") != NULL;',
    'strdup': 'free(strdup(p));',
    'snprintf_from': 'snprintf(here, 100, "%s", p);',
    'atoi': 'sink = atoi(p);',
    'strtol': 'sink = strtol(p, NULL, 16);',
    'fputs': 'fputs(p, file);',
    'setenv': 'setenv("NAME", p, 1);',
    'sscanf': 'sink = sscanf(p, "%255s", here);',
}
WRITING_FUNCTIONS = {
    'memcpy_to': 'memcpy(p, fine, n);',
    'memmove_to': 'memmove(p, fine, n);',
    'memset': 'memset(p, 1, n);',
    'strcpy_to': 'strcpy(p, "ab");',
    'strncpy_to': 'strncpy(p, "ab", n);',
    'stpcpy_to': 'stpcpy(p, "ab");',
    'snprintf_to': 'snprintf(p, 4, "%d", 12);',
    'bzero': 'bzero(p, n);',
    'wmemset': "wmemset((wchar_t *)p, L'a', 1);",
    'fread': 'sink = fread(p, 1, 4, zeros);',
    'fgets': 'FILE *in = fmemopen((void *)fine, 9, "r"); sink = fgets(p, 4, in) != NULL; fclose(in);',
}

# ---- system calls ----

READING_CALLS = {
    'write': 'sink = write(null, p, n);',
    'pwrite': 'sink = syscall(SYS_pwrite64, null, p, n, 0);',
    'writev': 'struct iovec part = {p, (size_t)n}; sink = writev(null, &part, 1);',
    'send': 'sink = send(ends[0], p, n, 0);',
    'sendto': 'sink = syscall(SYS_sendto, ends[0], p, n, 0, NULL, 0);',
    'sendmsg': 'struct iovec part = {p, (size_t)n}; struct msghdr m; memset(&m, 0, sizeof m); m.msg_iov = &part; '
               'm.msg_iovlen = 1; sink = sendmsg(ends[0], &m, 0);',
    'nanosleep': 'memset(here, 0, 16); sink = syscall(SYS_clock_nanosleep, 99, 0, p, NULL);',
    'setsockopt': 'sink = setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, p, 4);',
    'prctl_name': 'sink = syscall(SYS_prctl, PR_SET_NAME, p, 0, 0, 0);',
    'poll': 'sink = syscall(SYS_poll, p, 1, 0);',
    'open': 'sink = syscall(SYS_open, p, O_RDONLY);',
    'stat_path': 'sink = syscall(SYS_stat, p, here);',
    'access': 'sink = syscall(SYS_access, p, F_OK);',
    'mkdir': 'sink = syscall(SYS_mkdir, p, 0700); sink = rmdir("some text");',
}
WRITING_CALLS = {
    'read': 'sink = read(zero, p, n);',
    'pread': 'sink = syscall(SYS_pread64, zero, p, n, 0);',
    'readv': 'struct iovec part = {p, (size_t)n}; sink = readv(zero, &part, 1);',
    'recv': 'sink = send(ends[0], fine, 8, 0); sink = recv(ends[1], p, n, 0);',
    'getrandom': 'sink = syscall(SYS_getrandom, p, n, 0);',
    'getcwd': 'sink = syscall(SYS_getcwd, p, 4096);',
    'readlink': 'sink = readlink("/proc/self/exe", p, n);',
    'pipe': 'sink = syscall(SYS_pipe, p);',
    'times': 'sink = syscall(SYS_times, p);',
    'sysinfo': 'sink = syscall(SYS_sysinfo, p);',
    'getrlimit': 'sink = syscall(SYS_getrlimit, 7, p);',
    'clock_getres': 'sink = syscall(SYS_clock_getres, 1, p);',
    'getitimer': 'sink = syscall(SYS_getitimer, 0, p);',
    'fstat': 'sink = syscall(SYS_fstat, null, p);',
}

# ---- what depends on an undefined value: the 8 bytes at p ----

UNDEFINED_WAYS = {
    'if_char': 'if (*p) sink = 1;',
    'if_int': 'if (*(int *)p > 3) sink = 1;',
    'if_long': 'if (*(long *)p == 77) sink = 1;',
    'if_bit': 'if (*(unsigned *)p & 4) sink = 1;',
    'if_sum': 'if (*(int *)p + 5 == 9) sink = 1;',
    'if_product': 'if (*(int *)p * 6 == 18) sink = 1;',
    'if_shifted': 'if (*(unsigned *)p >> 3) sink = 1;',
    'if_double': 'if (*(double *)p < 2.5) sink = 1;',
    'if_float': 'if (*(float *)p == 1) sink = 1;',
    'if_through_call': 'if (same(*(long *)p) < 0) sink = 1;',
    'if_through_memory': 'memcpy(here, p, 8); if (here[5] == 3) sink = 1;',
    'if_through_cmov': 'long v = *(long *)p, w = 4; __asm__ volatile("testq %1, %1\\n\\tcmovzq %1, %0" : "+r"(w) : "r"(v) : "cc"); if (w == 4) sink = 1;',
    'while': 'for (unsigned i = 0; i < (*(unsigned *)p & 3); i++) sink += i;',
    'switch': 'switch (*(int *)p & 7) { case 1: sink = 1; break; case 2: sink = 5; break; case 3: sink = 9; break; '
              'case 4: sink = 3; break; case 5: sink = 2; break; default: sink = 0; }',
    'index': 'sink = fine[*(unsigned char *)p & 7];',
    'index_store': 'here[*(unsigned char *)p] = 1;',
    'called': 'static long (*const both[])(long) = {same, other}; sink = both[*p & 1](4);',
    'divide': 'if (100 / ((*(int *)p & 7) + 1) > 20) sink = 1;',
    'memcmp_of': 'if (memcmp(p, fine, 4)) sink = 1;',
    'strlen_of': 'p[7] = 0; sink = strlen(p);',
    'strcmp_of': 'p[7] = 0; if (strcmp(p, fine)) sink = 1;',
    'strcpy_of': 'p[7] = 0; strcpy(here, p);',
    'printf_of': 'snprintf(here, 100, "%d", *(int *)p);',
    'qsort_of': 'qsort(p, 2, 4, compare);',
    'write_of': 'sink = write(null, p, 8);',
    'send_of': 'sink = send(ends[0], p, 8, 0);',
    'writev_of': 'struct iovec part = {p, 8}; sink = writev(null, &part, 1);',
    'number_of': 'sink = syscall(SYS_lseek, null, *(long *)p & 1, 0);',
    'descriptor_of': 'sink = syscall(SYS_fsync, *(int *)p);',
    'path_of': 'p[7] = 0; sink = syscall(SYS_access, p, 0);',
    'request_of': 'VALGRIND_CHECK_MEM_IS_DEFINED(p, 8);',
    'ptest': '__asm__ volatile("movdqu (%0), %%xmm0\\n\\tptest %%xmm0, %%xmm0\\n\\tjz 1f\\n1:" : : "r"(p) : "xmm0", "cc");',
    'ucomisd': '__asm__ volatile("movsd (%0), %%xmm0\\n\\tucomisd %%xmm0, %%xmm0\\n\\tjp 1f\\n1:" : : "r"(p) : "xmm0", "cc");',
    'pmovmskb': '__asm__ volatile("movdqu (%0), %%xmm0\\n\\tpmovmskb %%xmm0, %%eax\\n\\ttest $9, %%eax\\n\\tjz 1f\\n1:" : : "r"(p) : "xmm0", "rax", "cc");',
    'jump_of_bt': '__asm__ volatile("movl (%0), %%eax\\n\\tbt $2, %%eax\\n\\tjc 1f\\n1:" : : "r"(p) : "rax", "cc");',
    'jrcxz': '__asm__ volatile("movq (%0), %%rcx\\n\\tjrcxz 1f\\n1:" : : "r"(p) : "rcx");',
    'adc': '__asm__ volatile("movl (%0), %%eax\\n\\tadd %%eax, %%eax\\n\\tmov $0, %%edx\\n\\tadc $0, %%edx\\n\\tjz 1f\\n1:" : : "r"(p) : "rax", "rdx", "cc");',
    'rep_count': '__asm__ volatile("movzbl (%0), %%ecx\\n\\tmov %1, %%rdi\\n\\txor %%eax, %%eax\\n\\tcld\\n\\trep stosb" : : "r"(p), "r"(here) : "rcx", "rdi", "rax", "memory", "cc");',
}

# ---- heap calls ----

BAD_FREES = {
    'twice': 'char *b = (char *)malloc(24); free(b); free(b);',
    'inside': 'char *b = (char *)malloc(24); free(b + 8); free(b);',
    'before': 'char *b = (char *)malloc(24); free(b - 16); free(b);',
    'stack': 'char buffer[64]; free(buffer + 16);',
    'data': 'static char data[64]; free(data + 16);',
    'low': 'free((void *)(long)0x1230);',
    'realloc_freed': 'char *b = (char *)malloc(24); free(b); sink = realloc(b, 50) != NULL;',
    'realloc_inside': 'char *b = (char *)malloc(24); sink = realloc(b + 8, 50) != NULL; free(b);',
    'realloc_then_free': 'char *b = (char *)malloc(24), *c = (char *)realloc(b, 5000); free(b); free(c);',
    'usable_of_freed': 'char *b = (char *)malloc(24); free(b); sink = malloc_usable_size(b);',
    'fishy_malloc': 'sink = malloc((size_t)one * -1) != NULL;',
    'fishy_calloc': 'sink = calloc((size_t)one, -2) != NULL;',
    'fishy_realloc': 'char *b = (char *)malloc(24); sink = realloc(b, (size_t)one * -3) != NULL; free(b);',
    'fishy_memalign': 'sink = memalign(64, (size_t)one * -4) != NULL;',
}
OVERLAPS = {
    'memcpy': 'memcpy(here + 4, here, (size_t)one * 10);',
    'mempcpy': 'mempcpy(here, here + 4, (size_t)one * 10);',
    'strcpy': 'strcpy(here, "0123456789"); strcpy(here, here + 3);',
    'strncpy': 'strcpy(here, "0123456789"); strncpy(here + 3, here, 8);',
    'stpcpy': 'strcpy(here, "0123456789"); stpcpy(here, here + 4);',
    'wmemcpy': 'wmemcpy((wchar_t *)here + 1, (wchar_t *)here, 4);',
    'memccpy': "memset(here, 'a', 40); memccpy(here + 4, here, 'x', 10);",
}
LEAKED_BY = {
    'malloc': 'malloc(33)', 'calloc': 'calloc(3, 11)', 'realloc': 'realloc(NULL, 33)', 'grown': 'realloc(malloc(3), 700)',
    'memalign': 'memalign(64, 33)', 'posix_memalign': 'aligned(33)', 'aligned_alloc': 'aligned_alloc(64, 64)',
    'valloc': 'valloc(33)', 'reallocarray': 'reallocarray(NULL, 3, 11)', 'strdup': 'strdup("thirty two bytes of text or so..")',
    'strndup': 'strndup("thirty two bytes of text or so..", 20)', 'asprintf': 'printed()', 'getline': 'line_read()',
    'realpath': 'realpath("/", NULL)', 'wcsdup': 'wcsdup(L"wide")',
}
LEAK_KINDS = {
    'definite': 'hide(GET); forget();',
    'reachable': 'kept = (char *)GET; forget();',
    'possible': 'kept = (char *)GET + 16; forget();',
    'indirect': 'char **outer = (char **)malloc(8); outer[0] = (char *)GET; hide(outer); outer = NULL; forget();',
}
CXX_HEAP = {
    'new_free': 'free(new char[24]);',
    'new_delete_array': 'int *b = new int; delete[] b;',
    'new_array_delete': 'int *b = new int[6]; delete b;',
    'malloc_delete': 'char *b = (char *)malloc(24); delete b;',
    'malloc_delete_array': 'char *b = (char *)malloc(24); delete[] b;',
    'new_realloc': 'char *b = new char[24]; free(realloc(b, 40));',
    'delete_twice': 'int *b = new int; delete b; delete b;',
    'delete_inside': 'char *b = new char[24]; delete[] (b + 8);',
    'strdup_delete': 'char *b = strdup("text"); delete b;',
    'new_leak': 'sink = (long)(new int[7]) != 0; forget();',
    'object_leak': 'sink = (long)(new Node(new Node(nullptr))) != 0; forget();',
    'string_after': 'std::string *s = new std::string(40, \'x\'); const char *c = s->data(); delete s; sink = c[3];',
    'vector_past': 'std::vector<int> v(10, 4); v.shrink_to_fit(); sink = v.data()[10];',
    'vector_grown': 'std::vector<int> v(4, 4); int *q = v.data(); v.resize(1000); sink = *q;',
    'vector_undefined': 'int *b = new int[4]; std::vector<int> v(b, b + 4); if (v[2] == 7) sink = 1; delete[] b;',
    'map_freed': 'std::map<int, int> m; m[3] = 4; int *q = &m[3]; m.erase(3); sink = *q;',
    'virtual_freed': 'Base *b = new Derived; delete b; sink = b->get();',
    'thrown_leak': 'try { sink = (long)new char[50] != 0; throw 3; } catch (int) { } forget();',
    'sort_undefined': 'int b[3]; b[0] = 1; b[1] = 2; hide(b); std::sort(b, b + 3);',
    'unique_twice': 'std::unique_ptr<int> a(new int(4)), b(a.get()); sink = *b;',
    'shared_freed': 'std::shared_ptr<int> a(new int(4)); int *q = a.get(); a.reset(); *q = 3;',
    'lambda_freed': 'int *q = new int(3); std::function<int()> f = [=] { return *q; }; delete q; sink = f();',
    'stream_undefined': 'int b[2]; hide(b); std::ostringstream out; out << (b[1] & 1);',
    'fishy_new': 'try { sink = (long)new char[(size_t)one * -5] != 0; } catch (std::bad_alloc &) { }',
}
RUST_WAYS = {
    'read_after': 'let b = vec![1u8; 40]; sink(*hide(b.as_ptr()).add(40));',
    'read_before': 'let b = vec![1u64; 4]; sink(*hide(b.as_ptr()).sub(1) as u8);',
    'write_after': 'let mut b = vec![1u32; 10]; *hide(b.as_mut_ptr()).add(10) = 3;',
    'read_freed': 'let b = vec![1u8; 40]; let p = hide(b.as_ptr()); drop(b); sink(*p.add(3));',
    'write_freed': 'let mut b = vec![1u64; 40]; let p = hide(b.as_mut_ptr()); drop(b); *p.add(3) = 5;',
    'copy_after': 'let b = vec![1u8; 40]; let mut c = [0u8; 64]; std::ptr::copy_nonoverlapping(hide(b.as_ptr()), c.as_mut_ptr(), 48); sink(c[3]);',
    'fill_after': 'let mut b = vec![1u8; 40]; std::ptr::write_bytes(hide(b.as_mut_ptr()).add(36), 7, 8);',
    'unaligned_after': 'let b = vec![1u8; 40]; sink(std::ptr::read_unaligned(hide(b.as_ptr()).add(36) as *const u64) as u8);',
    'grown': 'let mut b = vec![1u8; 40]; let p = hide(b.as_ptr()); b.resize(9000, 2); sink(*p); drop(b);',
    'undefined_if': 'let mut b: Vec<u8> = Vec::with_capacity(40); b.set_len(40); if *hide(b.as_ptr()).add(3) == 9 { sink(1); }',
    'undefined_index': 'let mut b: Vec<u8> = Vec::with_capacity(40); b.set_len(40); sink([1u8, 2, 3, 4][(*hide(b.as_ptr()).add(3) & 3) as usize]);',
    'undefined_match': 'let mut b: Vec<u32> = Vec::with_capacity(4); b.set_len(4); match *hide(b.as_ptr()) { 1 => sink(1), 900 => sink(2), _ => sink(3) }',
    'undefined_write': 'let mut b: Vec<u8> = Vec::with_capacity(40); b.set_len(40); let _ = std::io::Write::write(&mut std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap(), &b);',
    'undefined_eq': 'let mut b: Vec<u8> = Vec::with_capacity(40); b.set_len(40); if b == vec![1u8; 40] { sink(1); }',
    'forgotten_box': 'std::mem::forget(Box::new([7u8; 99]));',
    'forgotten_vec': 'std::mem::forget(vec![7u32; 33]);',
    'forgotten_string': 'std::mem::forget(String::from("a text that nobody frees any more"));',
    'forgotten_tree': 'std::mem::forget(Box::new((Box::new(1u64), vec![2u8; 31])));',
    'cycle': 'struct N(std::cell::RefCell<Option<std::rc::Rc<N>>>); let a = std::rc::Rc::new(N(Default::default())); *a.0.borrow_mut() = Some(a.clone());',
    'dropped_twice': 'let b = Box::new(5u64); let p = Box::into_raw(b); drop(Box::from_raw(p)); drop(Box::from_raw(p));',
    'dropped_inside': 'let p = Box::into_raw(Box::new([5u64; 4])) as *mut u64; std::mem::forget(p); free(p.add(1) as *mut u8);',
    'freed_by_c': 'let p = malloc(24); free(p); free(p);',
    'c_leak': 'malloc(77); forget();',
    'thread_result': 'let p = hide(std::thread::spawn(|| Box::into_raw(Box::new(4u64)) as usize).join().unwrap() as *const u64); drop(Box::from_raw(p as *mut u64)); sink(*p as u8);',
}
