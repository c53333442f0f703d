/* What linkgauge's memory_stream_* are compared with: STREAM's four loops as STREAM defines them,
 * over doubles and by OpenMP threads, and loops of the check's own that only read or only write.
 * Built with -O3 -march=native -fopenmp -fno-tree-loop-distribute-patterns: otherwise gcc makes a
 * call of memcpy of the copy. `memcpy` and `memset` are the C library's, a slice for each thread. */
#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const double SCALAR = 3.0;

typedef struct {
  double *a;
  const double *b;
  const double *c;
  ptrdiff_t count;
} Arrays;

/* Each thread's share of a pass; what it read. */
typedef uint64_t Pass(Arrays arrays);

static uint64_t copy(Arrays arrays) {
  double *restrict a = arrays.a;
  const double *restrict b = arrays.b;
#pragma omp for nowait
  for (ptrdiff_t j = 0; j < arrays.count; j++) a[j] = b[j];
  return 0;
}

static uint64_t scale(Arrays arrays) {
  double *restrict a = arrays.a;
  const double *restrict b = arrays.b;
#pragma omp for nowait
  for (ptrdiff_t j = 0; j < arrays.count; j++) a[j] = SCALAR * b[j];
  return 0;
}

static uint64_t add(Arrays arrays) {
  double *restrict a = arrays.a;
  const double *restrict b = arrays.b, *restrict c = arrays.c;
#pragma omp for nowait
  for (ptrdiff_t j = 0; j < arrays.count; j++) a[j] = b[j] + c[j];
  return 0;
}

static uint64_t triad(Arrays arrays) {
  double *restrict a = arrays.a;
  const double *restrict b = arrays.b, *restrict c = arrays.c;
#pragma omp for nowait
  for (ptrdiff_t j = 0; j < arrays.count; j++) a[j] = b[j] + SCALAR * c[j];
  return 0;
}

/* Integers: a compiler may not sum numbers of floating point side by side. */
static uint64_t read_all(Arrays arrays) {
  const uint64_t *b = (const uint64_t *)arrays.b;
  uint64_t sum = 0;
#pragma omp for nowait
  for (ptrdiff_t j = 0; j < arrays.count; j++) sum += b[j];
  return sum;
}

static uint64_t write_all(Arrays arrays) {
  double *restrict a = arrays.a;
#pragma omp for nowait
  for (ptrdiff_t j = 0; j < arrays.count; j++) a[j] = SCALAR;
  return 0;
}

static Arrays own_part(Arrays arrays) {
  const ptrdiff_t each = arrays.count / omp_get_num_threads();
  const ptrdiff_t first = each * omp_get_thread_num();
  const int is_last = omp_get_thread_num() == omp_get_num_threads() - 1;
  const ptrdiff_t count = is_last ? arrays.count - first : each;
  return (Arrays){arrays.a + first, arrays.b + first, arrays.c + first, count};
}

static uint64_t copy_libc(Arrays arrays) {
  const Arrays own = own_part(arrays);
  memcpy(own.a, own.b, (size_t)own.count * sizeof(double));
  return 0;
}

static uint64_t write_libc(Arrays arrays) {
  const Arrays own = own_part(arrays);
  memset(own.a, 0x5a, (size_t)own.count * sizeof(double));
  return 0;
}

static const struct {
  const char *kind;
  const char *name;
  Pass *pass;
} LOOPS[] = {
    {"copy", "loop", copy},           {"scale", "loop", scale},
    {"add", "loop", add},             {"triad", "loop", triad},
    {"read", "loop", read_all},       {"write", "loop", write_all},
    {"copy", "memcpy", copy_libc},    {"write", "memset", write_libc},
};

enum { COUNT = sizeof LOOPS / sizeof *LOOPS };

/* The name of loop `number`, and what it does; null after the last. */
const char *loop(int number, const char **kind) {
  if (number >= COUNT) return NULL;
  *kind = LOOPS[number].kind;
  return LOOPS[number].name;
}

/* Seconds of a pass of `threads` threads over arrays of `count` numbers, the mean over threads and
 * `passes`, behind one that is not timed. */
double run_loop(int number, double *a, const double *b, const double *c, long count, int threads,
                int passes, uint64_t *sum) {
  const Arrays arrays = {a, b, c, count};
  double seconds = 0;
  *sum = 0;
#pragma omp parallel num_threads(threads)
  {
    uint64_t own = LOOPS[number].pass(arrays);
    const double begin = omp_get_wtime();
    for (int i = 0; i < passes; i++) own = LOOPS[number].pass(arrays);
    const double end = omp_get_wtime();
#pragma omp critical
    {
      seconds += (end - begin) / passes / threads;
      *sum += own;
    }
  }
  return seconds;
}
