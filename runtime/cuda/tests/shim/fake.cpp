// A driver of CUDA without a device: streams are threads, events order them, memory has a budget, chunks of it are mapped to
// addresses, and kernels are those of the shim.
//
// FAKECUDA_MEM: how many bytes the device has. fakecuda_slow: how long operations of a kind take at least, in microseconds, of
// which copies to the device in a stream that runs kernels, too, are one for themselves;
// FAKECUDA_SLOW: the same of kernels, copies to the host and copies to the device, such as "0 200 0". Besides, operations are
// held up for random times, which follow from fakecuda_seed, or FAKECUDA_SEED, and from the order in which they are given.
// Times of fakecuda_slow and random times are skipped while nothing else happens; those of FAKECUDA_SLOW pass by the clock.
// FAKECUDA_FAULT: the name of a kernel that reads where no memory is. FAKECUDA_MAPS=0: the device cannot map chunks. FAKECUDA_REGISTER=0: the system pins no memory of the process.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" int shim_launch(const char* name, unsigned blocks, unsigned threads, void** args);
extern "C" bool shim_has(const char* name);
extern "C" unsigned shim_words(const char* name, unsigned index);
extern "C" void shim_module(const char* name);

namespace {

enum Result { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 101, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL = 700 };
enum Kind { KERNEL_RUN = 0, TO_HOST = 1, TO_DEVICE = 2, INPUT = 3 };

std::atomic<unsigned> slow[4];
const bool slowed = [] {
    const char* text = getenv("FAKECUDA_SLOW");
    unsigned micros[3] = {0, 0, 0};
    if (text) sscanf(text, "%u %u %u", &micros[0], &micros[1], &micros[2]);
    for (int kind = 0; kind < 3; kind++) slow[kind] = micros[kind];
    return text != nullptr;
}();
std::atomic<uint64_t> waits, records, allocations, launches, live_bytes;
std::atomic<bool> failed;

// A random time for the operation that is given next: none for three of four, else up to 80 microseconds.
std::atomic<uint64_t> seed([] {
    const char* text = getenv("FAKECUDA_SEED");
    return text ? strtoull(text, nullptr, 10) : 1;
}());
std::atomic<uint64_t> given;

unsigned jitter() {
    // SplitMix64.
    uint64_t x = seed * 0x9e3779b97f4a7c15 + given++ * 0xd1b54a32d192ed03;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    return x & 3 ? 0 : (x >> 2) % 80;
}

using Time = std::chrono::steady_clock::time_point;

// A stream or a thread of the host that waits for a condition.
struct Waiter {
    std::function<bool()> over;
    bool is_stream, released = false;
};

// The state that streams and threads of the host share, and the time of the device: that of the clock plus what was skipped. If
// all streams wait and the host waits for one of them, the time skips to the end of the first timed operation.
struct Device {
    std::mutex mutex;
    std::condition_variable changed;
    // Number of streams that execute, and number of threads of the host that wait.
    unsigned busy = 0, hosts = 0;
    std::vector<Waiter*> waiters;
    // End times of timed operations.
    std::multiset<Time> ends;
    Time::duration skipped{};

    Time now() const { return std::chrono::steady_clock::now() + skipped; }

    // Releases waiters whose condition holds, and skips time in which nothing happens. The caller holds the mutex.
    void settle() {
        for (Waiter* waiter : waiters) {
            if (waiter->released || !waiter->over()) continue;
            waiter->released = true;
            if (waiter->is_stream) busy++;
            else hosts--;
        }
        if (busy == 0 && hosts > 0 && !ends.empty() && !slowed) {
            const Time::duration rest = *ends.begin() - now();
            if (rest > Time::duration::zero()) skipped += rest;
        }
        changed.notify_all();
    }
    void wait(std::function<bool()> over, bool is_stream) {
        std::unique_lock<std::mutex> guard(mutex);
        if (over()) return;
        Waiter waiter{std::move(over), is_stream};
        waiters.push_back(&waiter);
        if (is_stream) busy--;
        else hosts++;
        settle();
        changed.wait(guard, [&] { return waiter.released; });
        waiters.erase(std::find(waiters.begin(), waiters.end(), &waiter));
    }
    // Waits until this much time has passed on the device: the duration of an operation of a stream.
    void take(std::chrono::microseconds time) {
        std::unique_lock<std::mutex> guard(mutex);
        const auto end = ends.insert(now() + time);
        busy--;
        settle();
        while (now() < *end) changed.wait_for(guard, *end - now());
        ends.erase(end);
        busy++;
    }
};
Device& device = *new Device;

void linger(Kind kind, unsigned jitter) {
    if (const unsigned micros = slow[kind] + jitter) device.take(std::chrono::microseconds(micros));
}

// How often something was recorded, and how often that has come.
struct Event {
    uint64_t recorded = 0, done = 0;
    Time at;
    bool times = false;
    // The stream that is written down, where it was recorded last.
    struct Stream* captured = nullptr;

    uint64_t last() {
        std::lock_guard<std::mutex> guard(device.mutex);
        return recorded;
    }
    uint64_t record() {
        std::lock_guard<std::mutex> guard(device.mutex);
        return ++recorded;
    }
    void finish(uint64_t ticket) {
        std::lock_guard<std::mutex> guard(device.mutex);
        at = device.now();
        if (ticket > done) done = ticket;
        device.settle();
    }
    void wait(uint64_t ticket, bool is_stream) {
        device.wait([this, ticket] { return done >= ticket; }, is_stream);
    }
    // When it came last, if all of it has come.
    int reached(Time* when) {
        std::lock_guard<std::mutex> guard(device.mutex);
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
    std::deque<Work> queue;
    bool ends = false, busy = false;
    // Whether it was given kernels.
    bool computes = false;
    Graph* graph = nullptr;
    std::thread thread;

    Stream() : thread([this] { run(); }) {}
    ~Stream() {
        drain();
        {
            std::lock_guard<std::mutex> guard(device.mutex);
            ends = true;
            device.changed.notify_all();
        }
        thread.join();
    }
    void run() {
        std::unique_lock<std::mutex> guard(device.mutex);
        for (;;) {
            device.changed.wait(guard, [&] { return ends || !queue.empty(); });
            if (queue.empty()) return;
            while (!queue.empty()) {
                Work work = std::move(queue.front());
                queue.pop_front();
                guard.unlock();
                work();
                work = nullptr;
                guard.lock();
            }
            busy = false;
            device.busy--;
            device.settle();
        }
    }
    void push(Work work) {
        if (graph) {
            graph->works.push_back(std::move(work));
            return;
        }
        std::lock_guard<std::mutex> guard(device.mutex);
        queue.push_back(std::move(work));
        if (!busy) device.busy++;
        busy = true;
        device.changed.notify_all();
    }
    void drain() {
        device.wait([this] { return !busy; }, false);
    }
};

std::mutex all;
std::map<uint64_t, uint64_t> memories;
std::map<uintptr_t, size_t> pinned;
std::set<Stream*> streams;

// How many bytes the device has, where a test says so.
std::atomic<uint64_t> memory;

uint64_t capacity() {
    if (memory) return memory;
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

// Chunks are multiples of this.
const size_t GRANULARITY = 1 << 16;

struct Chunk {
    off_t offset;
    size_t bytes;
    bool released = false;
    unsigned mappings = 0;
};
struct Mapping {
    size_t bytes;
    uint64_t handle;
    bool allowed = false;
};
std::map<uint64_t, size_t> reserved;
std::map<uint64_t, Chunk> chunks;
std::map<uint64_t, Mapping> mapped;
off_t chunks_end = 0;

int chunks_file() {
    static const int file = memfd_create("fakecuda", MFD_CLOEXEC);
    return file;
}

// Whether chunks are mapped to all of these addresses; with `allowed`, which may be used; with `exact`, no others behind them.
bool are_mapped(uint64_t at, size_t bytes, bool allowed, bool exact) {
    auto next = mapped.upper_bound(at);
    if (next == mapped.begin()) return false;
    --next;
    if (exact && next->first != at) return false;
    uint64_t end = next->first;
    for (; next != mapped.end() && next->first == end && end < at + bytes; ++next) {
        if (allowed && !next->second.allowed) return false;
        end += next->second.bytes;
    }
    return exact ? end == at + bytes : end >= at + bytes;
}

// Gives a chunk's memory back where nobody has it any more.
void drop(std::map<uint64_t, Chunk>::iterator chunk) {
    if (!chunk->second.released || chunk->second.mappings) return;
    fallocate(chunks_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, chunk->second.offset, (off_t)chunk->second.bytes);
    live_bytes -= chunk->second.bytes;
    chunks.erase(chunk);
}

bool is_device(uint64_t at, size_t bytes) {
    std::lock_guard<std::mutex> guard(all);
    auto next = memories.upper_bound(at);
    if (next != memories.begin()) {
        auto& range = *--next;
        if (at + bytes <= range.first + range.second) return true;
    }
    return are_mapped(at, bytes, true, false);
}

std::map<std::string, std::string*> functions;

}  // namespace

#define API extern "C" __attribute__((visibility("default")))

// What tests set and ask.
API void fakecuda_slow(unsigned kind, unsigned micros) { slow[kind] = micros; }
API void fakecuda_seed(uint64_t new_seed) {
    seed = new_seed;
    given = 0;
}
API void fakecuda_memory(uint64_t bytes) { memory = bytes; }
API uint64_t fakecuda_count(unsigned what) {
    std::lock_guard<std::mutex> guard(all);
    return what == 0 ? waits.load() : what == 1 ? records.load() : what == 2 ? allocations.load()
           : what == 3 ? live_bytes.load() : what == 4 ? reserved.size() + chunks.size() + mapped.size()
           : what == 5 ? given.load() : launches.load();
}

// What the library of fake_cublas.cpp asks for.
API int fakecuda_is_device(uint64_t at, size_t bytes) { return is_device(at, bytes); }
API void fakecuda_push(Stream* stream, void (*work)(const void*), const void* data, size_t bytes) {
    const std::string kept((const char*)data, bytes);
    const unsigned held = jitter();
    stream->computes = true;
    stream->push([=] {
        linger(KERNEL_RUN, held);
        work(kept.data());
    });
}

API int cuInit(unsigned) { return OK; }
API int cuDriverGetVersion(int* version) { return *version = 13000, OK; }
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
API int cuDeviceGetAttribute(int* value, int which, int) {
    const char* maps = getenv("FAKECUDA_MAPS");
    // Compute capability 9.0, chunks, 4 multiprocessors at 1 GHz, 64 lines to a memory at 1 GHz.
    return *value = which == 75    ? 9
                    : which == 102 ? !maps || strcmp(maps, "0")
                    : which == 16  ? 4
                    : which == 13  ? 1000000
                    : which == 36  ? 1000000
                    : which == 37  ? 64
                                   : 0,
           OK;
}
API int cuDeviceGetName(char* name, int length, int) { return strncpy(name, "a processor", (size_t)length), OK; }
API int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &all, OK; }
API int cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API int cuCtxSetCurrent(void*) { return OK; }
API int cuCtxSynchronize() {
    std::lock_guard<std::mutex> guard(all);
    for (Stream* stream : streams) stream->drain();
    return failed.exchange(false) ? ILLEGAL : OK;
}

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
    // Nobody else works in the default stream.
    if (!stream) return OK;
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
    const uint64_t ticket = event->record();
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
    const uint64_t ticket = event->last();
    stream->push([event, ticket] { event->wait(ticket, true); });
    return OK;
}
API int cuEventSynchronize(EventRef* handle) {
    EventRef event = *handle;
    event->wait(event->last(), false);
    return OK;
}
API int cuEventElapsedTime_v2(float* milliseconds, EventRef* from, EventRef* to) {
    Time begun, ended;
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
API int cuMemGetInfo_v2(size_t* free, size_t* total) {
    *total = capacity(), *free = live_bytes < capacity() ? capacity() - live_bytes : 0;
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
// Chunks of memory, and addresses to which they are mapped: nothing may be used before that is allowed.
struct Location {
    int type, id;
};
struct Properties {
    int type, handles;
    Location location;
    void* metadata;
    unsigned char flags[8];
};
struct Access {
    Location location;
    int flags;
};

bool is_here(Location location) { return location.type == 1 && location.id == 0; }
bool is_whole(uint64_t number) { return number % GRANULARITY == 0; }

API int cuMemGetAllocationGranularity(size_t* granularity, const Properties* what, int) {
    if (what->type != 1 || !is_here(what->location)) return INVALID;
    return *granularity = GRANULARITY, OK;
}
API int cuMemAddressReserve(uint64_t* at, size_t bytes, size_t alignment, uint64_t, unsigned long long flags) {
    if (bytes == 0 || !is_whole(bytes) || alignment & (alignment - 1) || flags) return INVALID;
    const size_t room = bytes + GRANULARITY;
    void* start = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return OUT_OF_MEMORY;
    const uint64_t first = (uint64_t)start, begin = (first + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    if (begin > first) munmap(start, begin - first);
    munmap((void*)(begin + bytes), room - bytes - (begin - first));
    std::lock_guard<std::mutex> guard(all);
    reserved[begin] = bytes;
    return *at = begin, OK;
}
API int cuMemAddressFree(uint64_t at, size_t bytes) {
    std::lock_guard<std::mutex> guard(all);
    auto found = reserved.find(at);
    if (found == reserved.end() || found->second != bytes) return INVALID;
    auto inside = mapped.lower_bound(at);
    if (inside != mapped.end() && inside->first < at + bytes) return INVALID;
    reserved.erase(found);
    return munmap((void*)at, bytes) ? INVALID : OK;
}
API int cuMemCreate(uint64_t* handle, size_t bytes, const Properties* what, unsigned long long flags) {
    if (bytes == 0 || !is_whole(bytes) || what->type != 1 || !is_here(what->location) || flags) return INVALID;
    std::lock_guard<std::mutex> guard(all);
    if (live_bytes + bytes > capacity()) return OUT_OF_MEMORY;
    const off_t offset = chunks_end;
    if (ftruncate(chunks_file(), offset + (off_t)bytes)) return OUT_OF_MEMORY;
    chunks_end += (off_t)bytes;
    // What was never written is no number.
    const std::vector<char> none(bytes, (char)0xff);
    if (pwrite(chunks_file(), none.data(), bytes, offset) != (ssize_t)bytes) return OUT_OF_MEMORY;
    live_bytes += bytes;
    allocations++;
    // Handles are never those of chunks before.
    *handle = (uint64_t)offset + 1;
    chunks[*handle] = Chunk{offset, bytes};
    return OK;
}
API int cuMemRelease(uint64_t handle) {
    std::lock_guard<std::mutex> guard(all);
    auto chunk = chunks.find(handle);
    if (chunk == chunks.end() || chunk->second.released) return INVALID;
    chunk->second.released = true;
    return drop(chunk), OK;
}
API int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags) {
    std::lock_guard<std::mutex> guard(all);
    auto chunk = chunks.find(handle);
    if (chunk == chunks.end() || chunk->second.released || bytes != chunk->second.bytes) return INVALID;
    auto range = reserved.upper_bound(at);
    if (range == reserved.begin() || offset || flags || !is_whole(at)) return INVALID;
    --range;
    if (at + bytes > range->first + range->second) return INVALID;
    auto next = mapped.lower_bound(at);
    if (next != mapped.end() && next->first < at + bytes) return INVALID;
    if (next != mapped.begin() && std::prev(next)->first + std::prev(next)->second.bytes > at) return INVALID;
    void* done = mmap((void*)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, chunks_file(), chunk->second.offset);
    if (done == MAP_FAILED) return OUT_OF_MEMORY;
    chunk->second.mappings++;
    mapped[at] = Mapping{bytes, handle};
    // Nothing of the kind is to happen within a step either.
    allocations++;
    return OK;
}
API int cuMemSetAccess(uint64_t at, size_t bytes, const Access* access, size_t count) {
    std::lock_guard<std::mutex> guard(all);
    if (count != 1 || !is_here(access->location) || !are_mapped(at, bytes, false, true)) return INVALID;
    const int flags = access->flags == 3 ? PROT_READ | PROT_WRITE : access->flags == 1 ? PROT_READ : PROT_NONE;
    if (mprotect((void*)at, bytes, flags)) return INVALID;
    for (auto next = mapped.find(at); next != mapped.end() && next->first < at + bytes; ++next)
        next->second.allowed = access->flags == 3;
    return OK;
}
API int cuMemUnmap(uint64_t at, size_t bytes) {
    std::lock_guard<std::mutex> guard(all);
    if (!are_mapped(at, bytes, false, true)) return INVALID;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap((void*)at, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) return INVALID;
    for (auto next = mapped.find(at); next != mapped.end() && next->first < at + bytes;) {
        auto chunk = chunks.find(next->second.handle);
        chunk->second.mappings--;
        drop(chunk);
        next = mapped.erase(next);
    }
    allocations++;
    return OK;
}
API int cuMemHostRegister_v2(void* at, size_t bytes, unsigned) {
    const char* registers = getenv("FAKECUDA_REGISTER");
    if (registers && !strcmp(registers, "0")) return INVALID;
    std::lock_guard<std::mutex> guard(all);
    pinned[(uintptr_t)at] = bytes;
    return OK;
}
API int cuMemHostUnregister(void* at) {
    std::lock_guard<std::mutex> guard(all);
    return pinned.erase((uintptr_t)at) ? OK : INVALID;
}
API int cuMemHostAlloc(void** at, size_t bytes, unsigned) {
    *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*at) return OUT_OF_MEMORY;
    // What was never written is no number.
    memset(*at, 0xff, bytes);
    std::lock_guard<std::mutex> guard(all);
    pinned[(uintptr_t)*at] = bytes;
    return OK;
}
API int cuMemFreeHost(void* at) {
    std::lock_guard<std::mutex> guard(all);
    if (!pinned.erase((uintptr_t)at)) return INVALID;
    return free(at), OK;
}
API int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, Stream* stream) {
    if (!is_device(to, bytes)) return INVALID;
    stream->push([=] { memset((void*)to, byte, bytes); });
    return OK;
}
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
    if (!is_device(to, bytes)) return INVALID;
    const bool waits_for_it = !is_pinned(from, bytes);
    const unsigned held = jitter();
    const Kind kind = stream->computes ? INPUT : TO_DEVICE;
    stream->push([=] {
        linger(kind, held);
        memcpy((void*)to, from, bytes);
    });
    if (waits_for_it && !stream->graph) stream->drain();
    return OK;
}
API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
    if (!is_device(from, bytes)) return INVALID;
    const bool waits_for_it = !is_pinned(to, bytes);
    const unsigned held = jitter();
    stream->push([=] {
        linger(TO_HOST, held);
        memcpy(to, (const void*)from, bytes);
    });
    if (waits_for_it && !stream->graph) stream->drain();
    return OK;
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
    if (!is_device(to, bytes) || !is_device(from, bytes)) return INVALID;
    const unsigned held = jitter();
    stream->push([=] {
        linger(INPUT, held);
        memcpy((void*)to, (const void*)from, bytes);
    });
    return OK;
}
// Of memory of the device, its type (2) is that of a device (2), and the device's number (9) is 0.
API int cuPointerGetAttribute(unsigned* value, int attribute, uint64_t at) {
    if (!is_device(at, 1)) return INVALID;
    return *value = attribute == 2 ? 2 : 0, OK;
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
        if (!shim_has(full.c_str())) return NOT_FOUND;
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
    const unsigned held = jitter();
    stream->computes = true;
    stream->push([=] {
        linger(KERNEL_RUN, held);
        static const char* faulty = getenv("FAKECUDA_FAULT");
        if (shim_launch(function->c_str(), blocks, threads, kept->pointers.data())) failed = true;
        if (faulty && *function == faulty) failed = true;
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
