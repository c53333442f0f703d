"""Host memory, its contents, and the threads that move it.

Sizes and offsets are bytes, addresses are plain integers of this process, times are seconds.
Whoever passes an address vouches for it: the memory must stay mapped for as long as it is used.
``cpus`` lists Linux CPU numbers; one thread is started for each entry and pinned there, and a CPU
may be listed more than once. An empty list or a negative CPU raises ValueError; a CPU that cannot
be had raises OSError. Every call that may take long releases the GIL.
"""

import enum
from collections.abc import Mapping, Sequence

class Kind(enum.IntEnum):
    """How host memory is backed."""

    PINNED = 0
    """Transparent huge pages where the kernel has them, prefaulted and locked."""
    PAGEABLE = 1
    """Pages by the system's own policy, prefaulted but not locked."""
    HUGE = 2
    """Pages of the huge page pool where it has enough, else as PINNED, and collapsed."""
    BASE = 3
    """Pages of the system's base size (4 KiB, mostly) and never huge ones; prefaulted, as are those
    of the following kinds, but not locked."""
    TRANSPARENT = 4
    """Transparent huge pages, collapsed where the kernel does not give them at once."""
    POOL = 5
    """Huge pages of the pool alone."""

class Policy(enum.IntEnum):
    """Which nodes pages come from."""

    BIND = 0
    """The node alone."""
    PREFERRED = 1
    """The node, others where it has none left."""
    INTERLEAVE = 2
    """Several nodes in turn."""
    WEIGHTED = 3
    """Several nodes, as many pages of each as the kernel's weights say (Linux 6.9)."""

class Memory:
    """A private mapping of host memory, 2 MiB aligned, zeroed, bound and first-touched.

    A refusal to bind or to lock is not an error: see ``bound`` and ``locked``.
    """

    def __init__(
        self,
        size: int,
        kind: Kind,
        node: int | None,
        cpus: Sequence[int],
        policy: Policy = Policy.BIND,
        nodes: Sequence[int] = (),
    ) -> None:
        """Map ``size`` bytes, bind them to NUMA node ``node``, and touch them from ``cpus``.

        INTERLEAVE and WEIGHTED spread them over ``nodes`` instead.

        None as ``node`` leaves the placement to first touch. Raises OSError with the errno where
        the memory cannot be had ("mmap of 123 bytes: Cannot allocate memory") and ValueError for a
        size below 1. Memory that the kernel overcommits is not guarded against.
        """

    @property
    def address(self) -> int:
        """Address of the first byte; 0 once closed."""
    @property
    def size(self) -> int:
        """Size in bytes, as asked for."""
    @property
    def locked(self) -> bool:
        """Whether mlock holds the pages: of PINNED and HUGE, if it was allowed; not once closed."""
    @property
    def lock_error(self) -> str | None:
        """Why the pages are not locked ("mlock: Cannot allocate memory"); None if not asked for."""
    @property
    def bound(self) -> bool:
        """Whether the pages are bound to the node asked for; False where none was."""
    @property
    def bind_error(self) -> str | None:
        """Why they are not ("mbind: Operation not permitted"); None where none was asked for."""
    def nodes(self) -> dict[int, int]:
        """Return nodes_of() its pages; empty once closed."""
    def huge_bytes(self) -> int:
        """Return the bytes backed by huge pages (AnonHugePages + Private_Hugetlb in smaps).

        Counts the whole mapping, so it may exceed ``size`` by its rounding up to huge pages. 0
        where smaps cannot be read, and once closed.
        """
    def close(self) -> None:
        """Unmap; may be called again. No team may be using the memory."""

def nodes_of(address: int, size: int) -> dict[int, int]:
    """Return NUMA node -> number of pages found there, of at most 1024 pages of equal stretches.

    Whoever mapped the memory: it may be a driver's. Empty where the kernel refuses to say
    (move_pages(2)). Raises ValueError for a null address.
    """

def first_touch(
    address: int, size: int, cpus: Sequence[int], loops: int, batches: int = 1
) -> list[float]:
    """Give the pages back to the kernel and touch each anew from ``cpus``, ``loops * batches``
    times.

    Returns 0 and the seconds spent touching up to the end of each batch. The content is lost.
    Raises OSError where pages cannot be given back (locked ones), RuntimeError if fresh ones are
    not zero.
    """

class Pattern(enum.IntEnum):
    """Contents by which a copy is verified, made of 64-bit little-endian words.

    Word i of seed s is ``x = (i + s * 0xD1B54A32D192ED03) * 0x9E3779B97F4A7C15; x ^= x >> 29``
    modulo 2**64. A tail shorter than a word holds the low bytes of its word.
    """

    WORDS = 0
    """Word i as it is: tells every place from every other."""
    CONSTANT = 1
    """Word 0 everywhere."""
    SPLIT = 2
    """WORDS in odd 512-byte chunks, its complement in even ones."""
    NUMBERS = 3
    """64-bit floating-point numbers, 1 + (x >> 16) / 2**48: their sums and triples are exact."""
    SCALED = 4
    """Three times each of an array b of NUMBERS."""
    ADDED = 5
    """b + c, where c are the NUMBERS that follow b in one buffer, as many as b has."""
    TRIAD = 6
    """b + 3 c."""

def fill(
    address: int, size: int, seed: int, pattern: Pattern, inverted: bool, cpus: Sequence[int]
) -> None:
    """Store the pattern of ``seed`` (0 <= seed < 2**64); inverted: its complement, a poison.

    In the complement every byte differs from what first_mismatch expects. Raises ValueError for a
    null address.
    """

def pattern_bytes(size: int, seed: int, pattern: Pattern) -> bytes:
    """Return what fill would store, made by the calling thread: for a few pages."""

def first_mismatch(
    address: int, size: int, seed: int, pattern: Pattern, cpus: Sequence[int]
) -> int | None:
    """Return the offset in bytes of the first byte that differs from the pattern, or None.

    Raises ValueError for a null address.
    """

def fill_content(
    address: int,
    count: int,
    type: int,
    content: tuple[int, int, int, int, int, float],
    rank: int,
    cpus: Sequence[int],
) -> None:
    """Store ``count`` elements that ``rank`` sends (kernels/content.cuh).

    ``type`` is the code of NCCL's type. ``content`` is the seed, the number of ranks, how many have
    a number at an index, the largest number, the reduction (-1: none) and the tolerance. Raises
    ValueError for a null address or an unknown type.
    """

def count_wrong(
    address: int,
    count: int,
    type: int,
    content: tuple[int, int, int, int, int, float],
    origin: tuple[int, int, int],
    cpus: Sequence[int],
) -> tuple[int, int]:
    """Return how many of ``count`` elements are wrong, and the index of the first of these.

    ``origin`` is the first rank that elements come from, how many come of each, and the index of
    the first of them; of a reduction, the index alone counts. Raises as fill_content() does.
    """

def checksum(address: int, size: int, cpus: Sequence[int]) -> int:
    """Return the xor of all 64-bit little-endian words, the tail zero-extended; 0 for no bytes.

    Raises ValueError for a null address.
    """

class Op(enum.IntEnum):
    """What a job does with every byte."""

    READ = 0
    """Load it; the span's checksum tells that it was."""
    WRITE = 1
    """Store the CONSTANT pattern of the job's seed."""
    COPY = 2
    """Copy it; source and destination must not overlap."""
    SCALE = 3
    """Store 3 times each floating-point number of 64 bits."""
    ADD = 4
    """Store b + c, where the source holds an array b of ``size`` bytes and behind it as large a
    c."""
    TRIAD = 5
    """Store b + 3 c."""

class Job:
    """One transfer, shared by threads that each take a contiguous slice of whole cache lines."""

    def __init__(
        self,
        op: Op,
        source: int,
        destination: int,
        size: int,
        seed: int,
        cpus: Sequence[int],
        endless: bool = False,
        kernel: str | None = None,
        chase: int = 0,
        rate: float = 0.0,
        tracked: bool = False,
    ) -> None:
        """Describe a transfer; any size from 1 on and any alignment, but multiples of 8 for what
        computes with numbers. 0 as an address is unused.

        An endless one goes on until the team's other jobs have ended, or without others until
        ``wait``; the loop in progress is finished. ``kernel`` is one of kernels(op); without it,
        the one of default_kernel() that suits the size. With ``chase``, a loop is so many hops
        along the pointers of the source, which link_cycle() laid; the next loop goes on there.
        With ``rate``, an endless one moves so many bytes/s, or as many as it can, and may end amid
        a pass. A ``tracked`` one, unless it is endless, reports progress within a pass, too, if a
        batch is one large pass.

        Raises ValueError for a size below 1, an empty ``cpus``, a missing address, a kernel that
        this CPU does not run, a chase other than READ by one thread, or a rate below 0 or of one
        that is not endless.
        """

    @property
    def op(self) -> Op: ...
    @property
    def source(self) -> int: ...
    @property
    def destination(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def cpus(self) -> list[int]: ...
    @property
    def endless(self) -> bool: ...
    @property
    def kernel(self) -> str | None: ...
    @property
    def chase(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def tracked(self) -> bool: ...

class Span:
    """When a job ran, in seconds of CLOCK_MONOTONIC (the clock of time.monotonic())."""

    @property
    def begin(self) -> float:
        """When its first thread began."""
    @property
    def end(self) -> float:
        """When its last thread ended, its stores done."""
    @property
    def checksum(self) -> int:
        """For READ, what checksum() gives for the bytes that the last loop read; else 0."""
    @property
    def passes(self) -> float:
        """How often all of its bytes were gone over: the loops, of an endless job any number."""
    @property
    def progress(self) -> list[float]:
        """When it began, and when its threads together had moved the bytes of each batch, or of
        equal parts of each; of an endless job, begin and end alone."""

class Team:
    """Threads that run jobs at the same time, sample by sample: arm, open, wait.

    Between samples the threads sleep. A call out of order, or after close, raises RuntimeError.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        """Start one pinned thread for each CPU of each job.

        Raises OSError where a thread cannot be started or pinned, and ValueError without jobs.
        """

    def arm(self, loops: int, batches: int = 1) -> None:
        """Bring all threads to the gate: once it opens, each runs its job ``loops`` times a batch.

        Returns when all stand there. Raises ValueError for loops or batches below 1.
        """

    def open(self) -> None:
        """Release all threads together."""
    def wait(self) -> list[Span]:
        """Return one span for each job, once all are done."""
    def counts(self) -> Counts:
        """Return what all threads met with in the latest round that was waited for."""
    def close(self) -> None:
        """Stop and join the threads, at the latest after the loop in progress; may be repeated."""

class Counts:
    """What threads met with while they were timed, counted for each by itself and added up.

    None is what was not counted of one of them. The CPU's own events are those of user mode.
    """

    @property
    def seconds(self) -> float:
        """Of all threads."""
    @property
    def page_faults(self) -> int:
        """Minor and major ones."""
    @property
    def context_switches(self) -> int:
        """Voluntary and involuntary ones."""
    @property
    def involuntary(self) -> int:
        """Switches away from a thread that could have run on."""
    @property
    def migrations(self) -> int | None:
        """To another CPU."""
    @property
    def cycles(self) -> int | None: ...
    @property
    def instructions(self) -> int | None: ...
    @property
    def cache_misses(self) -> int | None:
        """Of the last-level cache."""
    @property
    def tlb_misses(self) -> int | None:
        """Reads that miss the data TLB."""
    @property
    def refused(self) -> int:
        """The errno with which perf_event_open refused to count cycles; 0 if it did not."""

def kernels(op: Op) -> list[str]:
    """Return the names of the operation's kernels that this CPU runs.

    ``libc`` is the C library's, ``rep`` the processor's own string instruction, ``portable`` plain
    C++. Others are named by their stores (``plain``, or ``nt``: past the caches), how many pages
    they walk side by side, their vector unit, and ``prefetch`` where they ask for what comes next.
    """

def default_kernel(op: Op, streaming: bool) -> str:
    """Return what is nowhere far from the fastest; streaming: beyond the caches."""

def linear_kernel(op: Op) -> str:
    """Return what walks linearly with ordinary loads and stores, as compiled STREAM does."""

def last_level_cache(cpus: Sequence[int]) -> int:
    """Return the bytes of all the distinct last-level caches behind these CPUs.

    From sysfs; where that is silent, from sysconf(3), else 32 MiB.
    """

def race(
    job: Job, kernels: Sequence[str], window: int, first: int = 0, loops: int = 1
) -> list[float]:
    """Let kernels take turns at a job; return the seconds of each turn.

    A turn goes over the next ``window`` bytes of the job's memory once, and then, timed, ``loops``
    times over those after them; the first window is number ``first``, and after the last one comes
    the first again. Raises ValueError for a kernel that this CPU does not run, a window that is not
    within the job, or loops below 1, and OSError where a thread cannot be started or pinned.
    """

def time_iterations(
    calls: Sequence[tuple[int, Sequence[int]]],
    count: int,
    last: Sequence[tuple[int, Sequence[int]]] = (),
) -> tuple[list[int], int, int]:
    """Make these calls of C functions in their order ``count`` times, with no Python between them.

    Those of ``last`` follow once, if there are any: their end is one more, and their places come
    after those of ``calls``.

    A call is an address and its arguments, integers and pointers, at most 11, each 0 to 2**64 - 1.
    Returns nanoseconds since the first iteration began, 0 and the end of each iteration; and 0, 0.
    A call that does not return 0 is the last one: what it returned comes instead, and its place
    among the calls. Raises ValueError for a null address, too many arguments, no calls, or a count
    of 0.
    """

NOTHING: tuple[int, list[int]]
"""A call of what does nothing: an iteration of it takes what the loop of time_iterations costs."""
STORE_WORD: int
"""The address of ``int store_word(uint64_t* word, const uint64_t* value)``, which stores a value in
a word; a call of time_iterations."""
AWAIT_WORD: int
"""The address of ``int await_word(uint64_t* word, uint64_t* value, uint64_t limit)``, which waits
until the word is the value and then adds 1 to it; it returns 1 after ``limit`` nanoseconds."""
SEND_ALL: int
"""The address of ``int send_all(int socket, const char* data, size_t size)``, which returns 0 or an
errno: EAGAIN if the socket's own timeout passes without a byte."""
RECEIVE_ALL: int
"""The address of ``int receive_all(int socket, char* data, size_t size)``, which returns as
``send_all`` does, and ENDED if the other end closes before."""
ENDED: int

LINK: int
"""Bytes from one pointer of a cycle to the next in memory: a cache line."""

def link_cycle(address: int, size: int, seed: int, cpu: int) -> None:
    """Link all whole lines of the range into one cycle, in an order without pattern.

    A thread on this CPU works. Raises ValueError for a null address or less than a line, and
    OSError where the thread cannot be started or pinned.
    """

def cycle_length(address: int, size: int, cpu: int) -> int:
    """Return the lines of the cycle through the first line, counted by walking it.

    Many walks take turns, each from a marked line to the next one. 0 if a pointer leads out of the
    range, or no cycle leads back. Raises as link_cycle() does.
    """

def ping_pong(
    first: int, second: int, loops: int, batches: int = 1
) -> tuple[list[float], int, Counts]:
    """Bounce a cache line between two CPUs; return when, how often, and what both threads met with.

    A thread pinned to each of them waits for the other's count and counts on: ``batches`` batches
    of ``loops`` round trips, behind some that warm up. The times are those of the first batch's
    begin and of each batch's end, in seconds of CLOCK_MONOTONIC; the bounces are what the line
    counted meanwhile. Raises ValueError for equal CPUs, or loops or batches below 1, and OSError
    where a thread cannot be started or pinned.
    """

class PrimesThread:
    """One thread's share of find_primes()."""

    @property
    def begin(self) -> float:
        """In seconds of CLOCK_MONOTONIC."""
    @property
    def end(self) -> float: ...
    @property
    def events(self) -> int: ...
    @property
    def found(self) -> int:
        """Primes, in all of its events."""
    @property
    def counts(self) -> Counts: ...

def find_primes(cpus: Sequence[int], limit: int, events: int) -> list[PrimesThread]:
    """Find the primes among 3 … ``limit`` - 1 by trial division, ``events`` times in all.

    A thread on each of ``cpus`` takes one event after the other until none is left; what each did
    comes in their order. Raises ValueError for less than one event, and OSError where a thread
    cannot be started or pinned.
    """

class UcxCopies:
    """Copies by UCX at the same time, with no Python inside: ``loops`` of each, of which at most
    ``window`` are under way.

    ``functions`` has the addresses of UCX's functions by their names. A part is a worker, an end, a
    key, one's own address, a size, the own memory's handle (0: none), the other rank's address, a
    tag, whether it puts (else it gets), and whether it moves at all: one that does begins all
    copies, flushes, and says so by a word with the tag, until which the other one makes progress.
    All but the numbers of bytes are addresses of this process, or UCX's own. Raises ValueError for
    no parts, loops, window or bytes, and RuntimeError for a function that is missing.
    """

    def __init__(
        self,
        functions: Mapping[str, int],
        parts: Sequence[tuple[int, int, int, int, int, int, int, int, bool, bool]],
        loops: int,
        window: int,
    ) -> None: ...
    def run(self, silent: float) -> None:
        """Go on until all is done or something has failed, as silence of so many seconds is."""
    @property
    def failure(self) -> tuple[str, int, int]:
        """The call that failed, its status, and the place of its part; the call is empty if none
        has."""
    @property
    def silent(self) -> bool:
        """Whether nothing has happened for too long."""
    @property
    def ended(self) -> list[float]:
        """When all bytes of each part that moves were there, in seconds of CLOCK_MONOTONIC; 0 for
        the others."""
