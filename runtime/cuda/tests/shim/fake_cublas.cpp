// A cuBLAS without a device, for the driver of fake.cpp: products of matrices whose columns are one behind the other. It
// refuses what the real one refuses, and where no workspace was set; all of that it writes over before and after.
#include <utility>

#include "fake_library.h"

namespace {

enum Status { OK = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { DEFAULT_ALGORITHM = -1, COMPUTE_32F = 68, FAST_16F = 74, FAST_16BF = 75, FAST_TF32 = 77 };

struct Handle {
    void* stream = nullptr;
    void* workspace = nullptr;
    size_t bytes = 0;
};

std::atomic<uint64_t> products, rounded, narrow;

struct Factor {
    char* at;
    int element, leading;
    long long stride;
    int transposed;
    float get(int row, int column) const {
        const int64_t index = transposed ? column + (int64_t)row * leading : row + (int64_t)column * leading;
        return load(at, index, element);
    }
};

struct Work {
    int m, n, k, batch;
    Factor a, b, c;
    float alpha, beta;
    float (*round)(float);
    void* workspace;
    size_t bytes;
};

void multiply(const void* data) {
    Work w;
    memcpy(&w, data, sizeof w);
    memset(w.workspace, 0xff, w.bytes);
    for (int i = 0; i < w.batch; i++) {
        for (int column = 0; column < w.n; column++)
            for (int row = 0; row < w.m; row++) {
                // In the order of own kernels: the variances that some models begin with are such that any other one shows.
                float total = 0, sum = 0;
                for (int k = 0; k < w.k; k++) {
                    float x = w.a.get(row, k), y = w.b.get(k, column);
                    if (w.round) x = w.round(x), y = w.round(y);
                    sum += x * y;
                    if (k % 256 == 255) total += sum, sum = 0;
                }
                const float there = w.beta == 0 ? 0 : w.beta * w.c.get(row, column);
                const int64_t index = row + (int64_t)column * w.c.leading;
                store(w.c.at, index, w.c.element, there + w.alpha * (total + sum));
            }
        for (Factor* f : {&w.a, &w.b, &w.c}) f->at += f->stride * width(f->element);
    }
    memset(w.workspace, 0xff, w.bytes);
    products += (uint64_t)w.batch;
    rounded += w.round ? (uint64_t)w.batch : 0;
    narrow += w.a.element != F32 ? (uint64_t)w.batch : 0;
}

// All that a matrix may reach lies in one memory of the device.
bool is_there(const Factor& f, int rows, int columns, int batch) {
    if (f.transposed) std::swap(rows, columns);
    if (f.leading < (rows > 1 ? rows : 1) || f.stride < 0) return false;
    const int64_t last = f.stride * (batch - 1) + (int64_t)f.leading * (columns - 1) + rows;
    return fakecuda_is_device((uint64_t)f.at, (size_t)(last * width(f.element)));
}

}  // namespace

// How many products it has done (0), how many of them with rounded numbers (1), and of short ones (2).
API uint64_t fakeblas_count(unsigned what) { return what == 0 ? products : what == 1 ? rounded : narrow; }

API int cublasCreate_v2(Handle** handle) { return *handle = new Handle, OK; }
API int cublasDestroy_v2(Handle* handle) { return delete handle, OK; }
API int cublasGetVersion_v2(Handle*, int* version) { return *version = 130000, OK; }
API int cublasSetAtomicsMode(Handle*, int mode) { return mode == 0 ? OK : NOT_SUPPORTED; }
API int cublasSetStream_v2(Handle* handle, void* stream) {
    *handle = Handle{};
    handle->stream = stream;
    return OK;
}
API int cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
    if ((uintptr_t)workspace % 256 || !fakecuda_is_device((uint64_t)workspace, bytes)) return INVALID_VALUE;
    handle->workspace = workspace, handle->bytes = bytes;
    return OK;
}
API int cublasGemmStridedBatchedEx(Handle* handle, int turn_a, int turn_b, int m, int n, int k, const float* alpha,
                                   const void* a, int type_a, int lda, long long stride_a, const void* b, int type_b,
                                   int ldb, long long stride_b, const float* beta, void* c, int type_c, int ldc,
                                   long long stride_c, int batch, int compute, int algorithm) {
    // The real one has memory of its own where it is given none, which no plan knows.
    if (!handle->stream || handle->bytes < 16 << 10) return ALLOC_FAILED;
    if (type_a != type_b || (type_c != type_a && type_c != F32) || algorithm != DEFAULT_ALGORITHM) return NOT_SUPPORTED;
    if (type_a != F32 && ((type_a != F16 && type_a != BF16) || compute != COMPUTE_32F)) return NOT_SUPPORTED;
    float (*round)(float) = nullptr;
    switch (compute) {
        case COMPUTE_32F: break;
        case FAST_TF32: round = round_tf32; break;
        case FAST_16BF: round = round_bf16; break;
        case FAST_16F: round = round_f16; break;
        default: return NOT_SUPPORTED;
    }
    if (m < 1 || n < 1 || k < 1 || batch < 1 || batch > 65535) return INVALID_VALUE;
    const Work work = {m, n, k, batch, {(char*)a, type_a, lda, stride_a, turn_a}, {(char*)b, type_b, ldb, stride_b, turn_b},
                       {(char*)c, type_c, ldc, stride_c, 0}, *alpha, *beta, round,
                       handle->workspace, handle->bytes};
    if (!is_there(work.a, m, k, batch) || !is_there(work.b, k, n, batch) || !is_there(work.c, m, n, batch))
        return INVALID_VALUE;
    if (batch > 1 && stride_c < (long long)ldc * (n - 1) + m) return INVALID_VALUE;
    fakecuda_push(handle->stream, multiply, &work, sizeof work);
    return OK;
}
API int cublasGemmEx(Handle* handle, int turn_a, int turn_b, int m, int n, int k, const float* alpha, const void* a,
                     int type_a, int lda, const void* b, int type_b, int ldb, const float* beta, void* c, int type_c,
                     int ldc, int compute, int algorithm) {
    return cublasGemmStridedBatchedEx(handle, turn_a, turn_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0,
                                      beta, c, type_c, ldc, 0, 1, compute, algorithm);
}
