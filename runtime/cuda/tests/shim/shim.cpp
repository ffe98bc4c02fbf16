// What runs kernels: see shim.h.
#include "shim.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#ifdef SHIM_THREADS
#include <condition_variable>
#include <thread>
#else
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif
#endif

__thread shim::Dims threadIdx, blockIdx, blockDim, gridDim;

namespace shim {
namespace {

struct Kernel {
    Call call;
    std::vector<unsigned> words;
};

std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel> all;
    return all;
}

[[noreturn]] void fail(const char* what) {
    fprintf(stderr, "shim: %s (block %u, thread %u)\n", what, blockIdx.x, threadIdx.x);
    abort();
}

uint64_t warps[32][32];
std::mutex atomic;

#ifdef SHIM_THREADS

// A barrier of so many threads. Who leaves a kernel is not waited for, and must not be missed.
class Barrier {
    std::mutex mutex;
    std::condition_variable changed;
    unsigned members = 0, waiting = 0, left = 0;
    uint64_t round = 0;

  public:
    void begin(unsigned count) { members = count, waiting = 0, left = 0; }
    void wait() {
        std::unique_lock<std::mutex> guard(mutex);
        if (left) fail("a barrier that some threads do not reach");
        if (++waiting == members) {
            waiting = 0;
            round++;
            changed.notify_all();
            return;
        }
        const uint64_t mine = round;
        changed.wait(guard, [&] { return round != mine; });
    }
    void leave() {
        std::unique_lock<std::mutex> guard(mutex);
        left++;
        if (waiting) fail("a barrier that some threads do not reach");
    }
};

Barrier of_block, of_warps[32];

// Threads that stay, for one block after the other.
class Pool {
    std::mutex mutex;
    std::condition_variable begun, ended;
    std::vector<std::thread> all;
    Barrier starting;
    uint64_t round = 0;
    unsigned left = 0;
    const Call* call = nullptr;
    void** args = nullptr;
    Dims block, grid;

    void work(unsigned thread) {
        for (uint64_t mine = 1;; mine++) {
            {
                std::unique_lock<std::mutex> guard(mutex);
                begun.wait(guard, [&] { return round >= mine; });
                threadIdx = {thread, 0, 0}, blockIdx = block, gridDim = grid;
                blockDim = {static_cast<unsigned>(all.size()), 1, 1};
            }
            // What one thread of a block does is not before what another one does, whoever comes first.
            starting.wait();
            (*call)(args);
            of_block.leave();
            std::unique_lock<std::mutex> guard(mutex);
            if (--left == 0) ended.notify_all();
        }
    }

  public:
    void run(const Call& what, void** with, unsigned threads, Dims at, Dims of) {
        std::unique_lock<std::mutex> guard(mutex);
        while (all.size() < threads) {
            const unsigned thread = static_cast<unsigned>(all.size());
            all.emplace_back([this, thread] { work(thread); });
            all.back().detach();
        }
        call = &what, args = with, block = at, grid = of, left = threads;
        starting.begin(threads);
        round++;
        begun.notify_all();
        ended.wait(guard, [&] { return left == 0; });
    }
};

void run_block(const Call& call, void** args, unsigned threads, Dims block, Dims grid) {
    // Blocks of one size, so that every thread has a part in each.
    static Pool& pool = *new Pool;
    of_block.begin(threads);
    for (unsigned w = 0; w * 32 < threads; w++) of_warps[w].begin(threads - w * 32 < 32 ? threads - w * 32 : 32);
    pool.run(call, args, threads, block, grid);
}

#else

enum class State { Ready, Block, Warp, Done };

const size_t STACK = 128 << 10;

struct Fiber {
    State state = State::Done;
    unsigned thread = 0;
    char* stack = nullptr;
#ifdef __x86_64__
    void* top = nullptr;
#else
    ucontext_t context;
#endif
};

std::vector<std::unique_ptr<Fiber>> fibers;
Fiber* current = nullptr;
const Call* running = nullptr;
void** arguments = nullptr;

#ifdef __x86_64__
void* scheduler = nullptr;
extern "C" void shim_switch(void** from, void* to);
asm(R"(
.text
.globl shim_switch
.hidden shim_switch
shim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
void resume(Fiber& fiber) { shim_switch(&scheduler, fiber.top); }
void yield() { shim_switch(&current->top, scheduler); }
#else
ucontext_t scheduler;
void resume(Fiber& fiber) { swapcontext(&scheduler, &fiber.context); }
void yield() { swapcontext(&current->context, &scheduler); }
#endif

void begin() {
    (*running)(arguments);
    current->state = State::Done;
    yield();
}

void prepare(Fiber& fiber) {
    if (!fiber.stack) {
        void* stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED) fail("no memory for stacks");
        fiber.stack = static_cast<char*>(stack);
    }
    fiber.state = State::Ready;
#ifdef __x86_64__
    void** top = reinterpret_cast<void**>(fiber.stack + STACK);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(begin);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    fiber.top = top;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, begin, 0);
#endif
}

void run_block(const Call& call, void** args, unsigned threads, Dims block, Dims grid) {
    while (fibers.size() < threads) fibers.emplace_back(new Fiber);
    running = &call, arguments = args;
    for (unsigned t = 0; t < threads; t++) {
        fibers[t]->thread = t;
        prepare(*fibers[t]);
    }
    blockIdx = block, blockDim = {threads, 1, 1}, gridDim = grid;
    for (;;) {
        unsigned done = 0, at_block = 0;
        bool ran = false;
        for (unsigned t = 0; t < threads; t++) {
            Fiber& fiber = *fibers[t];
            if (fiber.state == State::Ready) {
                current = &fiber;
                threadIdx = {t, 0, 0};
                resume(fiber);
                ran = true;
            }
            done += fiber.state == State::Done;
            at_block += fiber.state == State::Block;
        }
        if (done == threads) return;
        if (at_block && done) fail("a barrier that some threads do not reach");
        bool released = false;
        if (at_block == threads) {
            for (unsigned t = 0; t < threads; t++) fibers[t]->state = State::Ready;
            released = true;
        }
        for (unsigned w = 0; w * 32 < threads; w++) {
            const unsigned end = w * 32 + 32 < threads ? w * 32 + 32 : threads;
            bool all = true;
            for (unsigned t = w * 32; t < end; t++) all = all && fibers[t]->state == State::Warp;
            for (unsigned t = w * 32; all && t < end; t++) fibers[t]->state = State::Ready;
            released = released || all;
        }
        if (!ran && !released) fail("threads that wait for each other");
    }
}

#endif

std::mutex launching;

}  // namespace

#ifdef SHIM_THREADS
void wait_for_block() { of_block.wait(); }
void wait_for_warp() { of_warps[threadIdx.x / 32].wait(); }
#else
void wait_for_block() {
    current->state = State::Block;
    yield();
}
void wait_for_warp() {
    current->state = State::Warp;
    yield();
}
#endif
uint64_t* of_warp() { return warps[threadIdx.x / 32]; }
unsigned lane() { return threadIdx.x % 32; }
void lock() { atomic.lock(); }
void unlock() { atomic.unlock(); }
std::string& module() {
    static std::string name;
    return name;
}
void add(const char* name, Call call, std::vector<unsigned> words) {
    std::lock_guard<std::mutex> guard(launching);
    if (!kernels().emplace(module() + name, Kernel{std::move(call), std::move(words)}).second) {
        fprintf(stderr, "shim: two kernels named %s\n", name);
        abort();
    }
}

}  // namespace shim

// What stands before the names of kernels that are added from now on.
extern "C" void shim_module(const char* name) { shim::module() = name; }

// Runs a kernel to its end; 1 where there is none of this name.
extern "C" int shim_launch(const char* name, unsigned blocks, unsigned threads, void** args) {
    std::lock_guard<std::mutex> guard(shim::launching);
    auto found = shim::kernels().find(name);
    if (found == shim::kernels().end()) return 1;
    for (unsigned block = 0; block < blocks; block++)
        shim::run_block(found->second.call, args, threads, {block, 0, 0}, {blocks, 1, 1});
    return 0;
}

// The name of the index-th kernel, or null.
extern "C" const char* shim_kernel(unsigned index) {
    for (auto& entry : shim::kernels())
        if (index-- == 0) return entry.first.c_str();
    return nullptr;
}

extern "C" bool shim_has(const char* name) { return shim::kernels().count(name) > 0; }

// How many words the index-th argument of a kernel has; 0 behind the last one.
extern "C" unsigned shim_words(const char* name, unsigned index) {
    auto found = shim::kernels().find(name);
    if (found == shim::kernels().end() || index >= found->second.words.size()) return 0;
    return found->second.words[index];
}
