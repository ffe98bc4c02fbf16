// CUDA that computes nothing: a driver, an NVRTC, a cuBLAS and a cuDNN in one library, which is installed under the name of
// each. Every call answers that it is done, so models of full size open and "run" in a moment.
//
// Memory is only counted. Time is simulated: each stream has a clock, kernels take 5 us, products and convolutions go at
// 50 TFLOP/s, copies at 50 GB/s and 10 us, so that what is measured is the same from run to run.
//
// NULLCUDA_MEMORY: bytes of the device (79 GiB). NULLCUDA_HELD: bytes that contexts hold (512 MiB). NULLCUDA_DEVICES: how many
// devices there are (1). NULLCUDA_REGISTER=0: memory of the process is not pinned. NULLCUDA_DNN=0: cuDNN has no engine.
// NULLCUDA_LOG: a file to which a line is added for each call that matters:
//   alloc BYTES LIVE | free BYTES LIVE | chunk BYTES LIVE | register BYTES | hostalloc BYTES | memset BYTES
//   launch KERNEL BLOCKS | product BATCH M N K WORKSPACE | forward, data or filter FLOP WORKSPACE | in BYTES | out BYTES
//   time, where an event that has a time is recorded | capture | captured | replay | blas PATH | dnn PATH | nvrtc PATH
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum Result { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500 };

std::mutex all;

uint64_t setting(const char* name, uint64_t otherwise) {
    const char* text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

__attribute__((format(printf, 1, 2))) void say(const char* format, ...) {
    static const char* path = getenv("NULLCUDA_LOG");
    if (!path) return;
    // Each copy of the library adds lines to the same file.
    static const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    char line[512];
    va_list rest;
    va_start(rest, format);
    int length = vsnprintf(line, sizeof line - 1, format, rest);
    va_end(rest);
    length = std::min(length, (int)sizeof line - 2);
    line[length] = '\n';
    if (write(file, line, (size_t)length + 1) < 0) abort();
}

// The file that this copy of the library lies in.
const char* own_path() {
    static Dl_info own;
    return dladdr((void*)own_path, &own) ? own.dli_fname : "";
}

// Seconds: of the host's thread, which is ahead of the device, and in what is written down.
double host, captured;
bool is_capturing;

struct Stream {
    double time = 0;
    void take(double seconds) {
        std::lock_guard<std::mutex> guard(all);
        host += 1e-6;
        if (is_capturing) captured += seconds;
        else time = std::max(time, host) + seconds;
    }
};
struct Event {
    double time = 0;
    bool times = false;
};

uint64_t capacity() { return setting("NULLCUDA_MEMORY", (uint64_t)79 << 30); }
uint64_t held;
uint64_t live;
// Addresses are never those of memory before.
uint64_t next_address = (uint64_t)1 << 40;
std::map<uint64_t, uint64_t> memories;

bool fits(uint64_t bytes) { return bytes <= capacity() && live + held <= capacity() - bytes; }

bool is_device(uint64_t at, uint64_t bytes) {
    std::lock_guard<std::mutex> guard(all);
    auto found = memories.upper_bound(at);
    if (found == memories.begin()) return false;
    --found;
    return at + bytes <= found->first + found->second;
}

uint64_t add(uint64_t bytes) {
    const uint64_t at = next_address, whole = (bytes + 0x1fffff) & ~(uint64_t)0x1fffff;
    next_address += whole;
    memories[at] = whole;
    return at;
}

struct Module {
    std::string image;
    bool has(const std::string& kernel) const {
        if (image.compare(0, 4, "\x7f" "ELF")) return true;
        const std::string section = ".text." + kernel;
        return image.find(section.c_str(), 0, section.size() + 1) != std::string::npos;
    }
};

// Of an image in the form of ELF: whatever its headers and sections reach.
size_t size_of_image(const char* image) {
    if (memcmp(image, "\x7f" "ELF", 4)) return strlen(image);
    uint64_t at, end;
    uint16_t each, count;
    memcpy(&at, image + 0x28, 8), memcpy(&each, image + 0x3a, 2), memcpy(&count, image + 0x3c, 2);
    end = at + (uint64_t)each * count;
    for (unsigned i = 0; i < count; i++) {
        uint32_t type;
        uint64_t from, bytes;
        const char* section = image + at + i * each;
        memcpy(&type, section + 4, 4), memcpy(&from, section + 0x18, 8), memcpy(&bytes, section + 0x20, 8);
        if (type != 8) end = std::max(end, from + bytes);
    }
    return end;
}

}  // namespace

API int cuInit(unsigned) { return setting("NULLCUDA_DEVICES", 1) ? OK : NO_DEVICE; }
API int cuDriverGetVersion(int* version) {
#if defined(ANCIENT)
    *version = 11000;
#elif defined(OLD)
    *version = 12040;
#else
    *version = 13000;
#endif
    return OK;
}
API int cuGetErrorName(int error, const char** name) {
    *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == NO_DEVICE   ? "CUDA_ERROR_NO_DEVICE"
            : error == NOT_FOUND   ? "CUDA_ERROR_NOT_FOUND"
                                   : "CUDA_ERROR_INVALID_VALUE";
    return OK;
}
API int cuGetErrorString(int error, const char** text) { return cuGetErrorName(error, text); }
API int cuDeviceGetCount(int* count) { return *count = (int)setting("NULLCUDA_DEVICES", 1), OK; }
API int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, OK; }
API int cuDeviceGetName(char* name, int length, int) { return strncpy(name, "null H100", (size_t)length), OK; }
API int cuDeviceGetAttribute(int* value, int which, int) {
    // Kilohertz of the processors and of the memory, width of its bus, processors, bytes of the second cache, capability.
    const std::map<int, int> known = {{13, 1980000}, {16, 132}, {36, 2619000}, {37, 5120}, {38, 50 << 20}, {75, 9}, {76, 0},
                                      {102, 1}};
    const auto found = known.find(which);
    return *value = found == known.end() ? 0 : found->second, OK;
}
API int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = capacity(), OK; }
API int cuDevicePrimaryCtxRetain(void** context, int) {
    held = setting("NULLCUDA_HELD", (uint64_t)512 << 20);
    return *context = &all, OK;
}
API int cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API int cuCtxSetCurrent(void*) { return OK; }
API int cuCtxSynchronize() { return OK; }

API int cuStreamCreate(Stream** stream, unsigned) { return *stream = new Stream, OK; }
API int cuStreamDestroy_v2(Stream* stream) { return delete stream, OK; }
// Nobody else works in the default stream, which is null.
API int cuStreamSynchronize(Stream* stream) { return host = stream ? std::max(host, stream->time) : host, OK; }
API int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
    if (!is_capturing) stream->time = std::max(stream->time, event->time);
    return OK;
}
API int cuEventCreate(Event** event, unsigned flags) {
    *event = new Event;
    (*event)->times = !(flags & 2);
    return OK;
}
API int cuEventDestroy_v2(Event* event) { return delete event, OK; }
API int cuEventRecord(Event* event, Stream* stream) {
    if (event->times) say("time");
    stream->time = std::max(stream->time, host);
    return event->time = stream->time, OK;
}
API int cuEventSynchronize(Event* event) { return host = std::max(host, event->time), OK; }
static int elapsed(float* milliseconds, Event* from, Event* to) {
    return *milliseconds = (float)(1e3 * (to->time - from->time)), from->times && to->times ? OK : INVALID;
}
#ifdef OLD
API int cuEventElapsedTime(float* milliseconds, Event* from, Event* to) { return elapsed(milliseconds, from, to); }
#else
API int cuEventElapsedTime_v2(float* milliseconds, Event* from, Event* to) { return elapsed(milliseconds, from, to); }
#endif

API int cuMemGetInfo_v2(size_t* free, size_t* total) {
    std::lock_guard<std::mutex> guard(all);
    *total = capacity(), *free = fits(0) ? capacity() - live - held : 0;
    return OK;
}
API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    std::lock_guard<std::mutex> guard(all);
    if (!fits(bytes)) return OUT_OF_MEMORY;
    live += bytes;
    *address = add(bytes);
    memories[*address] = bytes;
    say("alloc %zu %llu", bytes, (unsigned long long)live);
    return OK;
}
API int cuMemFree_v2(uint64_t address) {
    std::lock_guard<std::mutex> guard(all);
    auto found = memories.find(address);
    if (found == memories.end()) return INVALID;
    live -= found->second;
    say("free %llu %llu", (unsigned long long)found->second, (unsigned long long)live);
    memories.erase(found);
    return OK;
}
API int cuMemGetAllocationGranularity(size_t* granularity, const void*, int) { return *granularity = 2 << 20, OK; }
API int cuMemAddressReserve(uint64_t* at, size_t bytes, size_t, uint64_t, unsigned long long) {
    std::lock_guard<std::mutex> guard(all);
    return *at = add(bytes), OK;
}
API int cuMemAddressFree(uint64_t at, size_t) {
    std::lock_guard<std::mutex> guard(all);
    return memories.erase(at) ? OK : INVALID;
}
static std::map<uint64_t, uint64_t> chunks;
API int cuMemCreate(uint64_t* handle, size_t bytes, const void*, unsigned long long) {
    std::lock_guard<std::mutex> guard(all);
    if (!fits(bytes)) return OUT_OF_MEMORY;
    live += bytes;
    static uint64_t last;
    chunks[*handle = ++last] = bytes;
    say("chunk %zu %llu", bytes, (unsigned long long)live);
    return OK;
}
API int cuMemRelease(uint64_t handle) {
    std::lock_guard<std::mutex> guard(all);
    auto found = chunks.find(handle);
    if (found == chunks.end()) return INVALID;
    live -= found->second;
    chunks.erase(found);
    return OK;
}
API int cuMemMap(uint64_t, size_t, size_t, uint64_t, unsigned long long) { return OK; }
API int cuMemUnmap(uint64_t, size_t) { return OK; }
API int cuMemSetAccess(uint64_t, size_t, const void*, size_t) { return OK; }

API int cuMemHostRegister_v2(void*, size_t bytes, unsigned) {
    if (!setting("NULLCUDA_REGISTER", 1)) return INVALID;
    say("register %zu", bytes);
    return OK;
}
API int cuMemHostUnregister(void*) { return OK; }
// Pages that nobody writes take no memory.
static std::map<void*, size_t> pinned;
API int cuMemHostAlloc(void** at, size_t bytes, unsigned) {
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, -1, 0);
    if (*at == MAP_FAILED) return OUT_OF_MEMORY;
    madvise(*at, bytes, MADV_HUGEPAGE);
    std::lock_guard<std::mutex> guard(all);
    pinned[*at] = bytes;
    say("hostalloc %zu", bytes);
    return OK;
}
API int cuMemFreeHost(void* at) {
    std::lock_guard<std::mutex> guard(all);
    auto found = pinned.find(at);
    if (found == pinned.end()) return INVALID;
    munmap(at, found->second);
    pinned.erase(found);
    return OK;
}
#ifndef ANCIENT
API int cuMemsetD8Async(uint64_t to, unsigned char, size_t bytes, Stream*) {
    say("memset %zu", bytes);
    return is_device(to, bytes) ? OK : INVALID;
}
#endif
static int copy(const char* way, uint64_t device, size_t bytes, Stream* stream) {
    if (!is_device(device, bytes)) return INVALID;
    say("%s %zu", way, bytes);
    return stream->take(1e-5 + (double)bytes / 50e9), OK;
}
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void*, size_t bytes, Stream* stream) {
    return copy("in", to, bytes, stream);
}
API int cuMemcpyDtoHAsync_v2(void*, uint64_t from, size_t bytes, Stream* stream) {
    return copy("out", from, bytes, stream);
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
    return is_device(from, bytes) ? copy("within", to, bytes, stream) : INVALID;
}
// Of memory here, its type (2) is that of a device (2), and the device's number (9) is 0.
API int cuPointerGetAttribute(unsigned* value, int attribute, uint64_t at) {
    if (!is_device(at, 1)) return INVALID;
    return *value = attribute == 2 ? 2 : 0, OK;
}

API int cuModuleLoadData(Module** module, const void* image) {
    const char* start = (const char*)image;
    return *module = new Module{std::string(start, size_of_image(start))}, OK;
}
API int cuModuleUnload(Module* module) { return delete module, OK; }
API int cuModuleGetFunction(const std::string** function, Module* module, const char* name) {
    if (!module->has(name)) return NOT_FOUND;
    static std::map<std::string, std::string> names;
    std::lock_guard<std::mutex> guard(all);
    return *function = &names.emplace(name, name).first->second, OK;
}
API int cuLaunchKernel(const std::string* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                       unsigned, Stream* stream, void**, void**) {
    if (blocks == 0 || threads != 256) return INVALID;
    say("launch %s %u", function->c_str(), blocks);
    return stream->take(5e-6), OK;
}
API int cuStreamBeginCapture_v2(Stream*, int) {
    say("capture");
    return is_capturing = true, captured = 0, OK;
}
API int cuStreamEndCapture(Stream*, double** graph) {
    say("captured");
    return is_capturing = false, *graph = new double(captured), OK;
}
API int cuGraphInstantiateWithFlags(double** exec, double* graph, unsigned long long) { return *exec = new double(*graph), OK; }
API int cuGraphDestroy(double* graph) { return delete graph, OK; }
API int cuGraphExecDestroy(double* graph) { return delete graph, OK; }
API int cuGraphLaunch(double* graph, Stream* stream) {
    say("replay");
    return stream->take(*graph), OK;
}

// NVRTC.
API int nvrtcVersion(int* major, int* minor) {
    say("nvrtc %s", own_path());
    return *major = 13, *minor = 0, 0;
}
API const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR"; }
API int nvrtcCreateProgram(char** program, const char*, const char*, int, const char**, const char**) {
    return *program = strdup("null image"), 0;
}
API int nvrtcDestroyProgram(char** program) { return free(*program), *program = nullptr, 0; }
API int nvrtcCompileProgram(char*, int, const char**) { return 0; }
API int nvrtcGetProgramLogSize(char*, size_t* size) { return *size = 1, 0; }
API int nvrtcGetProgramLog(char*, char* log) { return *log = 0, 0; }
API int nvrtcGetCUBINSize(char* program, size_t* size) { return *size = strlen(program) + 1, 0; }
API int nvrtcGetCUBIN(char* program, char* image) { return strcpy(image, program), 0; }

// cuBLAS.
namespace {
struct Blas {
    Stream* stream;
    size_t workspace;
};
}  // namespace
API int cublasCreate_v2(Blas** handle) {
    say("blas %s", own_path());
    return *handle = new Blas{}, 0;
}
API int cublasDestroy_v2(Blas* handle) { return delete handle, 0; }
API int cublasSetStream_v2(Blas* handle, Stream* stream) { return handle->stream = stream, handle->workspace = 0, 0; }
API int cublasSetAtomicsMode(Blas*, int) { return 0; }
API int cublasGetVersion_v2(Blas*, int* version) { return *version = 130100, 0; }
API int cublasSetWorkspace_v2(Blas* handle, void* at, size_t bytes) {
    return handle->workspace = bytes, (uintptr_t)at % 256 ? 7 : 0;
}
API int cublasGemmStridedBatchedEx(Blas* handle, int, int, int m, int n, int k, const void*, const void*, int, int, long long,
                                   const void*, int, int, long long, const void*, void*, int, int, long long, int batch,
                                   int, int) {
    say("product %d %d %d %d %zu", batch, m, n, k, handle->workspace);
    return handle->stream->take(2.0 * batch * m * n * k / 50e12), 0;
}
API int cublasGemmEx(Blas* handle, int, int, int m, int n, int k, const void*, const void*, int, int, const void*, int, int,
                     const void*, void*, int, int, int, int) {
    say("product 1 %d %d %d %zu", m, n, k, handle->workspace);
    return handle->stream->take(2.0 * m * n * k / 50e12), 0;
}

// cuDNN.
namespace {
struct Dnn {
    Stream* stream;
};
}  // namespace
API int cudnnCreate(Dnn** handle) {
    say("dnn %s", own_path());
    return *handle = new Dnn{}, 0;
}
API int cudnnDestroy(Dnn* handle) { return delete handle, 0; }
API int cudnnSetStream(Dnn* handle, Stream* stream) { return handle->stream = stream, 0; }
API size_t cudnnGetVersion() { return 91900; }

#include "fake_backend.h"

int backend::refuse(int status) { return status; }
void backend::lives(int) {}
std::vector<backend::Engine> backend::engines(const Convolution& of) {
    if (!setting("NULLCUDA_DNN", 1)) return {};
    const int64_t copies = 4 * (of.x.count() + of.w.count() + of.y.count()) + 16;
    return {{9, {TENSOR_CORE}, copies}, {67, {}, of.kind == FILTER ? copies : 0}, {1, {}, 0}};
}
int backend::execute(void* handle, const Convolution& of, const Engine& by, char*, char*, char*, void*) {
    const char* way = of.kind == FORWARD ? "forward" : of.kind == DATA ? "data" : "filter";
    const double flops = 2.0 * (double)of.y.count() * (double)(of.w.count() / of.w.dims[0]);
    say("%s %.0f %lld", way, flops, (long long)by.workspace);
    return ((Dnn*)handle)->stream->take(flops / 50e12), 0;
}
