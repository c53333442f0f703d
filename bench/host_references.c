/* What linkgauge's host kernels are compared with: written for the check, and sharing no code with
 * them (gcc must leave loops loops: -fno-tree-loop-distribute-patterns). Threads are pinned, one for each CPU, and a pass is timed from the first one's begin to the
 * last one's end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { PAGE = 4096, LINE = 64, HUGE_PAGE = 2 << 20 };

typedef uint64_t Pass(char *to, const char *from, size_t size);

static uint64_t libc_copy(char *to, const char *from, size_t size) {
  memcpy(to, from, size);
  return 0;
}

static uint64_t loop_copy(char *to, const char *from, size_t size) {
  uint64_t *restrict out = (uint64_t *)to;
  const uint64_t *restrict in = (const uint64_t *)from;
  for (size_t i = 0; i < size / 8; i++) out[i] = in[i];
  return 0;
}

static uint64_t libc_write(char *to, const char *from, size_t size) {
  (void)from;
  memset(to, 0x5a, size);
  return 0;
}

static uint64_t loop_write(char *to, const char *from, size_t size) {
  (void)from;
  uint64_t *out = (uint64_t *)to;
  for (size_t i = 0; i < size / 8; i++) out[i] = 0x1234567890abcdef;
  return 0;
}

static uint64_t loop_read(char *to, const char *from, size_t size) {
  (void)to;
  const uint64_t *in = (const uint64_t *)from;
  uint64_t sum = 0;
  for (size_t i = 0; i < size / 8; i++) sum += in[i];
  return sum;
}

/* Eight sums side by side. */
static uint64_t wide_read(char *to, const char *from, size_t size) {
  (void)to;
  const uint64_t *in = (const uint64_t *)from;
  uint64_t sums[8] = {0};
  for (size_t i = 0; i + 8 <= size / 8; i += 8) {
    for (size_t k = 0; k < 8; k++) sums[k] += in[i + k];
  }
  return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

/* A line of each of eight pages in turn. */
static uint64_t paged_read(char *to, const char *from, size_t size) {
  uint64_t sum = 0;
  size_t at = 0;
  for (; at + 8 * PAGE <= size; at += 8 * PAGE) {
    for (size_t line = 0; line < PAGE; line += LINE) {
      for (size_t page = 0; page < 8; page++) {
        const uint64_t *in = (const uint64_t *)(from + at + page * PAGE + line);
        for (size_t k = 0; k < LINE / 8; k++) sum += in[k];
      }
    }
  }
  return sum + loop_read(to, from + at, size - at);
}

#if defined(__x86_64__)
static uint64_t rep_copy(char *to, const char *from, size_t size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
  return 0;
}

static uint64_t rep_write(char *to, const char *from, size_t size) {
  (void)from;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(0x5a) : "memory");
  return 0;
}

static inline void stream_line(char *to, __m128i a, __m128i b, __m128i c, __m128i d) {
  _mm_stream_si128((__m128i *)to, a);
  _mm_stream_si128((__m128i *)to + 1, b);
  _mm_stream_si128((__m128i *)to + 2, c);
  _mm_stream_si128((__m128i *)to + 3, d);
}

static inline void copy_line(char *to, const char *from) {
  const __m128i *in = (const __m128i *)from;
  stream_line(to, _mm_loadu_si128(in), _mm_loadu_si128(in + 1), _mm_loadu_si128(in + 2),
              _mm_loadu_si128(in + 3));
}

static inline void write_line(char *to) {
  const __m128i word = _mm_set1_epi64x(0x1234567890abcdef);
  stream_line(to, word, word, word, word);
}

static uint64_t stream_copy(char *to, const char *from, size_t size) {
  for (size_t at = 0; at + LINE <= size; at += LINE) copy_line(to + at, from + at);
  _mm_sfence();
  return 0;
}

static uint64_t stream_write(char *to, const char *from, size_t size) {
  (void)from;
  for (size_t at = 0; at + LINE <= size; at += LINE) write_line(to + at);
  _mm_sfence();
  return 0;
}

static uint64_t paged_copy(char *to, const char *from, size_t size) {
  size_t at = 0;
  for (; at + 8 * PAGE <= size; at += 8 * PAGE) {
    for (size_t line = at; line < at + PAGE; line += LINE) {
      for (size_t page = 0; page < 8; page++) {
        copy_line(to + line + page * PAGE, from + line + page * PAGE);
      }
    }
  }
  return stream_copy(to + at, from + at, size - at);
}

static uint64_t paged_write(char *to, const char *from, size_t size) {
  size_t at = 0;
  for (; at + 8 * PAGE <= size; at += 8 * PAGE) {
    for (size_t line = at; line < at + PAGE; line += LINE) {
      for (size_t page = 0; page < 8; page++) write_line(to + line + page * PAGE);
    }
  }
  return stream_write(to + at, from, size - at);
}
#endif

static const struct {
  const char *name;
  char op; /* Read, Write, Copy */
  Pass *pass;
} REFERENCES[] = {
    {"loop", 'r', loop_read},
    {"8 sums", 'r', wide_read},
    {"8 pages", 'r', paged_read},
    {"memset", 'w', libc_write},
    {"loop", 'w', loop_write},
    {"memcpy", 'c', libc_copy},
    {"loop", 'c', loop_copy},
#if defined(__x86_64__)
    {"rep stosb", 'w', rep_write},
    {"nt", 'w', stream_write},
    {"nt 8 pages", 'w', paged_write},
    {"rep movsb", 'c', rep_copy},
    {"nt", 'c', stream_copy},
    {"nt 8 pages", 'c', paged_copy},
#endif
};

enum { COUNT = sizeof REFERENCES / sizeof *REFERENCES };

/* The name of reference `number`, behind the letter of its operation; null after the last. */
const char *reference(int number, char *op) {
  if (number >= COUNT) return NULL;
  *op = REFERENCES[number].op;
  return REFERENCES[number].name;
}

typedef struct {
  Pass *pass;
  char *to;
  const char *from;
  size_t size;
  int cpu;
  pthread_barrier_t *gate;
  double begin, end;
  uint64_t sum;
} Thread;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *live(void *argument) {
  Thread *self = argument;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)self->cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  pthread_barrier_wait(self->gate);
  self->begin = now();
  self->sum = self->pass(self->to, self->from, self->size);
  self->end = now();
  return NULL;
}

/* Seconds of a pass over `size` bytes by a thread on each CPU; negative where it cannot be. A
 * multiple of pages for each thread. */
double run(int number, char *to, const char *from, size_t size, const int *cpus, int count,
           uint64_t *sum) {
  Thread *threads = calloc((size_t)count, sizeof *threads);
  pthread_t *handles = calloc((size_t)count, sizeof *handles);
  pthread_barrier_t gate;
  if (!threads || !handles || number >= COUNT) return -1;
  pthread_barrier_init(&gate, NULL, (unsigned)count);
  const size_t share = size / (size_t)count / PAGE * PAGE;
  for (int i = 0; i < count; i++) {
    const size_t offset = (size_t)i * share;
    const size_t own = i == count - 1 ? size - offset : share;
    threads[i] = (Thread){REFERENCES[number].pass, to + offset, from + offset, own, cpus[i],
                          &gate, 0, 0, 0};
    if (pthread_create(&handles[i], NULL, live, &threads[i]) != 0) abort();
  }
  double begin = 0, end = 0;
  *sum = 0;
  for (int i = 0; i < count; i++) {
    pthread_join(handles[i], NULL);
    if (i == 0 || threads[i].begin < begin) begin = threads[i].begin;
    if (i == 0 || threads[i].end > end) end = threads[i].end;
    *sum += threads[i].sum;
  }
  pthread_barrier_destroy(&gate);
  free(threads);
  free(handles);
  return end - begin;
}

/* Memory in pages of 4 KiB, or in huge ones where the system has them; null where there is none. */
char *allocate(size_t size, int huge) {
  char *memory = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  const uintptr_t past = (uintptr_t)memory % HUGE_PAGE;
  memory += past ? HUGE_PAGE - past : 0;
  madvise(memory, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return memory;
}
