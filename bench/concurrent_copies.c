/* What linkgauge's totals are compared with: written for the check, and sharing no code with them.
 * Threads copy by memcpy in small pieces and note the time after each; from these times the bytes
 * are counted that move while all transfers run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PIECE = 256 << 10, LINE = 64 };

typedef struct {
  char *to;
  const char *from;
  size_t size;
  const int *cpus; /* of its threads, each of which copies a part */
  int count;
} Transfer;

typedef struct {
  char *to;
  const char *from;
  size_t size, pieces;
  int cpu, loops;
  pthread_barrier_t *gate;
  double begin;
  double *ends; /* of each piece */
} Thread;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static size_t length(const Thread *one, size_t piece) {
  const size_t offset = piece * PIECE;
  return one->size - offset < PIECE ? one->size - offset : PIECE;
}

static void *live(void *argument) {
  Thread *self = argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)self->cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  pthread_barrier_wait(self->gate);
  double *end = self->ends;
  self->begin = now();
  for (int loop = 0; loop < self->loops; loop++) {
    for (size_t piece = 0; piece < self->pieces; piece++) {
      memcpy(self->to + piece * PIECE, self->from + piece * PIECE, length(self, piece));
      *end++ = now();
    }
  }
  return NULL;
}

static double last(const Thread *one) { return one->ends[one->pieces * (size_t)one->loops - 1]; }

/* Bytes of the pieces that end between these moments. */
static double within(const Thread *one, double begin, double end) {
  double bytes = 0;
  for (size_t i = 0; i < one->pieces * (size_t)one->loops; i++) {
    if (one->ends[i] > begin && one->ends[i] <= end) {
      bytes += (double)length(one, i % one->pieces);
    }
  }
  return bytes;
}

/* Runs all transfers at the same time, `loops` times each, and returns the bytes/s of all of them
 * together from the latest start of a transfer to the earliest end of one; 0 if they never all ran,
 * and below 0 without memory. */
double run(const Transfer *transfers, int count, int loops) {
  int threads = 0;
  for (int t = 0; t < count; t++) threads += transfers[t].count;
  Thread *all = calloc((size_t)threads, sizeof *all);
  pthread_t *handles = calloc((size_t)threads, sizeof *handles);
  pthread_barrier_t gate;
  if (!all || !handles) return -1;
  pthread_barrier_init(&gate, NULL, (unsigned)threads);
  Thread *next = all;
  for (int t = 0; t < count; t++) {
    const Transfer *own = transfers + t;
    const size_t share = own->size / (size_t)own->count / LINE * LINE;
    for (int i = 0; i < own->count; i++, next++) {
      const size_t offset = (size_t)i * share;
      const size_t size = i == own->count - 1 ? own->size - offset : share;
      const size_t pieces = (size + PIECE - 1) / PIECE, marks = pieces * (size_t)loops;
      *next = (Thread){own->to + offset, own->from + offset, size, pieces, own->cpus[i], loops,
                       &gate, 0, malloc(marks * sizeof(double))};
      if (!next->ends) return -1;
      memset(next->ends, 1, marks * sizeof(double)); /* no page fault while it counts */
    }
  }
  for (int i = 0; i < threads; i++) {
    if (pthread_create(&handles[i], NULL, live, &all[i]) != 0) abort();
  }
  for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
  double latest = 0, earliest = 0, bytes = 0;
  next = all;
  for (int t = 0; t < count; t++) {
    double begin = next->begin, end = last(next);
    for (int i = 0; i < transfers[t].count; i++, next++) {
      if (next->begin < begin) begin = next->begin;
      if (last(next) > end) end = last(next);
    }
    if (t == 0 || begin > latest) latest = begin;
    if (t == 0 || end < earliest) earliest = end;
  }
  for (int i = 0; i < threads; i++) {
    bytes += within(&all[i], latest, earliest);
    free(all[i].ends);
  }
  pthread_barrier_destroy(&gate);
  free(all);
  free(handles);
  return earliest > latest ? bytes / (earliest - latest) : 0;
}

/* Memory in pages of 4 KiB that are there; null where there is none. */
char *allocate(size_t size) {
  char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  madvise(memory, size, MADV_NOHUGEPAGE);
  memset(memory, 1, size);
  return memory;
}

void release(char *memory, size_t size) { munmap(memory, size); }
