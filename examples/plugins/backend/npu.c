/* What a vendor's C library looks like to a backend: devices with memory of their own, and queues
 * that copy while the caller goes on. This one copies with a thread of the host for each queue.
 *
 *     cc -O2 -shared -fPIC -pthread npu.c -o libnpu.so
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NPU_OK, NPU_NO_DEVICE, NPU_NO_MEMORY, NPU_BAD_ADDRESS };
enum { DEVICES = 2, ENTRIES = 256 };
static const uint64_t MEMORY = 1ULL << 30;
/* Addresses of device memory mean nothing to the host: the device is in their highest bits. */
static const uint64_t SPACE = 1ULL << 56;

static uint64_t used[DEVICES];

int npu_count(int* count) {
  *count = DEVICES;
  return NPU_OK;
}

const char* npu_error(int status) {
  static const char* const words[] = {"NPU_OK", "NPU_NO_DEVICE", "NPU_NO_MEMORY",
                                      "NPU_BAD_ADDRESS"};
  return status >= 0 && status < 4 ? words[status] : "NPU_UNKNOWN";
}

int npu_properties(int device, char* name, size_t room, uint64_t* memory) {
  if (device < 0 || device >= DEVICES) return NPU_NO_DEVICE;
  strncpy(name, "Example NPU", room);
  *memory = MEMORY;
  return NPU_OK;
}

int npu_alloc(int device, uint64_t size, uint64_t* address) {
  if (device < 0 || device >= DEVICES) return NPU_NO_DEVICE;
  if (used[device] + size > MEMORY) return NPU_NO_MEMORY;
  uint64_t* block = malloc(sizeof size + size);
  if (block == NULL) return NPU_NO_MEMORY;
  *block = size;
  used[device] += size;
  *address = (uint64_t)(block + 1) + (device + 1) * SPACE;
  return NPU_OK;
}

int npu_free(uint64_t address) {
  uint64_t device = address / SPACE;
  if (device < 1 || device > DEVICES) return NPU_BAD_ADDRESS;
  uint64_t* block = (uint64_t*)(address % SPACE) - 1;
  used[device - 1] -= *block;
  free(block);
  return NPU_OK;
}

struct copy {
  char* destination;
  const char* source;
  uint64_t size;
};

struct queue {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct copy copies[ENTRIES];
  uint64_t enqueued, done;
  int ends;
};

static void* carry_out(void* given) {
  struct queue* queue = given;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    while (queue->done == queue->enqueued && !queue->ends)
      pthread_cond_wait(&queue->changed, &queue->lock);
    if (queue->done == queue->enqueued) break;
    struct copy next = queue->copies[queue->done % ENTRIES];
    pthread_mutex_unlock(&queue->lock);
    memmove(next.destination, next.source, next.size);
    pthread_mutex_lock(&queue->lock);
    ++queue->done;
    pthread_cond_broadcast(&queue->changed);
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

int npu_queue_create(int device, struct queue** made) {
  if (device < 0 || device >= DEVICES) return NPU_NO_DEVICE;
  struct queue* queue = calloc(1, sizeof *queue);
  if (queue == NULL) return NPU_NO_MEMORY;
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, NULL);
  if (pthread_create(&queue->thread, NULL, carry_out, queue) != 0) {
    free(queue);
    return NPU_NO_MEMORY;
  }
  *made = queue;
  return NPU_OK;
}

/* Returns at once, unless the queue is full. */
int npu_copy(struct queue* queue, uint64_t destination, uint64_t source, uint64_t size) {
  if (destination / SPACE > DEVICES || source / SPACE > DEVICES) return NPU_BAD_ADDRESS;
  pthread_mutex_lock(&queue->lock);
  while (queue->enqueued - queue->done == ENTRIES) pthread_cond_wait(&queue->changed, &queue->lock);
  queue->copies[queue->enqueued++ % ENTRIES] =
      (struct copy){(char*)(destination % SPACE), (const char*)(source % SPACE), size};
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return NPU_OK;
}

/* Until all copies are done. */
int npu_wait(struct queue* queue) {
  pthread_mutex_lock(&queue->lock);
  while (queue->done != queue->enqueued) pthread_cond_wait(&queue->changed, &queue->lock);
  pthread_mutex_unlock(&queue->lock);
  return NPU_OK;
}

int npu_queue_destroy(struct queue* queue) {
  pthread_mutex_lock(&queue->lock);
  queue->ends = 1;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  free(queue);
  return NPU_OK;
}
