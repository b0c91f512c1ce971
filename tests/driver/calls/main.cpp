// `calls CASE` runs a case, and `calls` names all of them.
#include "calls.h"

#include "../hash.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

void expect(CUresult code, CUresult result, const char* call, const char* file, int line) {
    if (code != result) {
        fprintf(stderr, "%s:%d: %s is %d and not %d\n", file, line, call, result, code);
        _exit(1);
    }
}

void same(long long a, long long b, const char* what, const char* file, int line) {
    if (a != b) {
        fprintf(stderr, "%s:%d: %s: %lld and %lld\n", file, line, what, a, b);
        _exit(1);
    }
}

// What all processes of a case have.
struct Team {
    std::atomic<int> arrived, phase;
    alignas(4096) unsigned char bytes[1 << 16];
};
static Team* team;
static std::vector<int> sockets; // two for each rank: what is given to it, and what it takes

void Rank::meet() const {
    const int phase = team->phase;
    if (++team->arrived == nranks) {
        team->arrived = 0;
        team->phase += 1;
        return;
    }
    for (int waits = 0; team->phase == phase; ++waits) {
        usleep(200);
        if (waits > 100000) {
            fprintf(stderr, "rank %d waits where others never come\n", rank);
            _exit(1);
        }
    }
}

void* Rank::bytes() const { return team->bytes; }

void Rank::give(int to, int fd) const {
    char byte = 0;
    iovec data = {&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    SAME(sendmsg(sockets[size_t(2 * to)], &message, 0), 1);
}

int Rank::take() const {
    char byte = 0;
    iovec data = {&byte, 1};
    int fd = -1;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    SAME(recvmsg(sockets[size_t(2 * rank + 1)], &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

CUcontext Rank::begin(int device) const {
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    return context;
}

void in_processes(int nranks, const std::function<void(const Rank&)>& run, int dies) {
    void* at = mmap(nullptr, sizeof(Team), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    team = static_cast<Team*>(at);
    sockets.resize(size_t(2 * nranks));
    for (size_t i = 0; i < sockets.size(); i += 2) {
        SAME(socketpair(AF_UNIX, SOCK_DGRAM, 0, &sockets[i]), 0);
    }
    std::vector<pid_t> processes;
    for (int rank = 0; rank < nranks; ++rank) {
        const pid_t process = fork();
        if (process == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run({rank, nranks});
            _exit(0);
        }
        processes.push_back(process);
    }
    // The first that fails ends the case, and its other processes with it.
    for (int ended = 0; ended < nranks; ++ended) {
        int status = 0;
        const pid_t process = wait(&status);
        const auto rank = int(std::find(processes.begin(), processes.end(), process) - processes.begin());
        const bool died = WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
        if (rank == dies ? !died : status != 0) {
            fprintf(stderr, "rank %d ended with status %#x\n", rank, status);
            _exit(1);
        }
    }
}

bool faults(CUdeviceptr at, bool write) {
    const pid_t process = fork();
    if (process == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        auto* byte = reinterpret_cast<volatile unsigned char*>(at);
        const unsigned char value = *byte;
        if (write) {
            *byte = value;
        }
        _exit(0);
    }
    int status = 0;
    waitpid(process, &status, 0);
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
}

CUmemAllocationProp shareable(int device) {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return prop;
}

CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes, int device) {
    CUdeviceptr at = 0;
    OK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    OK(cuMemMap(at, bytes, 0, handle, 0));
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemSetAccess(at, bytes, &access, 1));
    return at;
}

CUfunction counting() {
    // The driver finds the library by a hash of the image, which is a text.
    const char image[] = "the kernels of this program";
    char program[4000];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    const std::string path(program, size_t(length)), folder = path.substr(0, path.rfind('/'));
    const std::string name = hex(hash(reinterpret_cast<const unsigned char*>(image), sizeof image));
    const bool made = symlink("calls-kernels.so", (folder + "/" + name + ".so").c_str()) == 0;
    SAME(made || errno == EEXIST, true);
    setenv("ROUNDELAY_FAKE", folder.c_str(), 1);
    CUmodule module;
    CUfunction function;
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleGetFunction(&function, module, "count"));
    OK(cuFuncLoad(function));
    return function;
}

CUresult launch(CUfunction function, CUstream stream, Told told) {
    void* parameters[] = {&told};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

int main(int count, char** words) {
    alarm(300);
    for (const Case* cases : {MEMORY, VMM, IPC, STREAMS, TURNS}) {
        for (; cases->name != nullptr; ++cases) {
            if (count == 1) {
                puts(cases->name);
            } else if (strcmp(words[1], cases->name) == 0) {
                cases->run();
                return 0;
            }
        }
    }
    return count == 1 ? 0 : 2;
}
