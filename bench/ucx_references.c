/* What linkgauge's copies by UCX are compared with: a program of its own, with UCX's headers, between
 * two processes of this machine, that puts or gets the same number of bytes over and over.
 *
 *     ucx_references MEMORY SIZE LOOPS SECONDS put|get
 *
 * MEMORY is that of both processes: `huge` (anonymous, in huge pages), `small` (anonymous, in small
 * ones), `sysv` (a segment of System V, as ucx_perftest has) or `cuda` (of GPU 0, and of GPU 1 in
 * the process that only listens). Each process touches its own. At most 128 copies are under way, as linkgauge has it.
 * A sample is so many copies and a flush. Prints the median of the samples in bytes/s; every byte is
 * checked at the end. UCX_TLS and the like count as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { WINDOW = 128, LEAST_SAMPLES = 5, MOST_SAMPLES = 4096, MOST_BYTES = 4096, HUGE_PAGE = 2 << 20 };
static const char *whose = "mover";

static void fail(const char *format, ...) {
  va_list words;
  va_start(words, format);
  fprintf(stderr, "ucx_references (%s): ", whose);
  vfprintf(stderr, format, words);
  fprintf(stderr, "\n");
  va_end(words);
  exit(1);
}

static void check(const char *call, ucs_status_t status) {
  if (status != UCS_OK) fail("%s: %s", call, ucs_status_string(status));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* What both processes see. */
struct shared {
  _Atomic int there, busy, done;
  size_t address_size, key_size;
  uint64_t buffer;
  char address[MOST_BYTES], key[MOST_BYTES];
};

/* The driver's functions, without its headers. */
static uintptr_t driver(const char *name) {
  static void *library;
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW);
  void *found = library ? dlsym(library, name) : NULL;
  if (!found) fail("no %s: %s", name, dlerror());
  return (uintptr_t)found;
}

#define CUDA(name, types, ...)                                        \
  do {                                                                \
    int status = ((int(*) types)driver(#name))(__VA_ARGS__);          \
    if (status) fail("%s: %d", #name, status);                        \
  } while (0)

static void *device_memory(int number, size_t size) {
  int device;
  void *context;
  uint64_t address;
  CUDA(cuInit, (unsigned), 0);
  CUDA(cuDeviceGet, (int *, int), &device, number);
  CUDA(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
  CUDA(cuCtxSetCurrent, (void *), context);
  CUDA(cuMemAlloc_v2, (uint64_t *, size_t), &address, size);
  return (void *)address;
}

static void *host_memory(const char *kind, size_t size) {
  if (!strcmp(kind, "sysv")) {
    int segment = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    void *address = shmat(segment, NULL, 0);
    shmctl(segment, IPC_RMID, NULL); /* gone with the last who is attached */
    if (address == (void *)-1) fail("shmat: %s", strerror(errno));
    return address;
  }
  size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; /* or its end is in small ones */
  int rights = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char *begin = mmap(NULL, whole + HUGE_PAGE, rights, flags, -1, 0);
  if (begin == MAP_FAILED) fail("mmap: %s", strerror(errno));
  begin += (HUGE_PAGE - (uintptr_t)begin % HUGE_PAGE) % HUGE_PAGE;
  madvise(begin, whole, strcmp(kind, "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  mlock(begin, whole); /* if the limit lets it: of a part of a huge page it would break that up */
  return begin;
}

static uint64_t word(uint64_t at, uint64_t seed) { return (at + seed) * 0x9e3779b97f4a7c15u; }

static void fill(void *memory, size_t size, uint64_t seed, int on_device) {
  uint64_t *words = on_device ? malloc(size) : memory;
  for (size_t at = 0; at < size / 8; at++) words[at] = word(at, seed);
  if (!on_device) return;
  CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), (uint64_t)memory, words, size);
  free(words);
}

static void verify(void *memory, size_t size, uint64_t seed, int on_device) {
  uint64_t *words = on_device ? malloc(size) : memory;
  if (on_device) CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), words, (uint64_t)memory, size);
  for (size_t at = 0; at < size / 8; at++)
    if (words[at] != word(at, seed)) fail("wrong bytes at %zu", at * 8);
}

struct side {
  ucp_context_h context;
  ucp_worker_h worker;
  ucp_mem_h handle;
  void *buffer;
};

static struct side open_side(const char *kind, int number, size_t size, uint64_t seed) {
  int on_device = !strcmp(kind, "cuda");
  struct side own;
  own.buffer = on_device ? device_memory(number, size) : host_memory(kind, size);
  fill(own.buffer, size, seed, on_device);
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
  ucp_worker_params_t plain = {0};
  ucp_mem_map_params_t map = {
      .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                    UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
      .address = own.buffer,
      .length = size,
      .memory_type = on_device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST,
  };
  check("ucp_init", ucp_init(&params, NULL, &own.context));
  check("ucp_worker_create", ucp_worker_create(own.context, &plain, &own.worker));
  check("ucp_mem_map", ucp_mem_map(own.context, &map, &own.handle));
  return own;
}

static void put_into(char *to, size_t *to_size, const void *from, size_t size) {
  if (size > MOST_BYTES) fail("an address or a key of %zu bytes", size);
  memcpy(to, from, size);
  *to_size = size;
}

/* Serves its memory until the other process is done. */
static void listen_until_done(struct shared *shared, struct side own) {
  ucp_address_t *address;
  size_t size;
  void *key;
  check("ucp_worker_get_address", ucp_worker_get_address(own.worker, &address, &size));
  put_into(shared->address, &shared->address_size, address, size);
  check("ucp_rkey_pack", ucp_rkey_pack(own.context, own.handle, &key, &size));
  put_into(shared->key, &shared->key_size, key, size);
  shared->buffer = (uint64_t)own.buffer;
  shared->there = 1;
  while (!shared->done) {
    if (shared->busy)
      ucp_worker_progress(own.worker);
    else
      usleep(100);
  }
}

static void finish(struct side *own, ucs_status_ptr_t request, const char *call) {
  if (UCS_PTR_IS_ERR(request)) check(call, UCS_PTR_STATUS(request));
  if (!request) return;
  ucs_status_t status;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
    ucp_worker_progress(own->worker);
  ucp_request_free(request);
  check(call, status);
}

/* Seconds of so many copies, flush and all. Both processes rest before, as linkgauge's ranks do until
 * they start together: where others want the CPUs, who never rests gets less of them. */
static double copies(struct shared *shared, struct side *own, ucp_ep_h end, ucp_rkey_h key,
                     size_t size, int puts, long loops) {
  static void *under_way[WINDOW];
  ucp_request_param_t many = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH | UCP_OP_ATTR_FLAG_MULTI_SEND,
                              .memh = own->handle};
  ucp_request_param_t plain = {0};
  const char *call = puts ? "ucp_put_nbx" : "ucp_get_nbx";
  usleep(2000);
  shared->busy = 1;
  usleep(500);
  double begin = now();
  for (long loop = 0; loop < loops; loop++) {
    void **place = &under_way[loop % WINDOW];
    if (*place) finish(own, *place, call);
    *place = puts ? ucp_put_nbx(end, own->buffer, size, shared->buffer, key, &many)
                  : ucp_get_nbx(end, own->buffer, size, shared->buffer, key, &many);
    if (UCS_PTR_IS_ERR(*place)) finish(own, *place, call);
  }
  for (int place = 0; place < WINDOW; place++) {
    if (under_way[place]) finish(own, under_way[place], call);
    under_way[place] = NULL;
  }
  finish(own, ucp_ep_flush_nbx(end, &plain), "ucp_ep_flush_nbx");
  double seconds = now() - begin;
  shared->busy = 0;
  return seconds;
}

static int by_size(const void *one, const void *other) {
  double difference = *(const double *)one - *(const double *)other;
  return (difference > 0) - (difference < 0);
}

static void measure(struct shared *shared, struct side *own, size_t size, long loops,
                    double seconds, int puts) {
  static double times[MOST_SAMPLES];
  while (!shared->there) usleep(100);
  ucp_ep_h end;
  ucp_rkey_h key;
  ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                        .address = (ucp_address_t *)shared->address};
  check("ucp_ep_create", ucp_ep_create(own->worker, &to, &end));
  check("ucp_ep_rkey_unpack", ucp_ep_rkey_unpack(end, shared->key, &key));
  copies(shared, own, end, key, size, puts, loops);
  int count = 0;
  double begin = now();
  while (count < MOST_SAMPLES && (count < LEAST_SAMPLES || now() - begin < seconds))
    times[count++] = copies(shared, own, end, key, size, puts, loops);
  qsort(times, (size_t)count, sizeof *times, by_size);
  double median = (times[count / 2] + times[(count - 1) / 2]) / 2;
  printf("%.6g\n", (double)loops * (double)size / median);
  fflush(stdout);
}

int main(int count, char **given) {
  if (count != 6) fail("MEMORY SIZE LOOPS SECONDS put|get");
  const char *kind = given[1];
  size_t size = strtoull(given[2], NULL, 10) / 8 * 8;
  long loops = strtol(given[3], NULL, 10);
  int puts = !strcmp(given[5], "put"), on_device = !strcmp(kind, "cuda");
  struct shared *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t mover = getpid(), listener = fork();
  if (!listener) {
    whose = "listener";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != mover) return 1;
    struct side own = open_side(kind, 1, size, puts ? 2 : 1);
    listen_until_done(shared, own);
    if (puts) verify(own.buffer, size, 1, on_device);
    return 0;
  }
  struct side own = open_side(kind, 0, size, puts ? 1 : 2);
  measure(shared, &own, size, loops, strtod(given[4], NULL), puts);
  if (!puts) verify(own.buffer, size, 1, on_device);
  shared->done = 1;
  int status;
  waitpid(listener, &status, 0);
  return status != 0;
}
