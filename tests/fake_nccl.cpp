// As much of NCCL, and of the driver, as linkgauge's collectives call: on the CPU, where devices'
// memory is the host's. Calls wait in groups until all ranks of a communicator have made them, and
// a send or a receive for its other side, which another thread may call.
// refuse(n) makes the call after the next n fail.
// spoil(rank) makes the next result of that rank wrong in its element 5; lines() is a log.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "content.cuh"

namespace {
using Words = std::vector<double>;
struct Comm { int clique, rank, ranks; };
struct Op {
    std::string name;
    const void* send;
    void* receive;
    std::size_t count;
    int type, reduction, root;
    Comm* comm;
};
int depth = 0, spoiled = -1, next_reduction = 6, refused = -1;
std::map<int, double> factors;
std::map<Comm*, std::vector<Op>> waiting;
std::map<int, std::vector<Comm*>> cliques;
std::vector<Op> moves;  // whose other side is not there yet
std::recursive_mutex one_at_a_time;
std::string log_;

template <int Code>
Words read_as(const void* from, std::size_t count)
{
    using Type = content::Type<Code>;
    Words words(count);
    for (std::size_t at = 0; at < count; ++at) {
        typename Type::T value;
        std::memcpy(&value, static_cast<const char*>(from) + at * sizeof value, sizeof value);
        words[at] = Type::Format::to(value);
    }
    return words;
}

template <int Code>
void write_as(void* to, const Words& words)
{
    using Type = content::Type<Code>;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const typename Type::T value = Type::Format::from(words[at]);
        std::memcpy(static_cast<char*>(to) + at * sizeof value, &value, sizeof value);
    }
}

Words (*const kRead[])(const void*, std::size_t) = {
    read_as<0>, read_as<1>, read_as<2>, read_as<3>, read_as<4>, read_as<5>,
    read_as<6>, read_as<7>, read_as<8>, read_as<9>, read_as<10>, read_as<11>};
void (*const kWrite[])(void*, const Words&) = {
    write_as<0>, write_as<1>, write_as<2>, write_as<3>, write_as<4>, write_as<5>,
    write_as<6>, write_as<7>, write_as<8>, write_as<9>, write_as<10>, write_as<11>};
const int kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

void store(const Op& op, void* to, Words words)
{
    if (spoiled == op.comm->rank && words.size() > 5) {
        words[5] += 1;
        spoiled = -1;
    }
    kWrite[op.type](to, words);
}

Words reduced(const std::vector<Op>& all, std::size_t count)
{
    Words sum;
    for (const Op& op : all) {
        Words own = kRead[op.type](op.send, count);
        for (double& one : own)
            if (op.reduction > 4) one *= factors[op.reduction];
        if (sum.empty()) { sum = own; continue; }
        for (std::size_t at = 0; at < count; ++at) {
            double& into = sum[at];
            const double one = own[at];
            switch (op.reduction) {
                case 1: into *= one; break;
                case 2: into = one > into ? one : into; break;
                case 3: into = one < into ? one : into; break;
                default: into += one;
            }
        }
    }
    if (all[0].reduction == 4)
        for (double& one : sum) one /= static_cast<double>(all.size());
    return sum;
}

Words part(const Words& whole, std::size_t first, std::size_t count)
{
    return {whole.begin() + static_cast<long>(first),
            whole.begin() + static_cast<long>(first + count)};
}

// All ranks' calls of one collective.
void carry_out(const std::vector<Op>& all)
{
    const std::string& name = all[0].name;
    const std::size_t count = all[0].count, ranks = all.size();
    const auto root = static_cast<std::size_t>(all[0].root);
    const bool scatters = name == "reduce_scatter";
    std::vector<Words> sent;
    for (const Op& op : all)
        sent.push_back(kRead[op.type](op.send, name == "alltoall" || name == "scatter" || scatters
                                                   ? count * ranks : count));
    const Words sum = name.find("reduce") != name.npos ? reduced(all, sent[0].size()) : Words();
    Words gathered;
    for (const Words& own : sent) gathered.insert(gathered.end(), own.begin(), own.end());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Op& op = all[rank];
        if (name == "all_reduce" || (name == "reduce" && rank == root)) store(op, op.receive, sum);
        if (scatters) store(op, op.receive, part(sum, rank * count, count));
        if (name == "all_gather" || (name == "gather" && rank == root))
            store(op, op.receive, gathered);
        if (name == "broadcast") store(op, op.receive, sent[root]);
        if (name == "scatter") store(op, op.receive, part(sent[root], rank * count, count));
        if (name == "alltoall") {
            Words mine;
            for (const Words& own : sent) {
                const Words share = part(own, rank * count, count);
                mine.insert(mine.end(), share.begin(), share.end());
            }
            store(op, op.receive, mine);
        }
    }
}

// Each receive takes the first send from its peer to it; all are read before any is written.
void pass_on()
{
    std::vector<std::pair<Op, Words>> arriving;
    std::vector<bool> used(moves.size());
    for (std::size_t to = 0; to < moves.size(); ++to) {
        const Op& receive = moves[to];
        if (receive.name != "recv") continue;
        for (std::size_t at = 0; at < moves.size(); ++at) {
            const Op& send = moves[at];
            if (used[at] || send.name != "send" || send.comm->clique != receive.comm->clique ||
                send.comm->rank != receive.root || send.root != receive.comm->rank)
                continue;
            used[at] = used[to] = true;
            arriving.emplace_back(receive, kRead[send.type](send.send, send.count));
            break;
        }
    }
    for (const auto& [receive, words] : arriving) store(receive, receive.receive, words);
    std::vector<Op> left;
    for (std::size_t at = 0; at < moves.size(); ++at)
        if (!used[at]) left.push_back(moves[at]);
    moves = left;
}

void run_all()
{
    for (auto& [comm, ops] : waiting)
        for (std::size_t at = 0; at < ops.size();)
            if (ops[at].name == "send" || ops[at].name == "recv") {
                moves.push_back(ops[at]);
                ops.erase(ops.begin() + static_cast<long>(at));
            } else
                ++at;
    pass_on();
    for (const auto& [clique, members] : cliques)
        while (!waiting[members[0]].empty()) {
            std::vector<Op> all;
            for (Comm* member : members) {
                auto& ops = waiting[member];
                if (ops.empty()) return;  // a real one would hang
                all.push_back(ops.front());
                ops.erase(ops.begin());
            }
            carry_out(all);
        }
}

int queue(const char* name, const void* send, void* receive, std::size_t count, int type,
          int reduction, int root, Comm* comm)
{
    const std::lock_guard<std::recursive_mutex> held(one_at_a_time);
    log_ += std::string(name) + "\n";
    if (type < 0 || type > 11) return 4;
    if (refused >= 0 && refused-- == 0) {
        waiting.clear();
        moves.clear();
        return 4;
    }
    waiting[comm].push_back({name, send, receive, count, type, reduction, root, comm});
    if (depth == 0) run_all();
    return 0;
}
}  // namespace

extern "C" {
void spoil(int rank) { spoiled = rank; }
void refuse(int after) { refused = after; }
int open_groups() { return depth; }
const char* lines() { return log_.c_str(); }
void* new_comm(int clique, int rank, int ranks)
{
    const std::lock_guard<std::recursive_mutex> held(one_at_a_time);
    Comm* comm = new Comm{clique, rank, ranks};
    cliques[clique].push_back(comm);
    return comm;
}
int ncclGetVersion(int* version) { *version = 22809; return 0; }
const char* ncclGetErrorString(int status) { return status == 4 ? "invalid argument" : "error"; }
const char* ncclGetLastError(void*) { return ""; }
int ncclCommGetAsyncError(void*, int* status) { *status = 0; return 0; }
int ncclGroupStart() { ++depth; log_ += "(\n"; return 0; }
int ncclGroupEnd() { log_ += ")\n"; if (--depth == 0) run_all(); return 0; }
int ncclMemAlloc(void** at, std::size_t size) { *at = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096); return 0; }
int ncclMemFree(void* at) { std::free(at); return 0; }
int ncclCommRegister(void*, void*, std::size_t, void** handle) { *handle = handle; log_ += "register\n"; return 0; }
int ncclCommDeregister(void*, void*) { log_ += "deregister\n"; return 0; }
int ncclRedOpCreatePreMulSum(int* op, float* factor, int, int, void*)
{
    *op = next_reduction++;
    factors[*op] = *factor;
    return 0;
}
int ncclRedOpDestroy(int op, void*) { factors.erase(op); return 0; }
int ncclAllReduce(const void* s, void* r, std::size_t n, int t, int op, Comm* c, void*) { return queue("all_reduce", s, r, n, t, op, 0, c); }
int ncclReduceScatter(const void* s, void* r, std::size_t n, int t, int op, Comm* c, void*) { return queue("reduce_scatter", s, r, n, t, op, 0, c); }
int ncclReduce(const void* s, void* r, std::size_t n, int t, int op, int root, Comm* c, void*) { return queue("reduce", s, r, n, t, op, root, c); }
int ncclAllGather(const void* s, void* r, std::size_t n, int t, Comm* c, void*) { return queue("all_gather", s, r, n, t, 0, 0, c); }
int ncclBroadcast(const void* s, void* r, std::size_t n, int t, int root, Comm* c, void*) { return queue("broadcast", s, r, n, t, 0, root, c); }
#ifdef SINCE_2_28
int ncclAlltoAll(const void* s, void* r, std::size_t n, int t, Comm* c, void*) { return queue("alltoall", s, r, n, t, 0, 0, c); }
int ncclGather(const void* s, void* r, std::size_t n, int t, int root, Comm* c, void*) { return queue("gather", s, r, n, t, 0, root, c); }
int ncclScatter(const void* s, void* r, std::size_t n, int t, int root, Comm* c, void*) { return queue("scatter", s, r, n, t, 0, root, c); }
#endif
int ncclSend(const void* s, std::size_t n, int t, int peer, Comm* c, void*) { return queue("send", s, nullptr, n, t, 0, peer, c); }
int ncclRecv(void* r, std::size_t n, int t, int peer, Comm* c, void*) { return queue("recv", nullptr, r, n, t, 0, peer, c); }
int cuStreamSynchronize(void*) { return 0; }
int cuEventRecord(void*, void*) { log_ += "event\n"; return 0; }
int cuGraphLaunch(void*, void*) { log_ += "graph\n"; return 0; }
int cuMemcpyAsync(void* to, const void* from, std::size_t size, void*) { std::memcpy(to, from, size); return 0; }
}
