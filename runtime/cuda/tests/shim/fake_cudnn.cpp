// A cuDNN without a device, for the driver of fake.cpp: convolutions in two and three dimensions and their gradients, each
// with several algorithms that differ in workspace, in whether they are deterministic, and in what they support. It refuses
// what the real one refuses, and to run what is not deterministic; of the workspace an algorithm needs all, and writes over
// it before and after.
#include <initializer_list>
#include <vector>

#include "fake_library.h"

namespace {

enum Status { OK = 0, BAD_PARAM = 2000, MISALIGNED = 2003, INSUFFICIENT = 2006, NOT_SUPPORTED = 3000 };
enum Math { DEFAULT_MATH = 0, TENSOR_OP_MATH = 1, ALLOW_CONVERSION = 2, FMA_MATH = 3 };
enum { FLOAT = 0, HALF = 2, BFLOAT16 = 9, NCHW = 0, CROSS_CORRELATION = 1 };

std::atomic<uint64_t> convolutions, rounded, narrow, refused, alive, asked, least;

int refuse(int status) { return refused++, status; }

struct Tensor {
    int rank = 0, dims[5], element = F32;
    bool set(int type) {
        element = type == HALF ? F16 : type == BFLOAT16 ? BF16 : F32;
        return type == FLOAT || type == HALF || type == BFLOAT16;
    }
    bool operator==(const Tensor& other) const {
        return rank == other.rank && !memcmp(dims, other.dims, sizeof(int) * (size_t)rank);
    }
    int64_t count(int from = 0) const {
        int64_t all = 1;
        for (int d = from; d < rank; d++) all *= dims[d];
        return all;
    }
};

struct Window {
    int rank = 0, padding[3], stride[3], dilation[3], groups = 1, math = DEFAULT_MATH;
};

struct Handle {
    void* stream = nullptr;
};

// What an algorithm is to be asked for: the window in three dimensions, missing ones first.
struct Shape {
    int64_t batch, groups, inner, outer;
    int64_t image[3], positions[3], kernel[3], stride[3], dilation[3], padding[3];

    int64_t pixels() const { return image[0] * image[1] * image[2]; }
    int64_t places() const { return positions[0] * positions[1] * positions[2]; }
    int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

bool fits(const Tensor* x, const Tensor* w, const Window* c, const Tensor* y, Shape& s) {
    const int rank = c->rank + 2;
    if (x->element != w->element || x->element != y->element) return false;
    if (c->rank < 2 || x->rank != rank || w->rank != rank || y->rank != rank || c->groups < 1) return false;
    if (x->dims[0] != y->dims[0] || x->dims[1] != w->dims[1] * c->groups || y->dims[1] != w->dims[0]) return false;
    if (w->dims[0] % c->groups) return false;
    s.batch = x->dims[0], s.groups = c->groups, s.inner = w->dims[1], s.outer = w->dims[0] / c->groups;
    for (int d = 0; d < 3; d++) {
        const int at = d - (3 - c->rank);
        s.image[d] = s.positions[d] = s.kernel[d] = s.stride[d] = s.dilation[d] = 1, s.padding[d] = 0;
        if (at < 0) continue;
        s.image[d] = x->dims[2 + at], s.positions[d] = y->dims[2 + at], s.kernel[d] = w->dims[2 + at];
        s.stride[d] = c->stride[at], s.dilation[d] = c->dilation[at], s.padding[d] = c->padding[at];
        const int64_t free = s.image[d] + 2 * s.padding[d] - ((s.kernel[d] - 1) * s.dilation[d] + 1);
        if (free < 0 || free / s.stride[d] + 1 != s.positions[d]) return false;
    }
    return true;
}

struct Work {
    Shape s;
    char *x, *w, *y;
    int kind, element;
    float (*round)(float);
    void* workspace;
    size_t bytes;
};

// In the order of own kernels, as the products of fake_cublas.cpp.
struct Sum {
    float total = 0, sum = 0;
    int64_t count = 0;
    float (*round)(float);
    explicit Sum(float (*round)(float)) : round(round) {}
    void add(float x, float y) {
        if (round) x = round(x), y = round(y);
        sum += x * y;
        if (++count % 256 == 0) total += sum, sum = 0;
    }
};

void split(int64_t index, const int64_t (&dims)[3], int64_t (&at)[3]) {
    for (int d = 2; d >= 0; d--) at[d] = index % dims[d], index /= dims[d];
}

// Which pixel a tap meets at a position; -1 outside.
int64_t pixel(const Shape& s, int64_t tap, int64_t place) {
    int64_t taps[3], places[3], index = 0;
    split(tap, s.kernel, taps), split(place, s.positions, places);
    for (int d = 0; d < 3; d++) {
        const int64_t here = places[d] * s.stride[d] + taps[d] * s.dilation[d] - s.padding[d];
        if (here < 0 || here >= s.image[d]) return -1;
        index = index * s.image[d] + here;
    }
    return index;
}

// At which position a tap meets a pixel; -1 where it does not.
int64_t position(const Shape& s, int64_t tap, int64_t at) {
    int64_t taps[3], pixels[3], index = 0;
    split(tap, s.kernel, taps), split(at, s.image, pixels);
    for (int d = 0; d < 3; d++) {
        const int64_t reach = pixels[d] + s.padding[d] - taps[d] * s.dilation[d];
        if (reach < 0 || reach % s.stride[d] || reach / s.stride[d] >= s.positions[d]) return -1;
        index = index * s.positions[d] + reach / s.stride[d];
    }
    return index;
}

enum Kind { FORWARD, DATA, FILTER };

void convolve(const void* data) {
    Work work;
    memcpy(&work, data, sizeof work);
    const Shape& s = work.s;
    const int64_t taps = s.taps(), places = s.places(), pixels = s.pixels();
    struct Place {
        void* at;
        int64_t index;
        int element;
        operator float() const { return load(at, index, element); }
        void operator=(float value) const { store(at, index, element, value); }
    };
    auto x = [&](int64_t n, int64_t g, int64_t c, int64_t at) {
        return Place{work.x, ((n * s.groups + g) * s.inner + c) * pixels + at, work.element};
    };
    auto y = [&](int64_t n, int64_t g, int64_t c, int64_t at) {
        return Place{work.y, ((n * s.groups + g) * s.outer + c) * places + at, work.element};
    };
    auto w = [&](int64_t g, int64_t o, int64_t i, int64_t tap) {
        return Place{work.w, ((g * s.outer + o) * s.inner + i) * taps + tap, work.element};
    };
    // By tap and place, the pixel that is met; by tap and pixel, the place.
    std::vector<int64_t> met;
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t at = 0; at < (work.kind == DATA ? pixels : places); at++)
            met.push_back(work.kind == DATA ? position(s, tap, at) : pixel(s, tap, at));
    memset(work.workspace, 0xff, work.bytes);
    for (int64_t g = 0; g < s.groups; g++) {
        if (work.kind == FORWARD)
            for (int64_t n = 0; n < s.batch; n++)
                for (int64_t o = 0; o < s.outer; o++)
                    for (int64_t place = 0; place < places; place++) {
                        Sum sum(work.round);
                        for (int64_t i = 0; i < s.inner; i++)
                            for (int64_t tap = 0; tap < taps; tap++) {
                                const int64_t at = met[tap * places + place];
                                sum.add(w(g, o, i, tap), at < 0 ? 0 : (float)x(n, g, i, at));
                            }
                        y(n, g, o, place) = sum.total + sum.sum;
                    }
        if (work.kind == DATA)
            for (int64_t n = 0; n < s.batch; n++)
                for (int64_t i = 0; i < s.inner; i++)
                    for (int64_t at = 0; at < pixels; at++) {
                        Sum sum(work.round);
                        for (int64_t o = 0; o < s.outer; o++)
                            for (int64_t tap = 0; tap < taps; tap++) {
                                const int64_t place = met[tap * pixels + at];
                                sum.add(w(g, o, i, tap), place < 0 ? 0 : (float)y(n, g, o, place));
                            }
                        x(n, g, i, at) = sum.total + sum.sum;
                    }
        if (work.kind == FILTER)
            for (int64_t o = 0; o < s.outer; o++)
                for (int64_t i = 0; i < s.inner; i++)
                    for (int64_t tap = 0; tap < taps; tap++) {
                        Sum sum(work.round);
                        for (int64_t n = 0; n < s.batch; n++)
                            for (int64_t place = 0; place < places; place++) {
                                const int64_t at = met[tap * places + place];
                                sum.add(y(n, g, o, place), at < 0 ? 0 : (float)x(n, g, i, at));
                            }
                        w(g, o, i, tap) = sum.total + sum.sum;
                    }
    }
    memset(work.workspace, 0xff, work.bytes);
    convolutions++;
    rounded += work.round ? 1 : 0;
    narrow += work.element != F32 ? 1 : 0;
}

struct Algorithm {
    int number;
    bool deterministic;
};
// In the order of the heuristics, which know of no limit: what is fast needs much, or adds up in any order.
const Algorithm ALGORITHMS[3][4] = {
    {{7, true}, {6, true}, {1, true}, {0, true}},
    {{0, false}, {5, true}, {4, true}, {1, true}},
    {{0, false}, {3, false}, {5, true}, {1, true}},
};

const Algorithm* known(int kind, int number) {
    for (const Algorithm& algorithm : ALGORITHMS[kind])
        if (algorithm.number == number) return &algorithm;
    return nullptr;
}

// What an algorithm needs; no status but OK where it does not do this. Transformed tiles are for windows of 3 × 3 alone.
int needs(int kind, int number, const Tensor* x, const Tensor* w, const Window* c, const Tensor* y, size_t* bytes) {
    Shape s;
    if (!fits(x, w, c, y, s)) return BAD_PARAM;
    if (!known(kind, number)) return NOT_SUPPORTED;
    const bool large = number == (kind == FORWARD ? 7 : 5), small = number == (kind == FORWARD ? 6 : 4);
    const bool tiles = c->rank == 2 && s.groups == 1 && s.kernel[1] == 3 && s.kernel[2] == 3 && s.stride[1] == 1 &&
                       s.stride[2] == 1 && s.dilation[1] == 1 && s.dilation[2] == 1;
    if ((large || (small && kind != FILTER)) && !tiles) return NOT_SUPPORTED;
    *bytes = large ? 9 * (size_t)(x->count() + y->count())
                   : (size_t)((kind == FORWARD ? w->count(1) : kind == DATA ? w->count(2) : w->count()) * 4);
    // As the real one's, where it is told to need no less.
    if (*bytes < least) *bytes = least;
    if (kind == FORWARD && number == 0) *bytes = least;
    return OK;
}

struct Answer {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

int heuristics(int kind, const Tensor* x, const Tensor* w, const Window* c, const Tensor* y, int most, int* count,
               Answer* answers) {
    Shape s;
    if (!fits(x, w, c, y, s) || most < 1) return refuse(BAD_PARAM);
    asked++;
    *count = 0;
    for (const Algorithm& algorithm : ALGORITHMS[kind])
        for (int math : {(int)ALLOW_CONVERSION, (int)DEFAULT_MATH, (int)TENSOR_OP_MATH, (int)FMA_MATH}) {
            // What is named is no more than what is allowed, and no conversion of what is short.
            const bool converts = x->element == F32 && c->math == ALLOW_CONVERSION;
            const bool is_named = math == FMA_MATH || (math == ALLOW_CONVERSION ? converts
                                  : (math == DEFAULT_MATH) == (x->element == F32) && c->math != FMA_MATH);
            if (!is_named || *count == most) continue;
            Answer answer = {algorithm.number, OK, -1, 0, algorithm.deterministic, math, {0, 0, 0}};
            answer.status = needs(kind, algorithm.number, x, w, c, y, &answer.memory);
            answers[(*count)++] = answer;
        }
    return OK;
}

int begin(int kind, Handle* handle, const float* alpha, const Tensor* x, const void* x_at, const Tensor* w,
          const void* w_at, const Window* c, const Tensor* y, const void* y_at, int algorithm, void* workspace,
          size_t bytes, const float* beta) {
    size_t needed = 0;
    Work work;
    if (!handle->stream || *alpha != 1 || *beta != 0 || !fits(x, w, c, y, work.s)) return refuse(BAD_PARAM);
    if (needs(kind, algorithm, x, w, c, y, &needed) || !known(kind, algorithm)->deterministic) return refuse(NOT_SUPPORTED);
    if (bytes < needed) return refuse(INSUFFICIENT);
    if ((uintptr_t)workspace % 256) return refuse(MISALIGNED);
    const auto is_there = [](const void* at, int64_t count) { return fakecuda_is_device((uint64_t)at, (size_t)count); };
    const int64_t each = width(x->element);
    if (!is_there(x_at, each * x->count()) || !is_there(w_at, each * w->count()) || !is_there(y_at, each * y->count()) ||
        (bytes && !fakecuda_is_device((uint64_t)workspace, bytes)))
        return refuse(BAD_PARAM);
    work.x = (char*)x_at, work.w = (char*)w_at, work.y = (char*)y_at;
    work.kind = kind, work.element = x->element;
    work.round = x->element != F32 || c->math == FMA_MATH || c->math == TENSOR_OP_MATH ? nullptr
                 : c->math == ALLOW_CONVERSION ? round_f16 : round_tf32;
    work.workspace = workspace, work.bytes = bytes;
    fakecuda_push(handle->stream, convolve, &work, sizeof work);
    return OK;
}

template <class T>
int create(T** made) {
    alive++;
    return *made = new T, OK;
}
template <class T>
int destroy(T* made) {
    alive--;
    return delete made, OK;
}

}  // namespace

// How many convolutions it has done (0), how many of them with rounded numbers (1), what it has refused (2), how many handles
// and descriptors there are (3), how often its heuristics were asked (4), and how many convolutions were of short floats (5).
API uint64_t fakednn_count(unsigned what) {
    return what == 0 ? convolutions : what == 1 ? rounded : what == 2 ? refused : what == 3 ? alive : what == 4 ? asked : narrow;
}
// The fewest bytes of workspace that any algorithm needs.
API void fakednn_least(uint64_t bytes) { least = bytes; }

API size_t cudnnGetVersion() { return 91900; }
API const char* cudnnGetErrorString(int status) {
    return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}
API int cudnnCreate(Handle** handle) { return create(handle); }
API int cudnnDestroy(Handle* handle) { return destroy(handle); }
API int cudnnSetStream(Handle* handle, void* stream) { return handle->stream = stream, OK; }
API int cudnnCreateTensorDescriptor(Tensor** tensor) { return create(tensor); }
API int cudnnDestroyTensorDescriptor(Tensor* tensor) { return destroy(tensor); }
API int cudnnCreateFilterDescriptor(Tensor** tensor) { return create(tensor); }
API int cudnnDestroyFilterDescriptor(Tensor* tensor) { return destroy(tensor); }
API int cudnnCreateConvolutionDescriptor(Window** window) { return create(window); }
API int cudnnDestroyConvolutionDescriptor(Window* window) { return destroy(window); }

API int cudnnSetTensorNdDescriptor(Tensor* tensor, int type, int rank, const int* dims, const int* strides) {
    if (!tensor->set(type) || rank < 4 || rank > 5) return refuse(BAD_PARAM);
    int64_t packed = 1;
    for (int d = rank - 1; d >= 0; d--) {
        if (dims[d] < 1 || strides[d] != packed) return refuse(BAD_PARAM);
        packed *= tensor->dims[d] = dims[d];
    }
    return tensor->rank = rank, packed > INT32_MAX ? refuse(NOT_SUPPORTED) : OK;
}
API int cudnnSetFilterNdDescriptor(Tensor* tensor, int type, int format, int rank, const int* dims) {
    if (!tensor->set(type) || format != NCHW || rank < 4 || rank > 5) return refuse(BAD_PARAM);
    for (int d = 0; d < rank; d++) tensor->dims[d] = dims[d];
    return tensor->rank = rank, OK;
}
API int cudnnSetConvolutionNdDescriptor(Window* window, int rank, const int* padding, const int* stride,
                                        const int* dilation, int mode, int type) {
    if (mode != CROSS_CORRELATION || type != FLOAT || rank < 2 || rank > 3) return refuse(BAD_PARAM);
    for (int d = 0; d < rank; d++) {
        if (padding[d] < 0 || stride[d] < 1 || dilation[d] < 1) return refuse(BAD_PARAM);
        window->padding[d] = padding[d], window->stride[d] = stride[d], window->dilation[d] = dilation[d];
    }
    return window->rank = rank, OK;
}
API int cudnnSetConvolutionGroupCount(Window* window, int groups) { return window->groups = groups, OK; }
API int cudnnSetConvolutionMathType(Window* window, int math) {
    return window->math = math, math >= DEFAULT_MATH && math <= FMA_MATH ? OK : refuse(NOT_SUPPORTED);
}

API int cudnnGetConvolutionForwardAlgorithm_v7(Handle*, const Tensor* x, const Tensor* w, const Window* c,
                                               const Tensor* y, int most, int* count, Answer* answers) {
    return heuristics(FORWARD, x, w, c, y, most, count, answers);
}
API int cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle*, const Tensor* w, const Tensor* y, const Window* c,
                                                    const Tensor* x, int most, int* count, Answer* answers) {
    return heuristics(DATA, x, w, c, y, most, count, answers);
}
API int cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle*, const Tensor* x, const Tensor* y, const Window* c,
                                                      const Tensor* w, int most, int* count, Answer* answers) {
    return heuristics(FILTER, x, w, c, y, most, count, answers);
}
API int cudnnGetConvolutionForwardWorkspaceSize(Handle*, const Tensor* x, const Tensor* w, const Window* c,
                                                const Tensor* y, int algorithm, size_t* bytes) {
    return needs(FORWARD, algorithm, x, w, c, y, bytes);
}
API int cudnnGetConvolutionBackwardDataWorkspaceSize(Handle*, const Tensor* w, const Tensor* y, const Window* c,
                                                     const Tensor* x, int algorithm, size_t* bytes) {
    return needs(DATA, algorithm, x, w, c, y, bytes);
}
API int cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle*, const Tensor* x, const Tensor* y, const Window* c,
                                                       const Tensor* w, int algorithm, size_t* bytes) {
    return needs(FILTER, algorithm, x, w, c, y, bytes);
}
API int cudnnConvolutionForward(Handle* handle, const float* alpha, const Tensor* x, const void* x_at, const Tensor* w,
                                const void* w_at, const Window* c, int algorithm, void* workspace, size_t bytes,
                                const float* beta, const Tensor* y, void* y_at) {
    return begin(FORWARD, handle, alpha, x, x_at, w, w_at, c, y, y_at, algorithm, workspace, bytes, beta);
}
API int cudnnConvolutionBackwardData(Handle* handle, const float* alpha, const Tensor* w, const void* w_at,
                                     const Tensor* y, const void* y_at, const Window* c, int algorithm, void* workspace,
                                     size_t bytes, const float* beta, const Tensor* x, void* x_at) {
    return begin(DATA, handle, alpha, x, x_at, w, w_at, c, y, y_at, algorithm, workspace, bytes, beta);
}
API int cudnnConvolutionBackwardFilter(Handle* handle, const float* alpha, const Tensor* x, const void* x_at,
                                       const Tensor* y, const void* y_at, const Window* c, int algorithm,
                                       void* workspace, size_t bytes, const float* beta, const Tensor* w, void* w_at) {
    return begin(FILTER, handle, alpha, x, x_at, w, w_at, c, y, y_at, algorithm, workspace, bytes, beta);
}
