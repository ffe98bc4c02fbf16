// A cuDNN without a device, for the driver of fake.cpp: convolutions in two and three dimensions and their gradients, each
// with several engines that differ in workspace, rounding and determinism, and in the convolutions that they support. It refuses
// the calls that the real one refuses, and to run engines that are not deterministic. An engine needs its whole workspace, and
// writes over it before and after. FAKEDNN_VERSION: its version (91900).
#include <cstdlib>
#include <initializer_list>
#include <vector>

#include "fake_library.h"

#include "fake_backend.h"

namespace {

using backend::Convolution;
using backend::Engine;
using backend::OK;

enum { FLOAT = 0, HALF = 2, BFLOAT16 = 9 };

std::atomic<uint64_t> convolutions, rounded, narrow, refused, alive, asked, least;

struct Handle {
    void* stream = nullptr;
};

// What an engine is to be asked for: the window in three dimensions, missing ones first.
struct Shape {
    int64_t batch, groups, inner, outer;
    int64_t image[3], positions[3], kernel[3], stride[3], dilation[3], padding[3];

    int64_t pixels() const { return image[0] * image[1] * image[2]; }
    int64_t places() const { return positions[0] * positions[1] * positions[2]; }
    int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

bool packed(const backend::Tensor& tensor) {
    int64_t next = 1;
    for (size_t d = tensor.dims.size(); d-- > 0; next *= tensor.dims[d])
        if (tensor.dims[d] < 1 || tensor.strides[d] != next) return false;
    return next <= INT32_MAX;
}

bool fits(const Convolution& of, Shape& s) {
    const auto &x = of.x.dims, &w = of.w.dims, &y = of.y.dims;
    const size_t rank = of.before.size();
    if (of.x.element != FLOAT && of.x.element != HALF && of.x.element != BFLOAT16) return false;
    if (of.x.element != of.w.element || of.x.element != of.y.element) return false;
    if (rank < 2 || rank > 3 || x.size() != rank + 2 || w.size() != rank + 2 || y.size() != rank + 2) return false;
    if (of.stride.size() != rank || of.dilation.size() != rank || !packed(of.x) || !packed(of.w) || !packed(of.y)) return false;
    if (x[0] != y[0] || x[1] % w[1] || y[1] != w[0]) return false;
    s.batch = x[0], s.groups = x[1] / w[1], s.inner = w[1], s.outer = w[0] / s.groups;
    if (w[0] % s.groups) return false;
    for (size_t d = 0; d < 3; d++) {
        s.image[d] = s.positions[d] = s.kernel[d] = s.stride[d] = s.dilation[d] = 1, s.padding[d] = 0;
        if (d + rank < 3) continue;
        const size_t at = d + rank - 3;
        s.image[d] = x[2 + at], s.positions[d] = y[2 + at], s.kernel[d] = w[2 + at];
        s.stride[d] = of.stride[at], s.dilation[d] = of.dilation[at], s.padding[d] = of.before[at];
        if (of.before[at] < 0 || of.after[at] < 0 || of.stride[at] < 1 || of.dilation[at] < 1) return false;
        const int64_t free = s.image[d] + of.before[at] + of.after[at] - ((s.kernel[d] - 1) * s.dilation[d] + 1);
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

using backend::DATA, backend::FILTER, backend::FORWARD;

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

int element(int type) { return type == HALF ? F16 : type == BFLOAT16 ? BF16 : F32; }

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

int backend::refuse(int status) { return refused++, status; }
void backend::lives(int change) { alive += (uint64_t)(int64_t)change; }

// What is fast needs much, or adds up in any order. The tens of a number say what is rounded: nothing, to TF32, to f16.
// Transformed tiles are for windows of 3 x 3 alone.
std::vector<Engine> backend::engines(const Convolution& of) {
    struct Algorithm {
        int64_t number;
        bool deterministic, tiles;
        int64_t workspace;
    };
    Shape s;
    std::vector<Engine> all;
    if (!fits(of, s)) return all;
    asked++;
    const int64_t large = 9 * (of.x.count() + of.y.count()), tap = s.taps() * 4;
    const std::vector<Algorithm> forward = {{7, true, true, large}, {6, true, true, s.inner * tap}, {0, true, false, 0}};
    const std::vector<Algorithm> data = {{3, false, false, 0}, {5, true, true, large}, {4, true, true, tap}, {1, true, false, 0}};
    const std::vector<Algorithm> filter = {{3, false, false, 0}, {5, true, true, large}, {4, true, false, of.w.count() * 4},
                                           {1, true, false, 0}};
    const bool tiles = of.before.size() == 2 && s.groups == 1 && s.kernel[1] == 3 && s.kernel[2] == 3 && s.stride[1] == 1 &&
                       s.stride[2] == 1 && s.dilation[1] == 1 && s.dilation[2] == 1;
    for (int math : {2, 1, 0})
        for (const Algorithm& one : of.kind == FORWARD ? forward : of.kind == DATA ? data : filter) {
            // Short floats are not rounded.
            if ((one.tiles && !tiles) || (math && of.x.element != FLOAT)) continue;
            Engine engine = {one.number + 10 * math, {}, one.workspace};
            if (math) engine.notes.push_back(TENSOR_CORE);
            if (math == 2) engine.notes.push_back(DOWN_CONVERT);
            if (!one.deterministic) engine.notes.push_back(NONDETERMINISTIC);
            // As the real one's, where it is told to need no less.
            if (engine.workspace < (int64_t)least) engine.workspace = (int64_t)least;
            all.push_back(engine);
        }
    return all;
}

int backend::execute(void* handle, const Convolution& of, const Engine& by, char* x, char* w, char* y, void* workspace) {
    Work work;
    if (!handle || !((Handle*)handle)->stream || !fits(of, work.s)) return BAD_PARAM;
    for (int note : by.notes)
        if (note == NONDETERMINISTIC) return NOT_SUPPORTED;
    const size_t bytes = (size_t)by.workspace;
    if ((uintptr_t)workspace % 256) return MISALIGNED;
    const auto is_there = [](const void* at, int64_t count) { return fakecuda_is_device((uint64_t)at, (size_t)count); };
    work.element = element(of.x.element);
    const int64_t each = width(work.element);
    if (!is_there(x, each * of.x.count()) || !is_there(w, each * of.w.count()) || !is_there(y, each * of.y.count()) ||
        (bytes && !fakecuda_is_device((uint64_t)workspace, bytes)))
        return BAD_PARAM;
    work.x = x, work.w = w, work.y = y, work.kind = of.kind;
    work.round = by.number >= 20 ? round_f16 : by.number >= 10 ? round_tf32 : nullptr;
    work.workspace = workspace, work.bytes = bytes;
    fakecuda_push(((Handle*)handle)->stream, convolve, &work, sizeof work);
    return OK;
}

// How many convolutions it has done (0), how many of them with rounded numbers (1), what it has refused (2), how many handles
// and descriptors there are (3), how often its engines were asked for (4), and how many convolutions were of short floats (5).
API uint64_t fakednn_count(unsigned what) {
    return what == 0 ? convolutions : what == 1 ? rounded : what == 2 ? refused : what == 3 ? alive : what == 4 ? asked : narrow;
}
// The fewest bytes of workspace that any engine needs.
API void fakednn_least(uint64_t bytes) { least = bytes; }

API size_t cudnnGetVersion() {
    const char* version = getenv("FAKEDNN_VERSION");
    return version ? strtoull(version, nullptr, 10) : 91900;
}
API int cudnnCreate(Handle** handle) { return create(handle); }
API int cudnnDestroy(Handle* handle) { return destroy(handle); }
API int cudnnSetStream(Handle* handle, void* stream) { return handle->stream = stream, OK; }
