// An NVRTC that compiles nothing: what it makes of a source is what the driver of fake.cpp takes for an image.
#include <cstddef>
#include <cstring>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

struct Source {
    std::string text;
};
API int nvrtcVersion(int* major, int* minor) { return *major = 0, *minor = 0, 0; }
API const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
API int nvrtcCreateProgram(Source** program, const char* text, const char*, int, const char**, const char**) {
    return *program = new Source{text}, 0;
}
API int nvrtcDestroyProgram(Source** program) { return delete *program, *program = nullptr, 0; }
API int nvrtcCompileProgram(Source* program, int, const char**) {
    return program->text.find("KERNEL") == std::string::npos ? 6 : 0;
}
API int nvrtcGetProgramLogSize(Source*, size_t* size) { return *size = 1, 0; }
API int nvrtcGetProgramLog(Source*, char* log) { return *log = 0, 0; }
API int nvrtcGetCUBINSize(Source*, size_t* size) { return *size = 10, 0; }
API int nvrtcGetCUBIN(Source*, char* image) { return memcpy(image, "fake image", 10), 0; }
