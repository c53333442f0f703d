// As much of cuBLAS as linkgauge calls: column-major products in plain loops, on the CPU.
// fail_next(status) makes the next call fail; lines() is a log of the calls.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace {
int failing = 0;
std::string called;
int done(const char* name)
{
    called += std::string(name) + "\n";
    const int status = failing;
    failing = 0;
    return status;
}

double number(const void* matrix, int type, std::size_t at, bool cut)
{
    if (type == 0) {
        auto bits = static_cast<const std::uint32_t*>(matrix)[at];
        return std::bit_cast<float>(cut ? bits & 0xFFFFE000u : bits);
    }
    const auto bits = static_cast<const std::uint16_t*>(matrix)[at];
    if (type == 14) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    return static_cast<double>(std::bit_cast<_Float16>(bits));
}

void store(void* matrix, int type, std::size_t at, double value)
{
    const auto single = static_cast<float>(value);
    const auto bits = std::bit_cast<std::uint32_t>(single);
    if (type == 0) static_cast<float*>(matrix)[at] = single;
    else if (type == 14)
        static_cast<std::uint16_t*>(matrix)[at] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    else
        static_cast<std::uint16_t*>(matrix)[at] =
            std::bit_cast<std::uint16_t>(static_cast<_Float16>(single));
}
}  // namespace

extern "C" {
void fail_next(int status) { failing = status; }
const char* lines() { return called.c_str(); }
int cublasCreate_v2(void** handle)
{
    *handle = reinterpret_cast<void*>(0x1234567890);
    return done("create");
}
int cublasDestroy_v2(void* handle) { return done(handle ? "destroy" : "destroy nothing"); }
int cublasSetStream_v2(void*, void* stream)
{
    return done(("stream " + std::to_string(reinterpret_cast<std::uintptr_t>(stream))).c_str());
}
int cublasSetWorkspace_v2(void*, void* at, std::size_t size)
{
    return done(("workspace " + std::to_string(at ? size : 0)).c_str());
}
int cublasGetProperty(int kind, int* value)
{
    *value = (int[]){13, 1, 7}[kind];
    return 0;
}
const char* cublasGetStatusName(int status)
{
    return status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == 3 ? "CUBLAS_STATUS_ALLOC_FAILED" : "CUBLAS_STATUS_EXECUTION_FAILED";
}
int cublasGemmEx(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
                 const float* alpha, const void* a, int type_a, int lda, const void* b, int type_b,
                 int ldb, const float* beta, void* c, int type_c, int ldc, int compute,
                 int algorithm)
{
    char line[200];
    std::snprintf(line, sizeof line, "gemm %d %d %d types %d %d %d compute %d algorithm %d", m, n, k,
                  type_a, type_b, type_c, compute, algorithm);
    const int status = done(line);
    if (status || !handle || transpose_a || transpose_b || *alpha != 1 || *beta != 0) return status;
    const bool cut = compute == 77;
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
            double sum = 0;
            for (int l = 0; l < k; ++l)
                sum += number(a, type_a, i + std::size_t(l) * lda, cut) *
                       number(b, type_b, l + std::size_t(j) * ldb, cut);
            store(c, type_c, i + std::size_t(j) * ldc, sum);
        }
    return 0;
}
}
