// CUDA's compiler without its assembler, which makes each kernel for the driver for tests, too: what NVRTC compiles to PTX,
// g++ compiles again with the shim, as the library ROUNDELAY_FAKE/HASH.so that the driver finds by the text of the PTX. So
// whatever a program compiles, it can launch.
//
// The loader finds this one by the first name that is asked for, and NVRTC by the second.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hash.h"

namespace {

enum { INTERNAL_ERROR = 11 };

struct Text {
    std::string text, name;
};

std::mutex mutex;
std::map<void*, Text> programs;

// A function of NVRTC itself.
template <class F> F* real(const char* name, F*) {
    static void* library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    void* found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
        fprintf(stderr, "the compiler for tests finds no NVRTC: %s\n", dlerror());
        abort();
    }
    return reinterpret_cast<F*>(found);
}

std::string in_folder(const std::string& name) {
    const char* folder = getenv("ROUNDELAY_FAKE");
    return std::string(folder == nullptr ? "." : folder) + "/" + name;
}

bool is_there(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// A name that no other thread or process has.
std::string beside(const std::string& path) {
    static std::atomic<unsigned> next{0};
    return path + "." + std::to_string(getpid()) + "-" + std::to_string(next++);
}

// Runs the script that knows g++, apart from this process's handlers and locks.
bool make(const std::string& text, const std::string& made) {
    const char* script = getenv("ROUNDELAY_FAKE_MAKE");
    if (script == nullptr) {
        fprintf(stderr, "ROUNDELAY_FAKE_MAKE does not name what makes kernels\n");
        return false;
    }
    const pid_t child = vfork();
    if (child == 0) {
        execlp("sh", "sh", script, "kernel", text.c_str(), made.c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Makes the kernel of a program whose machine code this is. Texts that are compiled in several ways are made once.
bool make_for(const Text& program, const unsigned char* code, size_t size) {
    const std::string path = in_folder(hex(hash(code, size)) + ".so");
    // The driver knows how to bind.
    if (program.name == "roundelay_bind.cu" || is_there(path)) {
        return true;
    }
    const auto* text = reinterpret_cast<const unsigned char*>(program.text.data());
    const std::string stem = "text-" + hex(hash(text, program.text.size()));
    const std::string made = in_folder(stem + ".so");
    // The ranks of a job want one kernel at once: one of them makes it. The lock goes with its process.
    const int lock = is_there(made) ? -1 : open(in_folder("lock-" + stem.substr(5, 1)).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (lock >= 0) {
        flock(lock, LOCK_EX);
    }
    struct Unlock {
        int lock;
        ~Unlock() { close(lock); }
    } unlock{lock};
    if (!is_there(made)) {
        const std::string source = beside(in_folder(stem)) + ".cu", making = beside(made);
        std::ofstream(source) << program.text;
        if (!make(source, making) || rename(making.c_str(), made.c_str()) != 0) {
            fprintf(stderr, "%s of %s was not made\n", source.c_str(), program.name.c_str());
            return false;
        }
        rename(source.c_str(), in_folder(stem + ".cu").c_str());
    }
    const std::string link = beside(path);
    return symlink((stem + ".so").c_str(), link.c_str()) == 0 && rename(link.c_str(), path.c_str()) == 0;
}

} // namespace

#define FORWARD(NAME, ...) real(#NAME, &NAME)(__VA_ARGS__)

extern "C" {

int nvrtcVersion(int* major, int* minor) { return FORWARD(nvrtcVersion, major, minor); }
const char* nvrtcGetErrorString(int code) { return FORWARD(nvrtcGetErrorString, code); }
int nvrtcGetNumSupportedArchs(int* count) { return FORWARD(nvrtcGetNumSupportedArchs, count); }
int nvrtcGetSupportedArchs(int* archs) { return FORWARD(nvrtcGetSupportedArchs, archs); }
int nvrtcCreateProgram(void** program, const char* text, const char* name, int headers, const char* const* texts,
                       const char* const* names) {
    const int code = FORWARD(nvrtcCreateProgram, program, text, name, headers, texts, names);
    if (code == 0) {
        std::lock_guard<std::mutex> hold(mutex);
        programs[*program] = {text, name};
    }
    return code;
}
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
    std::vector<std::string> given(options, options + count);
    for (std::string& option : given) {
        // The macros that change what a kernel does: the rest only changes how fast a device does it.
        for (const char* macro : {"ROUNDELAY_STAGED", "ROUNDELAY_ONE_WRITER", "ROUNDELAY_REGISTERED"}) {
            if (option.find(macro) != std::string::npos) {
                std::lock_guard<std::mutex> hold(mutex);
                Text& of = programs[program];
                of.text = std::string("#define ") + macro + " 1\n" + of.text;
            }
        }
        // No assembler: it takes most of the time, and no device runs its code.
        const std::string real = "=sm_";
        const size_t at = option.rfind("--gpu-architecture=", 0) == 0 ? option.find(real) : std::string::npos;
        if (at != std::string::npos) {
            option.replace(at, real.size(), "=compute_");
        }
    }
    std::vector<const char*> all;
    for (const std::string& option : given) {
        // An option of the assembler alone.
        if (option.rfind("--ptxas-options", 0) != 0) {
            all.push_back(option.c_str());
        }
    }
    return FORWARD(nvrtcCompileProgram, program, int(all.size()), all.data());
}
int nvrtcDestroyProgram(void** program) {
    {
        std::lock_guard<std::mutex> hold(mutex);
        programs.erase(*program);
    }
    return FORWARD(nvrtcDestroyProgram, program);
}
int nvrtcGetProgramLogSize(void* program, size_t* size) { return FORWARD(nvrtcGetProgramLogSize, program, size); }
int nvrtcGetProgramLog(void* program, char* log) { return FORWARD(nvrtcGetProgramLog, program, log); }
int nvrtcGetPTXSize(void* program, size_t* size) { return FORWARD(nvrtcGetPTXSize, program, size); }
int nvrtcGetPTX(void* program, char* ptx) { return FORWARD(nvrtcGetPTX, program, ptx); }
int nvrtcAddNameExpression(void* program, const char* name) { return FORWARD(nvrtcAddNameExpression, program, name); }
int nvrtcGetLoweredName(void* program, const char* name, const char** lowered) {
    return FORWARD(nvrtcGetLoweredName, program, name, lowered);
}
// The machine code is the text of PTX, with the zero at its end.
int nvrtcGetCUBINSize(void* program, size_t* size) { return FORWARD(nvrtcGetPTXSize, program, size); }
int nvrtcGetCUBIN(void* program, char* code) {
    size_t size = 0;
    int said = FORWARD(nvrtcGetPTXSize, program, &size);
    said = said == 0 ? FORWARD(nvrtcGetPTX, program, code) : said;
    if (said != 0) {
        return said;
    }
    Text of;
    {
        std::lock_guard<std::mutex> hold(mutex);
        of = programs[program];
    }
    return make_for(of, reinterpret_cast<const unsigned char*>(code), size) ? 0 : INTERNAL_ERROR;
}
}
