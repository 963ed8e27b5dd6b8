/*
 * clock-shim: lets the harness control a server's wall clock.
 *
 * Preloaded into redis-server. Each reading of the realtime clock is the kernel's, from a raw system call, plus an
 * offset in a memory-mapped file. Writing that file steps the clock; nothing else changes for the server. The monotonic
 * clock is untouched. Without HOLDFAST_CLOCK_FILE, the clock is the real one.
 *
 * The file: two signed 64-bit numbers in the machine's byte order, in microseconds.
 *   0  offset, added to every reading
 *   8  the reading itself while the clock is stopped; 0 while it runs
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *words;

__attribute__((constructor)) static void attach(void) {
  const char *path = getenv("HOLDFAST_CLOCK_FILE");
  if (path == NULL) return;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
  /* With a clock that cannot be changed, a run would prove nothing. */
  if (mapped == MAP_FAILED) abort();
  close(file);
  words = mapped;
}

static int read_bent(clockid_t clock, struct timespec *out) {
  int failed = (int)syscall(SYS_clock_gettime, clock, out);
  if (failed || words == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t frozen = words[1];
  int64_t us = frozen != 0 ? frozen : (int64_t)out->tv_sec * 1000000 + out->tv_nsec / 1000 + words[0];
  out->tv_sec = us / 1000000;
  out->tv_nsec = us % 1000000 * 1000;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *out) { return read_bent(clock, out); }

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (read_bent(CLOCK_REALTIME, &now) != 0) return -1;
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  if (read_bent(CLOCK_REALTIME, &now) != 0) return (time_t)-1;
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
