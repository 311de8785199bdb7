/* Preloaded, it records what a process writes to the files of one folder, in order, and when it flushes them.
 *
 * Each record is a line `KIND NAME OFFSET LENGTH` and then LENGTH bytes: w(rite), t(runcate), s(ync), u(nlink), and what
 * the process says by `note`. The folder and the file to record in are RECORDED_FOLDER and RECORD.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define NEXT(name) dlsym(RTLD_NEXT, name)

static int out = -1;

static const char *name_in_folder(const char *path)
{
    const char *folder = getenv("RECORDED_FOLDER");
    size_t length = folder ? strlen(folder) : 0;
    return length && !strncmp(path, folder, length) && path[length] == '/' ? path + length + 1 : NULL;
}

static void record(char kind, const char *name, const void *data, long long offset, size_t length)
{
    ssize_t (*put)(int, const void *, size_t) = NEXT("write");
    char head[PATH_MAX + 64];
    int size;
    if (out < 0)
        out = open(getenv("RECORD"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    size = snprintf(head, sizeof head, "%c %s %lld %zu\n", kind, name, offset, length);
    if (put(out, head, size) != size || put(out, data, length) != (ssize_t)length)
        abort();
}

static void record_fd(char kind, int fd, const void *data, long long offset, size_t length)
{
    char link[64], path[PATH_MAX];
    ssize_t size;
    const char *name;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return;
    path[size] = 0;
    if ((name = name_in_folder(path)))
        record(kind, name, data, offset, length);
}

void note(long long number) { record('n', "-", "", number, 0); }

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
    ssize_t done = ((ssize_t (*)(int, const void *, size_t, off_t))NEXT("pwrite"))(fd, data, length, offset);
    if (done > 0)
        record_fd('w', fd, data, offset, done);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset)
{
    ssize_t done = ((ssize_t (*)(int, const void *, size_t, off64_t))NEXT("pwrite64"))(fd, data, length, offset);
    if (done > 0)
        record_fd('w', fd, data, offset, done);
    return done;
}

int ftruncate(int fd, off_t length)
{
    int failed = ((int (*)(int, off_t))NEXT("ftruncate"))(fd, length);
    if (!failed)
        record_fd('t', fd, "", length, 0);
    return failed;
}

int ftruncate64(int fd, off64_t length)
{
    int failed = ((int (*)(int, off64_t))NEXT("ftruncate64"))(fd, length);
    if (!failed)
        record_fd('t', fd, "", length, 0);
    return failed;
}

static int flush(const char *call, int fd)
{
    int failed = ((int (*)(int))NEXT(call))(fd);
    if (!failed)
        record_fd('s', fd, "", 0, 0);
    return failed;
}

int fsync(int fd) { return flush("fsync", fd); }

int fdatasync(int fd) { return flush("fdatasync", fd); }

int unlink(const char *path)
{
    int failed = ((int (*)(const char *))NEXT("unlink"))(path);
    const char *name = name_in_folder(path);
    if (!failed && name)
        record('u', name, "", 0, 0);
    return failed;
}
