/* Preloaded, it lets a test make the next flush of a file fail as a broken disk would. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

static int failing;

void fail_next_flush(void) { failing = 1; }

static int flush(const char *name, int fd)
{
    if (failing) {
        failing = 0;
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return flush("fsync", fd); }

int fdatasync(int fd) { return flush("fdatasync", fd); }
