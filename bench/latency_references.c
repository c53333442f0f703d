/* What linkgauge's latencies are compared with: a plain pointer chase and a compare-and-swap
 * ping-pong, written for the check, and sharing no code with what they check. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { LINE = 64, WITHIN = 32 }; /* The pointers lie in the middle of lines, beside linkgauge's. */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  return sched_setaffinity(0, sizeof set, &set);
}

static uint64_t state = 88172645463325252u;
static uint64_t next_random(void) { /* xorshift64 (Marsaglia, 2003) */
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/* One cycle through all lines of the memory: they are shuffled, and each points to the next one.
 * Returns how many hops lead back to the first; 0 where there is no memory for the order. */
uint64_t make_cycle(char *memory, size_t size) {
  const size_t lines = size / LINE;
  uint32_t *order = malloc(lines * sizeof *order);
  if (!order) return 0;
  for (size_t i = 0; i < lines; i++) order[i] = (uint32_t)i;
  for (size_t i = lines - 1; i > 0; i--) {
    const size_t other = next_random() % (i + 1);
    const uint32_t kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (size_t i = 0; i < lines; i++) {
    char *to = memory + (size_t)order[(i + 1) % lines] * LINE + WITHIN;
    *(char **)(memory + (size_t)order[i] * LINE + WITHIN) = to;
  }
  free(order);
  uint64_t hops = 1;
  for (char *at = *(char **)(memory + WITHIN); at != memory + WITHIN; at = *(char **)at) hops++;
  return hops;
}

typedef struct {
  char *at;
  uint64_t hops;
  int cpu, pinned;
  double seconds;
} Chase;

static void *chase_there(void *argument) {
  Chase *self = argument;
  self->pinned = pin(self->cpu);
  char *at = self->at;
  const double begin = now();
  for (uint64_t hop = 0; hop < self->hops; hop++) at = *(char **)at;
  self->seconds = now() - begin;
  self->at = at;
  return NULL;
}

/* Seconds of so many hops from the first line on; negative where the CPU cannot be had. */
double chase(char *memory, uint64_t hops, int cpu) {
  Chase one = {memory + WITHIN, hops, cpu, 0, 0};
  pthread_t thread;
  if (pthread_create(&thread, NULL, chase_there, &one) != 0) return -1;
  pthread_join(thread, NULL);
  return one.pinned == 0 && one.at ? one.seconds : -1;
}

static _Alignas(4096) _Atomic uint32_t ball;

typedef struct {
  uint32_t mine, theirs;
  uint64_t trips;
  int cpu, pinned;
  pthread_barrier_t *gate;
  double seconds;
} Player;

static void *play(void *argument) {
  Player *self = argument;
  self->pinned = pin(self->cpu);
  pthread_barrier_wait(self->gate);
  double begin = 0;
  for (uint64_t trip = 0; trip < self->trips + 1000; trip++) {
    if (trip == 1000) begin = now();
    uint32_t expected = self->mine;
    while (!atomic_compare_exchange_strong(&ball, &expected, self->theirs)) expected = self->mine;
  }
  self->seconds = now() - begin;
  return NULL;
}

/* Seconds of so many round trips between two CPUs; negative where one cannot be had. */
double ping_pong(int first, int second, uint64_t trips) {
  pthread_barrier_t gate;
  pthread_barrier_init(&gate, NULL, 2);
  Player players[2] = {{0, 1, trips, first, 0, &gate, 0}, {1, 0, trips, second, 0, &gate, 0}};
  pthread_t threads[2];
  ball = 0;
  for (int i = 0; i < 2; i++) {
    if (pthread_create(&threads[i], NULL, play, &players[i]) != 0) abort();
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&gate);
  return players[0].pinned == 0 && players[1].pinned == 0 ? players[0].seconds : -1;
}
