// The backend API of a cuDNN that is none: descriptors of one convolution, of its engines and of plans for them. The library
// that includes this has the engines, in the order of the expected time, and executes them.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace backend {

enum Status { OK = 0, BAD_PARAM = 2000, MISALIGNED = 2003, NOT_FINALIZED = 2004, NOT_SUPPORTED = 3000 };
enum DescriptorKind {
    CONVOLUTION = 1, ENGINE = 2, ENGINECFG = 3, ENGINEHEUR = 4, PLAN = 5, KNOB_CHOICE = 7, FORWARD = 10, FILTER = 11, DATA = 12,
    GRAPH = 15, PACK = 16, TENSOR = 17, DEVICEPROP = 38,
};
// Types of elements. All others are enumerations.
enum Type { HANDLE = 0, INT64 = 3, VOID_PTR = 6, KNOB_TYPE = 9, DESCRIPTOR = 15, CHAR = 24 };
// Notes on engines.
enum Note { TENSOR_CORE = 0, DOWN_CONVERT = 1, NONDETERMINISTIC = 4 };

struct Tensor {
    int element = 0;
    std::vector<int64_t> dims, strides;
    int64_t count() const {
        int64_t all = 1;
        for (int64_t dim : dims) all *= dim;
        return all;
    }
};

// A convolution of x with w, which gives y; two of them are given, by the kind of the operation.
struct Convolution {
    int kind = 0;
    Tensor x, w, y;
    std::vector<int64_t> before, after, stride, dilation;
};

struct Engine {
    int64_t number;
    std::vector<int32_t> notes;
    int64_t workspace;
};

struct Attribute {
    int type;
    int64_t count;
    std::vector<char> bytes;
};

struct Descriptor {
    int kind;
    bool done = false;
    std::map<int, Attribute> attributes;
    // Of a graph, and of all that is made of it.
    std::shared_ptr<Convolution> of;
    // Of an engine, its configuration, and a plan.
    std::shared_ptr<Engine> engine;
    // Of heuristics.
    std::vector<Engine> found;

    template <class T>
    std::vector<T> list(int name) const {
        const auto found = attributes.find(name);
        std::vector<T> all;
        if (found == attributes.end()) return all;
        all.resize((size_t)found->second.count);
        if (!all.empty()) memcpy(all.data(), found->second.bytes.data(), all.size() * sizeof(T));
        return all;
    }
    // The one finalized descriptor of this kind.
    const Descriptor* other(int name, int kind) const {
        const auto all = list<Descriptor*>(name);
        return all.size() == 1 && all[0] && all[0]->kind == kind && all[0]->done ? all[0] : nullptr;
    }
};

inline size_t size_of(int type) {
    switch (type) {
        case HANDLE: case INT64: case VOID_PTR: case DESCRIPTOR: return 8;
        case CHAR: return 1;
        default: return 4;
    }
}

// By the including library: an engine's answer for a convolution, in order; executes an engine; counts what is alive.
std::vector<Engine> engines(const Convolution& of);
int execute(void* handle, const Convolution& of, const Engine& by, char* x, char* w, char* y, void* workspace);
int refuse(int status);
void lives(int change);

inline bool tensor(const Descriptor* from, Tensor& to) {
    if (!from) return false;
    const auto element = from->list<int32_t>(901);
    to.dims = from->list<int64_t>(902), to.strides = from->list<int64_t>(903);
    if (element.size() != 1 || to.dims.size() != to.strides.size() || from->list<int64_t>(900) != std::vector<int64_t>{16})
        return false;
    return to.element = element[0], true;
}

// The operation of a graph.
inline bool convolution(const Descriptor* op, Convolution& to) {
    // Alpha, beta and the window; x, w and y.
    const int names[3][6] = {{700, 701, 702, 704, 703, 705}, {706, 707, 708, 710, 709, 711}, {712, 713, 714, 716, 715, 717}};
    const int* name = names[op->kind == FORWARD ? 0 : op->kind == DATA ? 1 : 2];
    if (op->list<float>(name[0]) != std::vector<float>{1} || op->list<float>(name[1]) != std::vector<float>{0}) return false;
    const Descriptor* window = op->other(name[2], CONVOLUTION);
    if (!window || !tensor(op->other(name[3], TENSOR), to.x) || !tensor(op->other(name[4], TENSOR), to.w) ||
        !tensor(op->other(name[5], TENSOR), to.y))
        return false;
    // Of a cross-correlation, with sums of 32 bits.
    if (window->list<int32_t>(100) != std::vector<int32_t>{0} || window->list<int32_t>(101) != std::vector<int32_t>{1}) return false;
    to.kind = op->kind;
    to.dilation = window->list<int64_t>(102), to.stride = window->list<int64_t>(103);
    to.after = window->list<int64_t>(104), to.before = window->list<int64_t>(105);
    const auto rank = window->list<int64_t>(106);
    return rank.size() == 1 && to.before.size() == (size_t)rank[0] && to.after.size() == (size_t)rank[0];
}

inline int finalize(Descriptor* d) {
    const Descriptor* from = nullptr;
    switch (d->kind) {
        case GRAPH: {
            const auto ops = d->list<Descriptor*>(801);
            auto of = std::make_shared<Convolution>();
            if (ops.size() != 1 || !ops[0]->done || !convolution(ops[0], *of)) return BAD_PARAM;
            d->of = of;
            break;
        }
        case ENGINEHEUR: {
            const auto mode = d->list<int32_t>(200);
            // Heuristics need a device: that of the graph's handle, or one that is described.
            if (!(from = d->other(201, GRAPH)) || mode.size() != 1) return BAD_PARAM;
            if (!from->attributes.count(800) && !d->other(204, DEVICEPROP)) return BAD_PARAM;
            if (mode[0] != 3) return NOT_SUPPORTED;
            d->of = from->of, d->found = engines(*from->of);
            break;
        }
        case ENGINE: {
            const auto number = d->list<int64_t>(1301);
            if (!(from = d->other(1300, GRAPH)) || number.size() != 1) return BAD_PARAM;
            d->of = from->of;
            for (const Engine& engine : engines(*d->of))
                if (engine.number == number[0]) d->engine = std::make_shared<Engine>(engine);
            if (!d->engine) return NOT_SUPPORTED;
            break;
        }
        case ENGINECFG:
            if (!(from = d->other(300, ENGINE))) return BAD_PARAM;
            // Each engine has one parameter, of type 3, whose value is the engine's number.
            for (const Descriptor* knob : d->list<Descriptor*>(302))
                if (!knob->done || knob->list<int32_t>(600) != std::vector<int32_t>{3} ||
                    knob->list<int64_t>(601) != std::vector<int64_t>{from->engine->number})
                    return BAD_PARAM;
            if (d->list<Descriptor*>(302).size() != 1) return BAD_PARAM;
            d->of = from->of, d->engine = from->engine;
            break;
        case PLAN:
            if (!(from = d->other(401, ENGINECFG))) return BAD_PARAM;
            if (!d->attributes.count(400) && !d->other(407, DEVICEPROP)) return BAD_PARAM;
            d->of = from->of, d->engine = from->engine;
            break;
        case PACK:
            if (d->list<int64_t>(1000) != std::vector<int64_t>{1, 2, 3} || d->list<void*>(1001).size() != 3 ||
                d->list<void*>(1003).size() != 1)
                return BAD_PARAM;
            break;
        case DEVICEPROP:
            if (d->list<char>(2702).empty()) return BAD_PARAM;
            break;
    }
    return d->done = true, OK;
}

// Writes elements where there is room for them.
template <class T>
int write(const std::vector<T>& all, int64_t room, int64_t* count, void* to) {
    *count = (int64_t)all.size();
    if (room == 0 || !to) return OK;
    *count = room < *count ? room : *count;
    return memcpy(to, all.data(), sizeof(T) * (size_t)*count), OK;
}

// Fills descriptors that the caller has made.
template <class Fill>
int fill(size_t there, int kind, int64_t room, int64_t* count, void* to, Fill with) {
    *count = (int64_t)there;
    if (room == 0 || !to) return OK;
    *count = room < *count ? room : *count;
    for (int64_t i = 0; i < *count; i++) {
        Descriptor* one = ((Descriptor**)to)[i];
        if (!one || one->kind != kind || one->done) return BAD_PARAM;
        with(*one, (size_t)i), one->done = true;
    }
    return OK;
}

inline int get(Descriptor* d, int name, int type, int64_t room, int64_t* count, void* to) {
    if (!d->done) return NOT_FINALIZED;
    const auto add = [](Descriptor& one, int name, int type, const auto& value) {
        const char* bytes = (const char*)&value;
        one.attributes[name] = Attribute{type, 1, {bytes, bytes + sizeof value}};
    };
    switch (name) {
        case 202:
            return fill(d->found.size(), ENGINECFG, room, count, to, [&](Descriptor& one, size_t i) {
                one.of = d->of, one.engine = std::make_shared<Engine>(d->found[i]);
            });
        case 300:
            return fill(1, ENGINE, room, count, to, [&](Descriptor& one, size_t) { one.of = d->of, one.engine = d->engine; });
        case 302:
            return fill(1, KNOB_CHOICE, room, count, to, [&](Descriptor& one, size_t) {
                add(one, 600, KNOB_TYPE, (int32_t)3), add(one, 601, INT64, d->engine->number);
            });
        case 303: case 402: return write<int64_t>({d->engine->workspace}, room, count, to);
        case 1301: return write<int64_t>({d->engine->number}, room, count, to);
        case 1303: return write(d->engine->notes, room, count, to);
        case 1305: return write<int32_t>({}, room, count, to);
    }
    const auto found = d->attributes.find(name);
    if (found == d->attributes.end() || found->second.type != type) return BAD_PARAM;
    return write(found->second.bytes, room * (int64_t)size_of(type), count, to), *count = found->second.count, OK;
}

}  // namespace backend

API int cudnnBackendCreateDescriptor(int kind, backend::Descriptor** made) {
    backend::lives(1);
    return *made = new backend::Descriptor{kind, false, {}, nullptr, nullptr, {}}, 0;
}
API int cudnnBackendDestroyDescriptor(backend::Descriptor* of) {
    backend::lives(-1);
    return delete of, 0;
}
API int cudnnBackendSetAttribute(backend::Descriptor* of, int name, int type, int64_t count, const void* elements) {
    if (of->done || count < 1 || !elements) return backend::refuse(backend::BAD_PARAM);
    const char* from = (const char*)elements;
    of->attributes[name] = {type, count, {from, from + (size_t)count * backend::size_of(type)}};
    return 0;
}
API int cudnnBackendGetAttribute(backend::Descriptor* of, int name, int type, int64_t room, int64_t* count, void* elements) {
    const int status = backend::get(of, name, type, room, count, elements);
    return status ? backend::refuse(status) : status;
}
API int cudnnBackendFinalize(backend::Descriptor* of) {
    const int status = of->done ? (int)backend::BAD_PARAM : backend::finalize(of);
    // A mode without engines is no mistake of the caller.
    return status && status != backend::NOT_SUPPORTED ? backend::refuse(status) : status;
}
API int cudnnBackendExecute(void* handle, backend::Descriptor* plan, backend::Descriptor* pack) {
    if (plan->kind != backend::PLAN || pack->kind != backend::PACK || !plan->done || !pack->done)
        return backend::refuse(backend::NOT_FINALIZED);
    if (plan->list<void*>(400) != std::vector<void*>{handle}) return backend::refuse(backend::BAD_PARAM);
    const auto tensors = pack->list<char*>(1001);
    for (const char* at : tensors)
        if ((uintptr_t)at % 16) return backend::refuse(backend::MISALIGNED);
    void* workspace = pack->list<void*>(1003)[0];
    const int status = backend::execute(handle, *plan->of, *plan->engine, tensors[0], tensors[1], tensors[2], workspace);
    return status ? backend::refuse(status) : status;
}
API void cudnnGetLastErrorString(char* text, size_t room) {
    if (room) strncpy(text, "no such thing", room - 1), text[room - 1] = 0;
}
