/*
 * sync-shim: how much of each file would survive a power loss.
 *
 * Preloaded into redis-server. A killed process loses nothing that it has written, because the kernel still has it,
 * but a power loss leaves only what was synced. So each fsync and fdatasync records the length that the file had when
 * it was called, and the harness cuts the file to that length. Syncs can be slowed down, so that a kill hits the
 * server between a write and its sync.
 *
 * HOLDFAST_SYNC_FILE names a file of 8 + 64 * 16 bytes, unsigned 64-bit numbers in the machine's byte order:
 *   0            the added duration of each sync, in microseconds
 *   8 + 16 * i   the inode of a file; 0 if the place is free
 *   16 + 16 * i  its length at the last sync that returned
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLACES 64

static volatile uint64_t *words;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void attach(void) {
  const char *path = getenv("HOLDFAST_SYNC_FILE");
  if (path == NULL) return;
  int file = open(path, O_RDWR | O_CLOEXEC);
  void *mapped =
      file < 0 ? MAP_FAILED : mmap(NULL, 8 + PLACES * 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  words = mapped;
}

static void note(uint64_t inode, uint64_t length) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < PLACES; i++) {
    volatile uint64_t *place = words + 1 + 2 * i;
    if (place[0] != inode && place[0] != 0) continue;
    /* Syncs of two threads may return out of order. A shorter length only makes the loss larger. */
    place[1] = length;
    place[0] = inode;
    pthread_mutex_unlock(&lock);
    return;
  }
  /* A file that is not in the list would be cut to nothing although it was synced. */
  abort();
}

static int sync_and_note(long call, int file) {
  struct stat before;
  int is_known = words != NULL && fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  if (is_known && words[0] != 0) {
    struct timespec pause = {words[0] / 1000000, words[0] % 1000000 * 1000};
    nanosleep(&pause, NULL);
  }
  int failed = (int)syscall(call, file);
  /* The earlier length, because data written meanwhile may not be on the disk. */
  if (is_known && failed == 0) note(before.st_ino, before.st_size);
  return failed;
}

int fsync(int file) { return sync_and_note(SYS_fsync, file); }

int fdatasync(int file) { return sync_and_note(SYS_fdatasync, file); }
