/* Loaded into a guest's kernel (LD_PRELOAD), which hands a process its registers back in a buffer of 2,696 bytes.
 *
 * Where the processor has more of them (AMX adds 8 KiB), Linux takes all or nothing: EFAULT, and the guest panics
 * (x86's xstateregs_set). The rest is put behind them as the process has it; a guest's programs never asked for the
 * permission to use it (arch_prctl(2), ARCH_REQ_XCOMP_PERM), so it is as it was in the beginning.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

static long (*system_ptrace)(enum __ptrace_request, pid_t, void *, void *);
/* Not on the stack, of which that kernel has little; it traces from one thread. */
static char all[1 << 16];

__attribute__((constructor)) static void find(void)
{
    system_ptrace = dlsym(RTLD_NEXT, "ptrace");
}

long ptrace(enum __ptrace_request request, ...)
{
    va_list rest;
    va_start(rest, request);
    pid_t pid = va_arg(rest, pid_t);
    void *address = va_arg(rest, void *);
    void *data = va_arg(rest, void *);
    va_end(rest);

    if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) {
        const struct iovec *part = data;
        struct iovec whole = {all, sizeof all};
        if (system_ptrace(PTRACE_GETREGSET, pid, address, &whole) == 0 && part->iov_len < whole.iov_len) {
            memcpy(all, part->iov_base, part->iov_len);
            return system_ptrace(request, pid, address, &whole);
        }
    }
    return system_ptrace(request, pid, address, data);
}
