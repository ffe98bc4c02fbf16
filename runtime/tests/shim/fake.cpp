// A driver of CUDA without a device: streams are threads, events order them, memory has a budget, and kernels
// are those of the shim.
//
// FAKECUDA_MEM: how many bytes the device has. fakecuda_slow: how long operations of a kind take at least, in microseconds;
// FAKECUDA_SLOW: the same of kernels, copies to the host and copies to the device, such as "0 200 0".
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

extern "C" int shim_launch(const char* name, unsigned blocks, unsigned threads, void** args);
extern "C" const char* shim_kernel(unsigned index);
extern "C" unsigned shim_words(const char* name, unsigned index);
extern "C" void shim_module(const char* name);

namespace {

enum Result { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 101, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL = 700 };
enum Kind { KERNEL_RUN = 0, TO_HOST = 1, TO_DEVICE = 2 };

std::atomic<unsigned> slow[3];
const bool slowed = [] {
    const char* text = getenv("FAKECUDA_SLOW");
    unsigned micros[3] = {0, 0, 0};
    if (text) sscanf(text, "%u %u %u", &micros[0], &micros[1], &micros[2]);
    for (int kind = 0; kind < 3; kind++) slow[kind] = micros[kind];
    return text != nullptr;
}();
std::atomic<uint64_t> waits, records, allocations, launches, live_bytes;
std::atomic<bool> failed;

void linger(Kind kind) {
    if (unsigned micros = slow[kind]) std::this_thread::sleep_for(std::chrono::microseconds(micros));
}

// How often something was recorded, and how often that has come.
struct Event {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t recorded = 0, done = 0;
    std::chrono::steady_clock::time_point at;
    bool times = false;
    // The stream that is written down, where it was recorded last.
    struct Stream* captured = nullptr;

    void finish(uint64_t ticket) {
        std::lock_guard<std::mutex> guard(mutex);
        at = std::chrono::steady_clock::now();
        if (ticket > done) done = ticket;
        changed.notify_all();
    }
    void wait(uint64_t ticket) {
        std::unique_lock<std::mutex> guard(mutex);
        changed.wait(guard, [&] { return done >= ticket; });
    }
    // When it came last, if all of it has come.
    int reached(std::chrono::steady_clock::time_point* when) {
        std::lock_guard<std::mutex> guard(mutex);
        *when = at;
        return !times || recorded == 0 ? INVALID : done < recorded ? NOT_READY : OK;
    }
};
using EventRef = std::shared_ptr<Event>;

using Work = std::function<void()>;

struct Graph {
    std::vector<Work> works;
};

struct Stream {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Work> queue;
    bool ends = false, busy = false;
    Graph* graph = nullptr;
    std::thread thread;

    Stream() : thread([this] { run(); }) {}
    ~Stream() {
        {
            std::lock_guard<std::mutex> guard(mutex);
            ends = true;
        }
        changed.notify_all();
        thread.join();
    }
    void run() {
        std::unique_lock<std::mutex> guard(mutex);
        for (;;) {
            changed.wait(guard, [&] { return ends || !queue.empty(); });
            if (queue.empty()) return;
            Work work = std::move(queue.front());
            queue.pop_front();
            busy = true;
            guard.unlock();
            work();
            guard.lock();
            busy = false;
            changed.notify_all();
        }
    }
    void push(Work work) {
        if (graph) {
            graph->works.push_back(std::move(work));
            return;
        }
        {
            std::lock_guard<std::mutex> guard(mutex);
            queue.push_back(std::move(work));
        }
        changed.notify_all();
    }
    void drain() {
        std::unique_lock<std::mutex> guard(mutex);
        changed.wait(guard, [&] { return queue.empty() && !busy; });
    }
};

std::mutex all;
std::map<uint64_t, uint64_t> memories;
std::map<uintptr_t, size_t> pinned;
std::set<Stream*> streams;

uint64_t capacity() {
    const char* text = getenv("FAKECUDA_MEM");
    return text ? strtoull(text, nullptr, 10) : (uint64_t)1 << 34;
}

bool is_pinned(const void* at, size_t bytes) {
    std::lock_guard<std::mutex> guard(all);
    auto next = pinned.upper_bound((uintptr_t)at);
    if (next == pinned.begin()) return false;
    auto& range = *--next;
    return (uintptr_t)at + bytes <= range.first + range.second;
}

bool is_device(uint64_t at, size_t bytes) {
    std::lock_guard<std::mutex> guard(all);
    auto next = memories.upper_bound(at);
    if (next == memories.begin()) return false;
    auto& range = *--next;
    return at + bytes <= range.first + range.second;
}

std::map<std::string, std::string*> functions;

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

// What tests set and ask.
API void fakecuda_slow(unsigned kind, unsigned micros) { slow[kind] = micros; }
API uint64_t fakecuda_count(unsigned what) {
    return what == 0 ? waits : what == 1 ? records : what == 2 ? allocations : launches;
}

// What the library of fake_cublas.cpp asks for.
API int fakecuda_is_device(uint64_t at, size_t bytes) { return is_device(at, bytes); }
API void fakecuda_push(Stream* stream, void (*work)(const void*), const void* data, size_t bytes) {
    const std::string kept((const char*)data, bytes);
    stream->push([=] {
        linger(KERNEL_RUN);
        work(kept.data());
    });
}

API int cuInit(unsigned) { return OK; }
API int cuGetErrorName(int error, const char** name) {
    *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == INVALID     ? "CUDA_ERROR_INVALID_VALUE"
            : error == NOT_FOUND   ? "CUDA_ERROR_NOT_FOUND"
            : error == NOT_READY   ? "CUDA_ERROR_NOT_READY"
                                   : "CUDA_ERROR_ILLEGAL_ADDRESS";
    return OK;
}
API int cuGetErrorString(int error, const char** text) { return cuGetErrorName(error, text); }
API int cuDeviceGetCount(int* count) { return *count = 1, OK; }
API int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, OK; }
API int cuDeviceGetAttribute(int* value, int which, int) { return *value = which == 75 ? 9 : 0, OK; }
API int cuDeviceGetName(char* name, int length, int) { return strncpy(name, "a processor", (size_t)length), OK; }
API int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &all, OK; }
API int cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API int cuCtxSetCurrent(void*) { return OK; }

API int cuStreamCreate(Stream** stream, unsigned) {
    *stream = new Stream;
    std::lock_guard<std::mutex> guard(all);
    streams.insert(*stream);
    return OK;
}
API int cuStreamDestroy_v2(Stream* stream) {
    {
        std::lock_guard<std::mutex> guard(all);
        streams.erase(stream);
    }
    delete stream;
    return OK;
}
API int cuStreamSynchronize(Stream* stream) {
    if (stream->graph) return INVALID;
    stream->drain();
    return failed.exchange(false) ? ILLEGAL : OK;
}

API int cuEventCreate(EventRef** event, unsigned flags) {
    *event = new EventRef(new Event);
    (**event)->times = !(flags & 2);
    return OK;
}
API int cuEventDestroy_v2(EventRef* event) { return delete event, OK; }
API int cuEventRecord(EventRef* handle, Stream* stream) {
    records++;
    EventRef event = *handle;
    if (stream->graph) {
        // Within a graph its operations are one behind the other already.
        event->captured = stream;
        return OK;
    }
    event->captured = nullptr;
    uint64_t ticket;
    {
        std::lock_guard<std::mutex> guard(event->mutex);
        ticket = ++event->recorded;
    }
    stream->push([event, ticket] { event->finish(ticket); });
    return OK;
}
API int cuStreamWaitEvent(Stream* stream, EventRef* handle, unsigned) {
    waits++;
    EventRef event = *handle;
    if (event->captured) {
        // A stream joins the graph that it waits for.
        stream->graph = event->captured->graph;
        return stream->graph ? OK : INVALID;
    }
    // Who is written down may not wait for what is not.
    if (stream->graph) return INVALID;
    uint64_t ticket;
    {
        std::lock_guard<std::mutex> guard(event->mutex);
        ticket = event->recorded;
    }
    stream->push([event, ticket] { event->wait(ticket); });
    return OK;
}
API int cuEventSynchronize(EventRef* handle) {
    EventRef event = *handle;
    uint64_t ticket;
    {
        std::lock_guard<std::mutex> guard(event->mutex);
        ticket = event->recorded;
    }
    event->wait(ticket);
    return OK;
}
API int cuEventElapsedTime_v2(float* milliseconds, EventRef* from, EventRef* to) {
    std::chrono::steady_clock::time_point begun, ended;
    if (int error = (*from)->reached(&begun)) return error;
    if (int error = (*to)->reached(&ended)) return error;
    *milliseconds = std::chrono::duration<float, std::milli>(ended - begun).count();
    return OK;
}

API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    if (live_bytes + bytes > capacity()) return OUT_OF_MEMORY;
    void* at = aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (!at) return OUT_OF_MEMORY;
    // What was never written is no number.
    memset(at, 0xff, bytes);
    std::lock_guard<std::mutex> guard(all);
    memories[(uint64_t)at] = bytes;
    live_bytes += bytes;
    allocations++;
    *address = (uint64_t)at;
    return OK;
}
API int cuMemFree_v2(uint64_t address) {
    std::lock_guard<std::mutex> guard(all);
    auto found = memories.find(address);
    if (found == memories.end()) return INVALID;
    for (Stream* stream : streams) stream->drain();
    live_bytes -= found->second;
    memories.erase(found);
    free((void*)address);
    return OK;
}
API int cuMemHostRegister_v2(void* at, size_t bytes, unsigned) {
    std::lock_guard<std::mutex> guard(all);
    pinned[(uintptr_t)at] = bytes;
    return OK;
}
API int cuMemHostUnregister(void* at) {
    std::lock_guard<std::mutex> guard(all);
    return pinned.erase((uintptr_t)at) ? OK : INVALID;
}
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
    if (!is_device(to, bytes)) return INVALID;
    const bool waits_for_it = !is_pinned(from, bytes);
    stream->push([=] {
        linger(TO_DEVICE);
        memcpy((void*)to, from, bytes);
    });
    if (waits_for_it && !stream->graph) stream->drain();
    return OK;
}
API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
    if (!is_device(from, bytes)) return INVALID;
    const bool waits_for_it = !is_pinned(to, bytes);
    stream->push([=] {
        linger(TO_HOST);
        memcpy(to, (const void*)from, bytes);
    });
    if (waits_for_it && !stream->graph) stream->drain();
    return OK;
}

// An image is nothing, or where a library is, whose kernels are those of the module alone.
API int cuModuleLoadData(std::string** module, const void* image) {
    const std::string text = (const char*)image, is_image = "fake image";
    if (text.compare(0, is_image.size(), is_image)) return INVALID;
    const std::string path = text.substr(is_image.size());
    std::lock_guard<std::mutex> guard(all);
    if (!path.empty()) {
        Dl_info own;
        // What is opened here finds what this has.
        dladdr((void*)cuModuleLoadData, &own);
        dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
        shim_module((path + ":").c_str());
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        shim_module("");
        if (!library) return fprintf(stderr, "%s\n", dlerror()), INVALID;
    }
    return *module = new std::string(path.empty() ? "" : path + ":"), OK;
}
API int cuModuleUnload(std::string* module) { return delete module, OK; }
API int cuModuleGetFunction(std::string** function, std::string* module, const char* name) {
    const std::string full = *module + name;
    std::lock_guard<std::mutex> guard(all);
    auto known = functions.find(full);
    if (known == functions.end()) {
        bool is_there = false;
        for (unsigned i = 0; const char* kernel = shim_kernel(i); i++) is_there = is_there || full == kernel;
        if (!is_there) return NOT_FOUND;
        known = functions.emplace(full, new std::string(full)).first;
    }
    *function = known->second;
    return OK;
}
API int cuLaunchKernel(std::string* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                       unsigned, Stream* stream, void** args, void**) {
    if (blocks == 0 || threads != 256) return INVALID;
    launches++;
    // Arguments are read before this returns.
    struct Args {
        std::vector<std::vector<uint64_t>> words;
        std::vector<void*> pointers;
    };
    auto kept = std::make_shared<Args>();
    for (unsigned i = 0;; i++) {
        const unsigned words = shim_words(function->c_str(), i);
        if (words == 0) break;
        const uint64_t* from = (const uint64_t*)args[i];
        kept->words.emplace_back(from, from + words);
    }
    for (auto& words : kept->words) kept->pointers.push_back(words.data());
    stream->push([=] {
        linger(KERNEL_RUN);
        if (shim_launch(function->c_str(), blocks, threads, kept->pointers.data())) failed = true;
    });
    return OK;
}

API int cuStreamBeginCapture_v2(Stream* stream, int) { return stream->graph = new Graph, OK; }
API int cuStreamEndCapture(Stream* stream, Graph** graph) {
    *graph = stream->graph;
    std::lock_guard<std::mutex> guard(all);
    for (Stream* one : streams)
        if (one->graph == *graph) one->graph = nullptr;
    return *graph ? OK : INVALID;
}
API int cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) { return *exec = new Graph(*graph), OK; }
API int cuGraphDestroy(Graph* graph) { return delete graph, OK; }
API int cuGraphExecDestroy(Graph* graph) { return delete graph, OK; }
API int cuGraphLaunch(Graph* graph, Stream* stream) {
    for (auto& work : graph->works) stream->push(work);
    return OK;
}
