/* A disk whose flushes take longer: sleeps SLOW_FLUSH_US microseconds before every fsync and fdatasync.

       cc -shared -fPIC -O2 -o slow_flush.so slow_flush.c -ldl
       LD_PRELOAD=./slow_flush.so SLOW_FLUSH_US=1000 python ...
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

typedef int (*flush)(int);

static void sleep_first(void) {
    const char *text = getenv("SLOW_FLUSH_US");
    long us = text ? strtol(text, NULL, 10) : 0;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (us > 0 && nanosleep(&left, &left) == -1 && errno == EINTR) {
    }
}

int fsync(int file) {
    sleep_first();
    return ((flush)dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    sleep_first();
    return ((flush)dlsym(RTLD_NEXT, "fdatasync"))(file);
}
