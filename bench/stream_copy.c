/* The copy kernel of STREAM (J. D. McCalpin, https://www.cs.virginia.edu/stream/), written anew.
 *
 * usage: stream_copy ELEMENTS REPETITIONS
 * Prints the median and the best bandwidth in bytes a second, counted as STREAM counts: a copy both
 * reads and writes, so each element is 16 bytes. As in STREAM the first repetition is not counted,
 * and the arrays are ordinary pages, first touched by the threads that copy them. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *left, const void *right) {
  const double difference = *(const double *)left - *(const double *)right;
  return (difference > 0) - (difference < 0);
}

static double copy(double *restrict c, const double *restrict a, long elements) {
  const double begin = omp_get_wtime();
#pragma omp parallel for
  for (long j = 0; j < elements; j++) c[j] = a[j];
  return omp_get_wtime() - begin;
}

int main(int argc, char **argv) {
  const long elements = argc == 3 ? atol(argv[1]) : 0;
  const int repetitions = argc == 3 ? atoi(argv[2]) : 0;
  if (elements < 1 || repetitions < 1) {
    fprintf(stderr, "usage: %s ELEMENTS REPETITIONS\n", argv[0]);
    return 2;
  }
  const size_t bytes = (size_t)elements * sizeof(double);
  double *a = malloc(bytes);
  double *c = malloc(bytes);
  double *seconds = malloc((size_t)repetitions * sizeof(double));
  if (!a || !c || !seconds) {
    fprintf(stderr, "stream_copy: out of memory\n");
    return 1;
  }
#pragma omp parallel for
  for (long j = 0; j < elements; j++) {
    a[j] = (double)j;
    c[j] = 0.0;
  }
  copy(c, a, elements);
  for (int k = 0; k < repetitions; k++) {
    a[k % elements] += 1.0;
    seconds[k] = copy(c, a, elements);
  }
  for (long j = 0; j < elements; j++) {
    if (c[j] != a[j]) {
      fprintf(stderr, "stream_copy: element %ld is wrong\n", j);
      return 1;
    }
  }
  qsort(seconds, (size_t)repetitions, sizeof *seconds, by_value);
  const double counted = 2.0 * (double)bytes;
  printf("%.0f %.0f\n", counted / seconds[repetitions / 2], counted / seconds[0]);
  free(a);
  free(c);
  free(seconds);
  return 0;
}
