/* emu.cc - runs CUDA kernels on the CPU: scheduler, memory, streams.
   SPDX-License-Identifier: MIT

   One operating system thread does everything. It runs the blocks of a grid one after another (or
   a few in turns), and the threads of a block one after another, until one of them has to wait
   for others: for a barrier, or for the lanes of its warp. What waits keeps its stack, a *fiber*,
   and the next thread gets a fresh one. A thread that never waits costs no change of stack.

        scheduler (stack of main)              fibers
        ------------------------               ------------------------------------------
        choose a thread  -------------------->  thread 0 ... thread 1 ... thread 2: waits
              ^  |                                                              |
              |  +--- the next fiber --------->  thread 3 ... thread 4: waits   |
              +------------------------------------------------------------<----+

   This file is compiled without sanitizers (MemorySanitizer is the exception) and calls their
   run-time libraries where it has something to tell them: which stack is in use, which memory the
   host must not touch, which threads have really waited for each other. For MemorySanitizer's sake
   it does without std::string and std::map: parts of them are in libstdc++.so, which it cannot see.

   Sections: >>sanitizers >>options >>errors >>elf >>memory >>fibers >>shared >>threads >>order
             >>barriers >>warps >>fences >>grid >>streams >>capture >>launch >>copies >>devices
             >>exit */
#include "emu.h"

#include <cuda_runtime.h>

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#if !defined(__x86_64__) && !defined(EMU_UCONTEXT)
#define EMU_UCONTEXT
#endif
#ifdef EMU_UCONTEXT
#include <ucontext.h>
#endif

/* Everything below is built before, and destroyed after, the objects of the tested program. */
#define EMU_FIRST __attribute__((init_priority(200)))

/* ---- >>sanitizers ------------------------------------------------------------------------------

   Weak: null unless the program was linked with that sanitizer. */

#define EMU_WEAK __attribute__((weak))
extern "C" {
EMU_WEAK void __asan_poison_memory_region(const volatile void *, size_t);
EMU_WEAK void __asan_unpoison_memory_region(const volatile void *, size_t);
EMU_WEAK void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t size);
EMU_WEAK void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *size);
EMU_WEAK void __sanitizer_set_death_callback(void (*callback)());
EMU_WEAK void __sanitizer_print_stack_trace();
EMU_WEAK void __msan_poison(const volatile void *, size_t);
EMU_WEAK void __msan_allocated_memory(const volatile void *, size_t);
EMU_WEAK void __msan_unpoison_string(const char *);
EMU_WEAK void *__tsan_get_current_fiber();
EMU_WEAK void *__tsan_create_fiber(unsigned);
EMU_WEAK void __tsan_switch_to_fiber(void *, unsigned);
EMU_WEAK void __tsan_acquire(void *);
EMU_WEAK void __tsan_release(void *);
EMU_WEAK void __tsan_java_init(unsigned long, unsigned long);
EMU_WEAK void __tsan_java_move(unsigned long from, unsigned long to, unsigned long size);
}

namespace {

bool tsan() { return __tsan_create_fiber != nullptr; }
bool msan() { return __msan_poison != nullptr; }

void tsan_acquire(void *clock) { if (tsan()) __tsan_acquire(clock); }
void tsan_release(void *clock) { if (tsan()) __tsan_release(clock); }

/* 1 = "this switch orders nothing": only what CUDA orders shall count. */
void tsan_become(void *fiber) { if (tsan()) __tsan_switch_to_fiber(fiber, 1); }

/* Makes TSan forget which threads touched this memory: the next block's shared memory is another
   memory. The call is the one by which a Java VM says that its collector has moved an object; its
   "heap" is 16 bytes, since TSan searches the heap when it describes an address. */
void tsan_forget(void *p, size_t size)
{
    alignas(16) static char nowhere[16];
    static bool ready = false;
    if (!tsan() || !size) return;
    if (!ready) __tsan_java_init((unsigned long)nowhere, sizeof nowhere), ready = true;
    __tsan_java_move((unsigned long)nowhere, (unsigned long)p & ~7ul, (size + 15) & ~7ul);
}

/* memcpy and memset that no sanitizer sees. */
void raw_copy(void *to, const void *from, size_t size)
{
#ifdef __x86_64__
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
#else
    for (size_t i = 0; i < size; ++i) ((volatile char *)to)[i] = ((const volatile char *)from)[i];
#endif
}
void raw_fill(void *to, int byte, size_t size)
{
#ifdef __x86_64__
    asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
#else
    for (size_t i = 0; i < size; ++i) ((volatile char *)to)[i] = (char)byte;
#endif
}

/* ---- >>options ------------------------------------------------------------------------------- */

struct emu_options options;

long number_from_environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, nullptr, 0) : otherwise;
}

emu_order order_from_environment()
{
    const char *text = getenv("EMU_ORDER");
    if (!text || !*text || !strcmp(text, "forward")) return EMU_FORWARD;
    if (!strcmp(text, "reverse")) return EMU_REVERSE;
    if (!strcmp(text, "random")) return EMU_RANDOM;
    fprintf(stderr, "emu: EMU_ORDER must be forward, reverse or random, not '%s'\n", text);
    exit(2);
}

unsigned long long seed_from_environment()
{
    const char *text = getenv("EMU_SEED");
    if (text && !strcmp(text, "time"))
        return (unsigned long long)time(nullptr) * 1000 + (unsigned long long)getpid() % 1000;
    return text && *text ? strtoull(text, nullptr, 0) : 1;
}

struct ReadOptions {
    ReadOptions() {
        options.order = order_from_environment();
        options.seed = seed_from_environment();
        options.preempt = (int)number_from_environment("EMU_PREEMPT", 0);
        options.lazy = (int)number_from_environment("EMU_LAZY", 0);
        options.blocks = (int)number_from_environment("EMU_BLOCKS", 1);
        options.tsan_blocks = (int)number_from_environment("EMU_TSAN_BLOCKS", 0);
        options.leaks = (int)number_from_environment("EMU_LEAKS", 1);
        options.quiet = (int)number_from_environment("EMU_QUIET", 0);
    }
} read_options EMU_FIRST;

const char *order_name()
{
    static const char *const names[] = {"forward", "reverse", "random"};
    return names[options.order];
}

/* xorshift64*: Marsaglia 2003, Vigna 2016. Follows the seed, also when a test sets another one. */
uint64_t random_number()
{
    static uint64_t seed = 0, state = 0;
    if (seed != options.seed || !state) seed = options.seed, state = seed * 0x9e3779b97f4a7c15u | 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
}
size_t random_below(size_t n) { return (size_t)((random_number() >> 32) * n >> 32); }

/* ---- >>errors -------------------------------------------------------------------------------- */

cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

void say_where();

} // namespace

/* Every finding of the emulator itself ends here: `break emu_failed` stops at it in gdb. */
extern "C" [[noreturn]] void emu_failed(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
extern "C" [[noreturn]] void emu_failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "emu: error: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    say_where();
    if (__sanitizer_print_stack_trace) __sanitizer_print_stack_trace();
    fflush(stderr);
    _exit(70);
}

namespace {

/* ---- >>elf: the kernels and the shared memory of this program, from its own symbol table ----- */

/* A part of the shared memory: bytes first .. end - 1 of the section. */
struct Part {
    size_t first, end;
};

/* with its final 0; MemorySanitizer does not see what std::string does */
typedef std::vector<char> Name;

Name name_of(const char *text) { return Name(text, text + strlen(text) + 1); }

struct Kernel {
    const void *address;
    Name symbol;
    char name[120];
    long launches;
    int dynamic_limit; /* bytes of dynamic shared memory; more only after cudaFuncSetAttribute */
    Name scope;        /* "sum<float>(float*, int)::", as it stands in the names of what is local */
    std::vector<Part> parts; /* of the shared memory, all that is not another kernel's alone */
    bool parts_known;
};

struct SharedVariable {
    Name symbol, text; /* text: as in the source */
    Part part;
    const Kernel *owner; /* the only kernel that can reach it; null: not known */
};

std::deque<Kernel> kernels EMU_FIRST;
std::vector<SharedVariable> shared_variables EMU_FIRST; /* by place */
char *shared_begin = nullptr; /* the linker section of all __shared__ variables */
size_t shared_size = 0;

/* "void (anonymous namespace)::sum<float>(float*, int)" becomes "sum<float>", what one reads in the
   source. */
void shorten(const char *text, char *out, size_t room)
{
    static const char anonymous[] = "(anonymous namespace)::";
    int depth = 0;
    size_t n = 0;
    if (!strncmp(text, "void ", 5)) text += 5;
    while (*text && n + 1 < room) {
        if (!strncmp(text, anonymous, sizeof anonymous - 1)) {
            text += sizeof anonymous - 1;
            continue;
        }
        if (*text == '(' && depth == 0) break;
        depth += (*text == '<') - (*text == '>');
        out[n++] = *text++;
    }
    out[n] = 0;
}

/* As in the source; what has no other name keeps its symbol. */
Name demangled(const char *symbol)
{
    int status = 0;
    char *text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    if (text && msan()) __msan_unpoison_string(text); /* libstdc++ wrote it, unseen */
    Name name = name_of(text ? text : symbol);
    free(text);
    return name;
}

void add_kernel(const void *address, const char *symbol)
{
    Name text = demangled(symbol);
    const char *scope = text.data() + (strncmp(text.data(), "void ", 5) ? 0 : 5);
    kernels.push_back(Kernel{address, name_of(symbol), "", 0, 48 << 10, {}, {}, false});
    Kernel &kernel = kernels.back();
    shorten(text.data(), kernel.name, sizeof kernel.name);
    kernel.scope.assign(scope, scope + strlen(scope));
    for (char c : {':', ':', '\0'}) kernel.scope.push_back(c);
}

uintptr_t load_address()
{
    uintptr_t address = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *out) {
            *(uintptr_t *)out = info->dlpi_addr;
            return 1;
        },
        &address);
    return address;
}

/* All kernels, or, to learn its name, the function at `wanted`. (g++ forgets the section of
   templates: there they are not known before their first launch.) */
void add_kernels(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr &table, int section,
                 uintptr_t base, const void *wanted)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file + table.sh_offset);
    const char *names = file + sections[table.sh_link].sh_offset;
    for (size_t i = 0; i < table.sh_size / sizeof *symbols; ++i) {
        const char *name = names + symbols[i].st_name;
        const void *address = (const void *)(base + symbols[i].st_value);
        /* k.part.0, k.cold: pieces that the compiler split off */
        bool clone = strchr(name, '.') != nullptr;
        if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || clone) continue;
        if (wanted ? address == wanted : symbols[i].st_shndx == section) add_kernel(address, name);
    }
}

void add_shared_variables(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr &table,
                          int section)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file + table.sh_offset);
    const char *names = file + sections[table.sh_link].sh_offset;
    for (size_t i = 0; i < table.sh_size / sizeof *symbols; ++i) {
        const Elf64_Sym &s = symbols[i];
        if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || s.st_shndx != section || s.st_size == 0)
            continue;
        size_t const first = s.st_value - sections[section].sh_addr;
        const char *symbol = names + s.st_name;
        shared_variables.push_back(SharedVariable{name_of(symbol), demangled(symbol),
                                                  {first, first + s.st_size}, nullptr});
    }
    std::sort(shared_variables.begin(), shared_variables.end(),
              [](const SharedVariable &a, const SharedVariable &b) {
                  return a.part.first < b.part.first;
              });
}

/* Is it a variable of this function itself? _Z + the function's name without its _Z, enclosed in Z
   .. E, is how the name begins. */
bool is_variable_of(const SharedVariable &variable, const Kernel &kernel)
{
    const char *function = kernel.symbol.data(), *name = variable.symbol.data();
    size_t const length = strlen(function);
    return !strncmp(function, "_Z", 2) && !strncmp(name, "_ZZ", 3) &&
           !strncmp(name + 3, function + 2, length - 2) && name[length + 1] == 'E';
}

/* Is it a variable of an instance of a template that was made for something local to this kernel,
   such as a lambda? Nobody else can name that. */
bool is_made_for(const SharedVariable &variable, const Kernel &kernel)
{
    const char *at = variable.text.data();
    while ((at = strstr(at, kernel.scope.data())) != nullptr) {
        /* a template's argument, not the end of a longer name */
        if (at > variable.text.data() && strchr("< ", at[-1])) return true;
        ++at;
    }
    return false;
}

const Kernel *owner_of(const SharedVariable &variable)
{
    for (const Kernel &kernel : kernels)
        if (is_variable_of(variable, kernel)) return &kernel;
    for (const Kernel &kernel : kernels)
        if (is_made_for(variable, kernel)) return &kernel;
    return nullptr;
}

/* A program has the shared memory of all its kernels side by side; a kernel is at home in a small
   part of it. What is not for certain another kernel's alone is taken as its own. */
void find_parts(Kernel &kernel)
{
    size_t at = 0;
    kernel.parts_known = true;
    for (SharedVariable &variable : shared_variables) {
        if (!variable.owner) variable.owner = owner_of(variable);
        if (!variable.owner || variable.owner == &kernel) continue;
        if (variable.part.first > at) kernel.parts.push_back({at, variable.part.first});
        at = std::max(at, variable.part.end);
    }
    if (shared_size > at) kernel.parts.push_back({at, shared_size});
}

void read_elf_file(const char *file, const void *wanted)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + header->e_shoff);
    const char *names = file + sections[header->e_shstrndx].sh_offset;
    const uintptr_t base = load_address();
    int kernel_section = -1, shared_section = -1;
    for (int i = 0; i < header->e_shnum; ++i) {
        const char *name = names + sections[i].sh_name;
        if (!strcmp(name, ".emu_kernels")) kernel_section = i;
        if (strcmp(name, ".emu_shared") != 0) continue;
        shared_section = i;
        shared_begin = (char *)(base + sections[i].sh_addr);
        shared_size = sections[i].sh_size;
    }
    for (int i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        add_kernels(file, sections, sections[i], kernel_section, base, wanted);
        if (!wanted && shared_section >= 0)
            add_shared_variables(file, sections, sections[i], shared_section);
    }
}

void read_own_elf(const void *wanted)
{
    int file = open("/proc/self/exe", O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0) return;
    void *bytes = mmap(nullptr, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED) return;
    read_elf_file((const char *)bytes, wanted);
    munmap(bytes, (size_t)about.st_size);
}

struct ReadElf {
    ReadElf() { read_own_elf(nullptr); }
} read_elf EMU_FIRST;

Kernel *find_kernel(const void *address)
{
    for (Kernel &kernel : kernels)
        if (kernel.address == address) return &kernel;
    return nullptr;
}

Kernel &kernel_at(const void *address)
{
    if (!find_kernel(address)) read_own_elf(address);
    if (!find_kernel(address)) add_kernel(address, "a_kernel_without_a_symbol");
    return *find_kernel(address);
}

/* ---- >>memory ----------------------------------------------------------------------------------

   Device memory comes from malloc, so that AddressSanitizer guards its ends, and is filled with
   0xff (NaN, -1). While no kernel and no copy runs, all of it is poisoned: the host cannot read
   it. */

enum class Kind { device, pinned, managed };

struct Allocation {
    char *address;
    size_t size;
    Kind kind;
    const char *made_by;
    long number;
    bool of_graph; /* made during capture: lives as long as its graph */
};

std::vector<Allocation> allocations EMU_FIRST; /* by address */
long allocation_count = 0, fail_allocation_at = 0;
int device_work_depth = 0;

void poison_device_memory(bool poison)
{
    if (!__asan_poison_memory_region) return;
    for (const Allocation &a : allocations) {
        if (a.kind != Kind::device) continue;
        if (poison) __asan_poison_memory_region(a.address, a.size);
        else __asan_unpoison_memory_region(a.address, a.size);
    }
}

/* While one of these lives, "the GPU" is at work and device memory is open. */
struct DeviceWork {
    DeviceWork() { if (device_work_depth++ == 0) poison_device_memory(false); }
    ~DeviceWork() { if (--device_work_depth == 0) poison_device_memory(true); }
};

std::vector<Allocation>::iterator first_after(const void *p)
{
    return std::find_if(allocations.begin(), allocations.end(),
                        [p](const Allocation &a) { return a.address > (const char *)p; });
}

/* The allocation that holds p, or null. */
const Allocation *find_allocation(const void *p)
{
    auto after = first_after(p);
    if (after == allocations.begin()) return nullptr;
    const Allocation &a = *std::prev(after);
    return (const char *)p < a.address + a.size ? &a : nullptr;
}

const Allocation *allocation_at(const void *p)
{
    const Allocation *found = find_allocation(p);
    return found && found->address == p ? found : nullptr;
}

bool on_device(const void *p)
{
    const Allocation *found = find_allocation(p);
    return found && found->kind != Kind::pinned;
}

cudaError_t allocate(void **p, size_t size, Kind kind, const char *made_by, bool of_graph)
{
    if (!p) return result(cudaErrorInvalidValue);
    *p = nullptr;
    ++allocation_count;
    if (kind != Kind::pinned && fail_allocation_at > 0 && --fail_allocation_at == 0)
        return result(cudaErrorMemoryAllocation);
    if (size == 0) return cudaSuccess;
    if (size > (size_t)1 << 40 || posix_memalign(p, 256, size) != 0)
        return result(cudaErrorMemoryAllocation);
    raw_fill(*p, 0xff, size);
    if (msan()) __msan_allocated_memory(*p, size);
    allocations.insert(first_after(*p),
                       Allocation{(char *)*p, size, kind, made_by, allocation_count, of_graph});
    if (kind == Kind::device && device_work_depth == 0 && __asan_poison_memory_region)
        __asan_poison_memory_region(*p, size);
    return cudaSuccess;
}

void release(void *p, const char *call, bool pinned)
{
    if (!p) return;
    const Allocation *found = allocation_at(p);
    if (!found) emu_failed("%s(%p): not the start of a live allocation", call, p);
    if ((found->kind == Kind::pinned) != pinned)
        emu_failed("%s of memory from %s", call, found->made_by);
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(p, found->size);
    allocations.erase(std::prev(first_after(p)));
    free(p);
}

/* A range that a copy, a set or CUB is going to touch on the device. */
void check_range(const void *p, size_t size, const char *what)
{
    const Allocation *found = find_allocation(p);
    if (!found) emu_failed("%s: %p is not device memory", what, p);
    size_t room = (size_t)(found->address + found->size - (const char *)p);
    if (size > room)
        emu_failed("%s: %zu bytes, but only %zu are left of allocation #%ld (%zu bytes, %s)", what,
                   size, room, found->number, found->size, found->made_by);
}

/* ---- >>fibers: stacks, and changing from one to another -------------------------------------- */

struct Thread;
struct Identity;

struct Fiber {
#ifdef EMU_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer = nullptr;
#endif
    char *bottom = nullptr; /* null: the stack of main */
    size_t size = 0;
    void *fake_stack = nullptr; /* AddressSanitizer's, while this fiber is not running */
    Identity *identity = nullptr;
    Thread *first = nullptr; /* the thread to begin with when the fiber is next taken into use */
};

/* For ThreadSanitizer: the acting fiber. A CUDA thread (or block) with the stacks that only it may
   use. */
struct Identity {
    void *tsan_fiber = nullptr;
    std::vector<Fiber *> idle;
    size_t made = 0;
};

const size_t stack_size = 256 << 10;

Fiber scheduler_fiber EMU_FIRST;
Identity scheduler_identity EMU_FIRST;
Fiber *running_fiber = nullptr;
std::deque<Fiber> all_fibers EMU_FIRST;
std::deque<Identity> identities EMU_FIRST; /* [0] for all threads, unless TSan tells them apart */

void fiber_main();

#ifdef EMU_UCONTEXT
void prepare(Fiber &fiber)
{
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.bottom;
    fiber.context.uc_stack.ss_size = fiber.size;
    makecontext(&fiber.context, fiber_main, 0);
}
void change_stack(Fiber &from, Fiber &to) { swapcontext(&from.context, &to.context); }
#else
/* Saves what a function must preserve on the old stack, and takes it from the new one. */
extern "C" void emu_change_stack(void **save, void *load);
asm(".text\n"
    ".type emu_change_stack,@function\n"
    "emu_change_stack:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size emu_change_stack, .-emu_change_stack\n");

/* The first change to a fiber pops six zeros and "returns" into fiber_main, whose own return
   address is 0: there debuggers stop unwinding. */
void prepare(Fiber &fiber)
{
    /* 8 below a multiple of 16, as after a call */
    void **top = (void **)(fiber.bottom + fiber.size) - 1;
    top[0] = nullptr;
    top[-1] = (void *)fiber_main;
    for (int i = 2; i < 8; ++i) top[-i] = nullptr;
    fiber.stack_pointer = top - 7;
}
void change_stack(Fiber &from, Fiber &to)
{
    emu_change_stack(&from.stack_pointer, to.stack_pointer);
}
#endif

/* After every change of stack. The first one comes from main, whose bounds only AddressSanitizer
   knows. */
void arrived(Fiber &fiber)
{
    if (!__sanitizer_finish_switch_fiber) return;
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fiber.fake_stack, &bottom, &size);
    if (!scheduler_fiber.size)
        scheduler_fiber.bottom = (char *)const_cast<void *>(bottom), scheduler_fiber.size = size;
}

void change_to(Fiber &to)
{
    Fiber &from = *running_fiber;
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);
    running_fiber = &to;
    tsan_become(to.identity->tsan_fiber);
    change_stack(from, to);
    arrived(from);
}

/* 256 KiB, of which the system provides the pages in use; the lowest page stops an overflow. The
   tops are spread over a page: at equal offsets they would all compete for the same few cache
   lines. */
Fiber *new_fiber(Identity &identity)
{
    void *memory = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) emu_failed("no memory for another stack");
    mprotect(memory, 4096, PROT_NONE);
    all_fibers.emplace_back();
    Fiber *fiber = &all_fibers.back();
    fiber->bottom = (char *)memory;
    fiber->size = stack_size - all_fibers.size() % 32 * 128;
    fiber->identity = &identity;
    prepare(*fiber);
    /* so that a CUDA thread can give it back without malloc */
    identity.idle.reserve(++identity.made);
    return fiber;
}

Fiber *take_fiber(Identity &identity)
{
    if (tsan() && !identity.tsan_fiber) identity.tsan_fiber = __tsan_create_fiber(0);
    if (identity.idle.empty()) identity.idle.push_back(new_fiber(identity));
    Fiber *fiber = identity.idle.back();
    identity.idle.pop_back();
    return fiber;
}

/* Bookkeeping that allocates memory, done as the scheduler: else TSan would see one CUDA thread
   freeing what another one has allocated. */
struct AsScheduler {
    AsScheduler() { tsan_become(scheduler_identity.tsan_fiber); }
    ~AsScheduler() { tsan_become(running_fiber->identity->tsan_fiber); }
};

/* ---- >>threads: the state of a launch -------------------------------------------------------- */

const int max_block_threads = 1024;

enum class State { unstarted, running, waiting, ready, exited };

struct Block;

struct Thread {
    Block *block = nullptr;
    uint3 index = {0, 0, 0};
    int rank = 0; /* linear index in the block; rank / 32 is the warp, rank % 32 the lane */
    State state = State::unstarted;
    Fiber *fiber = nullptr;

    emu::Op op = emu::Op::sync; /* what it waits in, with the operands, and what came of it */
    emu::Site site = {"", 0};
    unsigned int mask = 0;
    uint64_t value = 0;
    int argument = 0, width = 32;
    uint64_t result = 0;

    long atomics = 0; /* since it was last resumed */
    long number = 0; /* among all threads ever: the next block's threads take the same memory */
    void *fence = nullptr;
    std::vector<void *> seen; /* >>fences */
};

/* Two clocks in turns for each barrier: with one, a thread that arrives at the next barrier early
   would seem ordered before those that leave this one late. */
struct Clocks {
    char clock[2];
    unsigned int phase;
    void *now() { return &clock[phase & 1]; }
};

struct Block {
    uint3 index = {0, 0, 0};
    size_t number = 0;
    int size = 0, exited = 0, at_barrier = 0;
    std::vector<Thread> threads;
    std::vector<int> order; /* in which the threads start */
    int started = 0;
    Clocks barrier = {{0, 0}, 0};
    unsigned int waiting[32] = {}; /* a bit for each lane of each warp: waits in a warp intrinsic */
    Clocks warp[32][32] = {}; /* of the group whose lowest lane is [..][lane] */
    std::vector<char> shared; /* its shared memory while another block of the same grid runs */
    bool fresh = true;

    Block() : threads(max_block_threads) { order.reserve(max_block_threads); }
    bool all_started() const { return started == size; }
    bool finished() const { return exited == size; }
};

/* Threads that can go on. All memory is allocated beforehand. */
struct Queue {
    std::vector<Thread *> ring;
    size_t head = 0, count = 0;

    void reserve(size_t n) { /* n: a power of two */
        if (ring.size() < n) ring.resize(n);
        head = count = 0;
    }
    Thread *&at(size_t i) { return ring[(head + i) & (ring.size() - 1)]; }
    void push(Thread *t) { at(count++) = t; }
    Thread *take(size_t i) {
        std::swap(at(i), at(0));
        Thread *t = at(0);
        ++head;
        --count;
        return t;
    }
};

struct Launch {
    Kernel *kernel = nullptr;
    const emu::Body *body = nullptr;
    dim3 grid, block;
    size_t dynamic_bytes = 0;
    char begin_clock = 0, end_clock = 0;
};

Launch *launch_now = nullptr; /* null: host code is running */
Thread *current = nullptr;
Block *shared_owner = nullptr; /* whose data is in the shared memory */
std::vector<Block *> resident EMU_FIRST; /* blocks in flight */
std::deque<Block> slots EMU_FIRST;
Queue released EMU_FIRST, yielded EMU_FIRST;

Thread *require_thread(const char *what)
{
    if (!current) emu_failed("%s outside of a kernel", what);
    return current;
}

/* ---- >>shared memory ------------------------------------------------------------------------- */

const size_t dynamic_capacity = 227 << 10; /* of an H100 */
alignas(1024) char dynamic_shared[dynamic_capacity];

void open_dynamic_shared(size_t bytes)
{
    if (!__asan_poison_memory_region) return;
    /* all first, so that the end is exact to the byte */
    __asan_poison_memory_region(dynamic_shared, dynamic_capacity);
    __asan_unpoison_memory_region(dynamic_shared, bytes);
}

/* Red zones between the variables are copied along: raw_copy asks no sanitizer. MemorySanitizer has
   no red zones, and its shadow must follow the bytes, so there memcpy does it. */
void copy_shared(void *to, const void *from, size_t size)
{
    if (msan()) memcpy(to, from, size);
    else raw_copy(to, from, size);
}

void save_shared(Block &block)
{
    for (Part part : launch_now->kernel->parts)
        copy_shared(block.shared.data() + part.first, shared_begin + part.first,
                    part.end - part.first);
    copy_shared(block.shared.data() + shared_size, dynamic_shared, launch_now->dynamic_bytes);
}
void load_shared(Block &block)
{
    for (Part part : launch_now->kernel->parts)
        copy_shared(shared_begin + part.first, block.shared.data() + part.first,
                    part.end - part.first);
    copy_shared(dynamic_shared, block.shared.data() + shared_size, launch_now->dynamic_bytes);
}

/* A new block finds rubbish, never the results of the last one. */
void scribble(char *first, size_t size)
{
    raw_fill(first, 0xff, size);
    if (msan()) __msan_poison(first, size);
    tsan_forget(first, size);
}
void scribble_shared()
{
    for (Part part : launch_now->kernel->parts)
        scribble(shared_begin + part.first, part.end - part.first);
    scribble(dynamic_shared, launch_now->dynamic_bytes);
}

void enter_block(Block &block)
{
    if (shared_owner && !shared_owner->finished()) save_shared(*shared_owner);
    if (block.fresh) scribble_shared();
    else load_shared(block);
    block.fresh = false;
    shared_owner = &block;
    blockIdx = block.index;
}

/* ---- >>order: what runs next ----------------------------------------------------------------- */

const int spin_limit = 1000; /* atomics in a row, after which a thread must let others run */
int budget_step = spin_limit;
double last_progress = 0;

double cpu_seconds() {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void print_waiting(Block &block);

const double hang_seconds = (double)number_from_environment("EMU_HANG", 20);

/* Called when a thread gives way: some thread has to progress in the end. */
void watch_for_hang()
{
    static unsigned int calls = 0;
    if (++calls % 1024) return;
    double now = cpu_seconds();
    if (last_progress == 0) last_progress = now;
    if (now - last_progress < hang_seconds) return;
    for (Block *b : resident) print_waiting(*b);
    emu_failed("for %.0f seconds threads have only been spinning: does one wait for a block that "
               "has not started?",
               hang_seconds);
}

template <class T> void arrange(std::vector<T> &items, size_t n)
{
    items.resize(n);
    for (size_t i = 0; i < n; ++i) items[i] = (T)(options.order == EMU_REVERSE ? n - 1 - i : i);
    if (options.order != EMU_RANDOM) return;
    for (size_t i = n; i > 1; --i) std::swap(items[i - 1], items[random_below(i)]);
}

size_t unstarted_threads()
{
    size_t n = 0;
    for (Block *b : resident) n += (size_t)(b->size - b->started);
    return n;
}

Thread *start_next(Block &block)
{
    return &block.threads[(size_t)block.order[(size_t)block.started++]];
}

Thread *start_any()
{
    size_t first = options.order == EMU_RANDOM ? random_below(resident.size()) : 0;
    for (size_t i = 0; i < resident.size(); ++i) {
        Block &block = *resident[(first + i) % resident.size()];
        if (!block.all_started()) return start_next(block);
    }
    return nullptr;
}

/* In random order any thread that can run. Else first those that were released, since they hold
   stacks; then new ones; and those that gave way while spinning last, since they wait for the
   others. */
Thread *choose()
{
    if (options.order == EMU_RANDOM) {
        size_t n = released.count + yielded.count + unstarted_threads();
        if (n == 0) return nullptr;
        size_t i = random_below(n);
        if (i < released.count) return released.take(i);
        i -= released.count;
        return i < yielded.count ? yielded.take(i) : start_any();
    }
    if (released.count) return released.take(0);
    if (Thread *t = start_any()) return t;
    return yielded.count ? yielded.take(0) : nullptr;
}

/* A thread has ended: may this fiber go on with another new one of the same block? */
Thread *choose_on_same_stack(Block &block)
{
    if ((tsan() && !options.tsan_blocks) || block.all_started()) return nullptr;
    if (options.order != EMU_RANDOM) return released.count ? nullptr : start_next(block);
    if (resident.size() > 1) return nullptr;
    size_t rest = (size_t)(block.size - block.started);
    return random_below(released.count + yielded.count + rest) < rest ? start_next(block) : nullptr;
}

void become(Thread *t)
{
    current = t;
    t->state = State::running;
    t->atomics = 0;
    threadIdx = t->index;
    emu::atomic_budget = budget_step - 1;
    if (shared_owner != t->block) enter_block(*t->block);
}

void make_ready(Thread *t)
{
    t->state = State::ready;
    t->block->waiting[t->rank / 32] &= ~(1u << (t->rank & 31));
    released.push(t);
}

void run_thread(Thread *t)
{
    become(t);
    tsan_acquire(&launch_now->begin_clock);
    launch_now->body->run();
    tsan_release(&launch_now->end_clock);
    t->state = State::exited;
    t->fiber = nullptr;
    ++t->block->exited;
}

Identity &identity_of(const Thread *t)
{
    size_t i = 0;
    if (tsan()) i = options.tsan_blocks ? t->block->number % 128 : (size_t)t->rank;
    while (identities.size() <= i) identities.emplace_back();
    return identities[i];
}

void resume(Thread *t)
{
    if (t->state == State::unstarted) {
        t->fiber = take_fiber(identity_of(t));
        t->fiber->first = t;
    } else {
        become(t);
    }
    if (t->fiber != running_fiber) change_to(*t->fiber);
}

/* Leaves the calling thread, and returns when it is its turn again. The next thread gets the CPU
   directly; the scheduler is asked only when a block is complete or no thread can run. (Under TSan
   always: making a stack allocates memory, which no CUDA thread must seem to do.) */
void give_way(bool block_complete)
{
    Thread *next = block_complete || tsan() ? nullptr : choose();
    if (next) resume(next);
    else change_to(scheduler_fiber);
}

void yield_here(Thread *t)
{
    watch_for_hang();
    t->state = State::ready;
    t->fiber = running_fiber;
    yielded.push(t);
    give_way(false);
}

/* A fiber runs one new thread after another; a thread that waits inside keeps the fiber until its
   end, after which the fiber is free for others. It never returns. */
void fiber_main()
{
    arrived(*running_fiber);
    for (;;) {
        Fiber *self = running_fiber;
        Block &block = *self->first->block;
        for (Thread *t = self->first; t; t = choose_on_same_stack(block)) run_thread(t);
        self->identity->idle.push_back(self);
        give_way(block.finished());
    }
}

/* ---- >>barriers ------------------------------------------------------------------------------ */

const char *op_name(emu::Op op)
{
    static const char *const names[] = {
        "__syncthreads",     "__syncthreads_count", "__syncthreads_and", "__syncthreads_or",
        "__syncwarp",        "__activemask",        "__shfl_sync",       "__shfl_up_sync",
        "__shfl_down_sync",  "__shfl_xor_sync",     "__ballot_sync",     "__any_sync",
        "__all_sync",        "__match_any_sync",    "__match_all_sync",  "__reduce_add_sync",
        "__reduce_min_sync", "__reduce_max_sync",   "__reduce_and_sync", "__reduce_or_sync",
        "__reduce_xor_sync"};
    return names[(int)op];
}

bool is_barrier(emu::Op op) { return op <= emu::Op::barrier_or; }

bool same_site(emu::Site a, emu::Site b)
{
    return a.line == b.line && (a.file == b.file || !strcmp(a.file, b.file));
}

bool same_call(const Thread &a, const Thread &b)
{
    return a.op == b.op && a.mask == b.mask && same_site(a.site, b.site);
}

struct SiteText { char text[200]; };

SiteText site_text(emu::Site site)
{
    SiteText out;
    const char *slash = strrchr(site.file, '/');
    snprintf(out.text, sizeof out.text, "%s:%d", slash ? slash + 1 : site.file, site.line);
    return out;
}

/* "  64 threads wait in __syncthreads at grid.cu:111 (the first is thread 0,0,0)", a line per
   place. */
void print_waiting(Block &block)
{
    std::vector<bool> told((size_t)block.size, false);
    fprintf(stderr, "emu: block %u,%u,%u of %s:\n", block.index.x, block.index.y, block.index.z,
            launch_now->kernel->name);
    for (int i = 0; i < block.size; ++i) {
        const Thread &a = block.threads[(size_t)i];
        if (a.state != State::waiting || told[(size_t)i]) continue;
        int same = 0;
        for (int j = i; j < block.size; ++j) {
            const Thread &b = block.threads[(size_t)j];
            bool counts = b.state == State::waiting && same_call(a, b) &&
                          (is_barrier(a.op) || a.rank / 32 == b.rank / 32);
            if (counts) told[(size_t)j] = true, ++same;
        }
        fprintf(stderr, "emu:   %d thread%s in %s at %s", same, same == 1 ? " waits" : "s wait",
                op_name(a.op), site_text(a.site).text);
        if (!is_barrier(a.op)) fprintf(stderr, ", mask 0x%08x, warp %d", a.mask, a.rank / 32);
        fprintf(stderr, " (the first: thread %u,%u,%u)\n", a.index.x, a.index.y, a.index.z);
    }
    if (block.exited)
        fprintf(stderr, "emu:   %d thread%s returned from the kernel\n", block.exited,
                block.exited == 1 ? " has" : "s have");
}

uint64_t count_votes(const Block &block)
{
    uint64_t n = 0;
    for (int i = 0; i < block.size; ++i) n += block.threads[(size_t)i].value;
    return n;
}

uint64_t vote(emu::Op op, uint64_t votes, uint64_t of)
{
    switch (op) {
    case emu::Op::barrier_count: return votes;
    case emu::Op::barrier_and: return votes == of;
    case emu::Op::barrier_or: return votes > 0;
    default: return 0;
    }
}

void complete_barrier(Block &block)
{
    const Thread &first = block.threads[0];
    for (int i = 1; i < block.size; ++i)
        if (!same_call(first, block.threads[(size_t)i])) {
            print_waiting(block);
            emu_failed("a barrier was reached at different places by the threads of one block");
        }
    uint64_t outcome = vote(first.op, count_votes(block), (uint64_t)block.size);
    block.at_barrier = 0;
    ++block.barrier.phase;
    last_progress = 0;
    for (int i = 0; i < block.size; ++i) {
        Thread &t = block.threads[(size_t)(options.order == EMU_REVERSE ? block.size - 1 - i : i)];
        t.result = outcome;
        make_ready(&t);
    }
}

} // namespace

uint64_t emu::barrier(Op op, int predicate, Site site)
{
    Thread *t = require_thread(op_name(op));
    Block &block = *t->block;
    t->op = op;
    t->site = site;
    t->mask = 0;
    t->value = predicate != 0;
    void *clock = block.barrier.now();
    tsan_release(clock);
    t->state = State::waiting;
    t->fiber = running_fiber;
    if (++block.at_barrier == block.size) complete_barrier(block);
    give_way(false);
    tsan_acquire(clock);
    return t->result;
}

namespace {

/* ---- >>warps --------------------------------------------------------------------------------- */

struct Warp {
    Thread *lane; /* lane[0] to lane[count - 1] */
    int count;
    unsigned int exists() const { return count == 32 ? 0xffffffffu : (1u << count) - 1; }
};

Warp warp_of(Thread *t)
{
    int first = t->rank & ~31;
    return Warp{&t->block->threads[(size_t)first], std::min(32, t->block->size - first)};
}

/* The lane that this one reads in a shuffle (PTX manual, shfl.sync). */
int shuffle_source(const Thread &t)
{
    int lane = t.rank & 31, first = lane & ~(t.width - 1), last = first + t.width - 1, from = lane;
    switch (t.op) {
    case emu::Op::shuffle: return first + (t.argument & (t.width - 1));
    case emu::Op::shuffle_up: from = lane - t.argument; return from < first ? lane : from;
    case emu::Op::shuffle_down: from = lane + t.argument; return from > last ? lane : from;
    default: from = lane ^ t.argument; return from > last ? lane : from;
    }
}

uint64_t shuffled(const Warp &warp, const Thread &t)
{
    int from = shuffle_source(t);
    if (from < 0 || from > 31 || !(t.mask & warp.exists() & (1u << from)))
        emu_failed(
            "%s at %s: lane %d (thread %u,%u,%u) reads lane %d, which takes no part (mask 0x%08x)",
            op_name(t.op), site_text(t.site).text, t.rank & 31, t.index.x, t.index.y, t.index.z,
            from, t.mask);
    return warp.lane[from].value;
}

uint64_t combine(emu::Op op, uint64_t a, uint64_t b)
{
    switch (op) {
    case emu::Op::add: return a + b;
    case emu::Op::min: return (int64_t)b < (int64_t)a ? b : a;
    case emu::Op::max: return (int64_t)b > (int64_t)a ? b : a;
    case emu::Op::bit_and: return a & b;
    case emu::Op::bit_or: return a | b;
    default: return a ^ b;
    }
}

uint64_t reduced(const Warp &warp, emu::Op op, unsigned int mask)
{
    int first = __builtin_ctz(mask);
    uint64_t sum = warp.lane[first].value;
    for (int i = first + 1; i < warp.count; ++i)
        if (mask >> i & 1) sum = combine(op, sum, warp.lane[i].value);
    return sum;
}

unsigned int lanes_with(const Warp &warp, unsigned int mask, uint64_t value)
{
    unsigned int lanes = 0;
    for (int i = 0; i < warp.count; ++i)
        if ((mask >> i & 1) && warp.lane[i].value == value) lanes |= 1u << i;
    return lanes;
}

uint64_t warp_result(const Warp &warp, const Thread &t, unsigned int mask)
{
    switch (t.op) {
    case emu::Op::sync: return 0;
    case emu::Op::shuffle:
    case emu::Op::shuffle_up:
    case emu::Op::shuffle_down:
    case emu::Op::shuffle_xor: return shuffled(warp, t);
    case emu::Op::ballot: return lanes_with(warp, mask, 1);
    case emu::Op::any: return lanes_with(warp, mask, 1) != 0;
    case emu::Op::all: return lanes_with(warp, mask, 1) == mask;
    case emu::Op::match_any: return lanes_with(warp, mask, t.value);
    case emu::Op::match_all: return lanes_with(warp, mask, t.value) == mask ? mask : 0;
    default: return reduced(warp, t.op, mask);
    }
}

bool all_arrived(const Warp &warp, const Thread &t, unsigned int mask)
{
    if ((t.block->waiting[t.rank / 32] & mask) != mask) return false;
    for (int i = 0; i < warp.count; ++i)
        if ((mask >> i & 1) && !same_call(t, warp.lane[i])) return false;
    return true;
}

/* All results first: a lane that goes on may call the next intrinsic at once. */
void complete_warp(const Warp &warp, unsigned int mask)
{
    for (int i = 0; i < warp.count; ++i)
        if (mask >> i & 1) warp.lane[i].result = warp_result(warp, warp.lane[i], mask);
    for (int k = 0; k < warp.count; ++k) {
        int i = options.order == EMU_REVERSE ? warp.count - 1 - k : k;
        if (mask >> i & 1) make_ready(&warp.lane[i]);
    }
}

/* __activemask may give any set of lanes that wait there together. It is asked for only when
   nothing else can run, and then gives some of them, at random: code that counts on "all" shall be
   disappointed. */
bool release_activemask(Block &block)
{
    for (int i = 0; i < block.size; ++i) {
        Thread &t = block.threads[(size_t)i];
        if (t.state != State::waiting || t.op != emu::Op::activemask) continue;
        Warp warp = warp_of(&t);
        unsigned int together = 0;
        for (int k = 0; k < warp.count; ++k)
            if (warp.lane[k].state == State::waiting && same_call(t, warp.lane[k]))
                together |= 1u << k;
        unsigned int some = together & (unsigned int)(random_number() >> 32);
        if (!some) some = 1u << (t.rank & 31);
        for (int k = 0; k < warp.count; ++k)
            if (some >> k & 1) warp.lane[k].result = some, make_ready(&warp.lane[k]);
        return true;
    }
    return false;
}

} // namespace

uint64_t emu::warp(Op op, unsigned int mask, uint64_t value, int argument, int width, Site site)
{
    Thread *t = require_thread(op_name(op));
    Warp warp = warp_of(t);
    int lane = t->rank & 31;
    if (op != Op::activemask && !(mask >> lane & 1))
        emu_failed("%s at %s: lane %d is not in its own mask 0x%08x", op_name(op),
                   site_text(site).text, lane, mask);
    if (width < 1 || width > 32 || (width & (width - 1)))
        emu_failed("%s at %s: the width %d is not a power of two up to 32", op_name(op),
                   site_text(site).text, width);
    t->op = op;
    t->site = site;
    t->mask = mask;
    t->value = value;
    t->argument = argument;
    t->width = width;
    t->state = State::waiting;
    t->fiber = running_fiber;
    t->block->waiting[t->rank / 32] |= 1u << lane;

    /* Of all these only __syncwarp orders memory. */
    Clocks *clocks = op == Op::sync ? &t->block->warp[t->rank / 32][__builtin_ctz(mask)] : nullptr;
    void *clock = clocks ? clocks->now() : nullptr;
    if (clock) tsan_release(clock);
    unsigned int taking_part = mask & warp.exists();
    if (op != Op::activemask && all_arrived(warp, *t, taking_part)) {
        if (clocks) ++clocks->phase;
        complete_warp(warp, taking_part);
    }
    give_way(false);
    if (clock) tsan_acquire(clock);
    return t->result;
}

namespace {

/* ---- >>fences ----------------------------------------------------------------------------------

   The one way in CUDA to hand data from a running thread to another without a barrier:

        producer:  write data;  __threadfence();  atomic on A
        consumer:  atomic on A;  __threadfence();  read data

   For TSan each fence of a producer gets a clock of its own. An atomic on A leaves the clock of the
   thread's last fence at A, and takes note of those that it finds there; the thread's next fence
   acquires what was noted. Without either of the two fences nothing is ordered. */

const size_t fence_clock_count = 1 << 18;
char fence_clocks[fence_clock_count][8];
size_t next_fence_clock = 0;
/* by thread number */
std::unordered_map<const void *, std::vector<std::pair<long, void *>>> published EMU_FIRST;

void publish(Thread *t, const void *address)
{
    AsScheduler no_cuda_thread;
    auto &here = published[address];
    std::pair<long, void *> *mine = nullptr;
    for (auto &entry : here) {
        if (entry.first == t->number) mine = &entry;
        else t->seen.push_back(entry.second);
    }
    if (t->fence && mine) mine->second = t->fence;
    if (t->fence && !mine) here.push_back({t->number, t->fence});
}

bool preempted() { return options.preempt > 0 && random_below((size_t)options.preempt) == 0; }

/* A thread begins without fences, and is no other that had its place before. */
void start_fences(Thread *t)
{
    static long threads = 0;
    t->number = ++threads;
    t->fence = nullptr;
    t->seen.clear();
}

} // namespace

void emu::fence()
{
    Thread *t = require_thread("__threadfence");
    if (preempted()) yield_here(t);
    if (!tsan()) return;
    for (void *clock : t->seen) __tsan_acquire(clock);
    t->seen.clear();
    t->fence = fence_clocks[next_fence_clock++ % fence_clock_count];
    __tsan_release(t->fence);
}

int emu::atomic_budget = 0;

/* Called at each atomic under TSan and EMU_PREEMPT, else at every spin_limit-th. */
void emu::atomic_event(const void *address)
{
    Thread *t = current;
    if (!t) return;
    emu::atomic_budget = budget_step - 1;
    t->atomics += budget_step;
    if (preempted() || t->atomics >= spin_limit) yield_here(t);
    if (tsan()) publish(t, address);
}

void emu::pause() { yield_here(require_thread("__nanosleep")); }

void *emu::dynamic_shared_memory()
{
    require_thread("dynamic shared memory");
    return dynamic_shared;
}

void emu::trap(const char *what, Site site) { emu_failed("%s at %s", what, site_text(site).text); }

namespace {
/* ---- >>grid: one launch ---------------------------------------------------------------------- */

void start_block(Block &block, size_t number)
{
    const dim3 &grid = launch_now->grid;
    block.number = number;
    block.index = uint3{(unsigned int)(number % grid.x), (unsigned int)(number / grid.x % grid.y),
                        (unsigned int)(number / grid.x / grid.y)};
    block.exited = block.at_barrier = block.started = 0;
    block.fresh = true;
    arrange(block.order, (size_t)block.size);
    for (int i = 0; i < block.size; ++i) {
        block.threads[(size_t)i].state = State::unstarted;
        start_fences(&block.threads[(size_t)i]);
    }
    if (shared_owner == &block) shared_owner = nullptr;
    last_progress = 0;
}

void prepare_slot(Block &block)
{
    const dim3 &size = launch_now->block;
    block.size = (int)(size.x * size.y * size.z);
    block.shared.resize(options.blocks > 1 ? shared_size + launch_now->dynamic_bytes : 0);
    for (int i = 0; i < block.size; ++i) {
        unsigned int rank = (unsigned int)i;
        Thread &t = block.threads[rank];
        t.block = &block;
        t.rank = i;
        t.index = uint3{rank % size.x, rank / size.x % size.y, rank / size.x / size.y};
    }
}

/* Under TSan one block at a time: it could not tell the shared memories of two blocks apart. With
   g++ too: it forgets the section of shared variables in templates, so they could not be put
   aside. */
size_t blocks_in_flight(size_t all)
{
#ifdef __clang__
    const bool can_interleave = !tsan();
#else
    const bool can_interleave = false;
#endif
    size_t wanted = can_interleave && options.blocks > 1 ? (size_t)options.blocks : 1;
    return std::min(wanted, all);
}

void prepare_grid(size_t in_flight)
{
    while (slots.size() < in_flight) slots.emplace_back();
    for (size_t i = 0; i < in_flight; ++i) prepare_slot(slots[i]);
    size_t room = max_block_threads;
    while (room < in_flight * max_block_threads) room *= 2;
    released.reserve(room);
    yielded.reserve(room);
    blockDim = launch_now->block;
    gridDim = launch_now->grid;
    open_dynamic_shared(launch_now->dynamic_bytes);
    budget_step = tsan() || options.preempt > 0 ? 1 : spin_limit;
    shared_owner = nullptr;
    running_fiber = &scheduler_fiber;
    scheduler_fiber.identity = &scheduler_identity;
    if (tsan()) scheduler_identity.tsan_fiber = __tsan_get_current_fiber();
}

void nobody_can_run()
{
    for (Block *b : resident)
        if (release_activemask(*b)) return;
    for (Block *b : resident) print_waiting(*b);
    emu_failed("all threads wait, and nothing can release them");
}

void run_blocks(const std::vector<size_t> &order, size_t in_flight)
{
    size_t next = 0;
    resident.clear();
    for (size_t i = 0; i < in_flight; ++i)
        start_block(slots[i], order[next++]), resident.push_back(&slots[i]);
    while (!resident.empty()) {
        if (Thread *t = choose()) resume(t);
        else nobody_can_run();
        current = nullptr;
        for (size_t i = resident.size(); i-- > 0;) {
            if (!resident[i]->finished()) continue;
            if (next < order.size()) start_block(*resident[i], order[next++]);
            else resident.erase(resident.begin() + (ptrdiff_t)i);
        }
    }
}

void run_grid(Launch &launch)
{
    launch_now = &launch;
    if (!launch.kernel->parts_known) find_parts(*launch.kernel);
    size_t all = (size_t)launch.grid.x * launch.grid.y * launch.grid.z;
    size_t in_flight = blocks_in_flight(all);
    prepare_grid(in_flight);
    tsan_release(&launch.begin_clock);
    std::vector<size_t> order;
    arrange(order, all);
    run_blocks(order, in_flight);
    tsan_acquire(&launch.end_clock);
    published.clear();
    ++launch.kernel->launches;
    launch_now = nullptr;
}

void say_where()
{
    if (launch_now)
        fprintf(stderr, "emu: in kernel %s, grid %ux%ux%u, block %ux%ux%u\n",
                launch_now->kernel->name, gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y,
                blockDim.z);
    if (current)
        fprintf(stderr, "emu: block %u,%u,%u, thread %u,%u,%u\n", blockIdx.x, blockIdx.y,
                blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    fprintf(stderr,
            "emu: to repeat it: EMU_ORDER=%s EMU_SEED=%llu EMU_PREEMPT=%d EMU_LAZY=%d "
            "EMU_BLOCKS=%d EMU_TSAN_BLOCKS=%d\n",
            order_name(), options.seed, options.preempt, options.lazy, options.blocks,
            options.tsan_blocks);
}

struct TellSanitizers {
    TellSanitizers() {
        if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(say_where);
    }
} tell_sanitizers EMU_FIRST;

} // namespace

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

/* ---- >>streams ---------------------------------------------------------------------------------

   Work is a function. A stream runs its work at once, or, with EMU_LAZY, keeps it until somebody
   waits for it: a program that forgot to wait then finds that nothing has been done. Events are a
   stream and a number: "when so much of it is done". Handles live until exit, to tell use after
   destroy. */

struct CUgraph_st {
    std::vector<std::function<void()>> work;
    std::vector<void *> memory; /* of cudaMallocAsync during the capture */
};
struct CUgraphNode_st {
    int unused;
};
struct CUgraphExec_st {
    std::shared_ptr<CUgraph_st> graph;
};

namespace {
struct Capture;
}

struct CUstream_st {
    bool alive = true, non_blocking = false;
    std::deque<std::function<void()>> queue;
    uint64_t given = 0, done = 0;
    Capture *capture = nullptr;
    uint64_t captured = 0; /* pieces of work in that capture so far */
};
struct CUevent_st {
    bool alive = true, timing = true;
    CUstream_st *stream = nullptr; /* null: never recorded */
    uint64_t number = 0;
    double time = 0;
    Capture *capture = nullptr;
    uint64_t captured = 0;
};

namespace {

CUstream_st legacy_stream EMU_FIRST, thread_stream EMU_FIRST;
std::deque<CUstream_st> streams EMU_FIRST;
std::deque<CUevent_st> events EMU_FIRST;
std::vector<std::shared_ptr<CUgraph_st>> graphs EMU_FIRST;
std::vector<cudaGraphExec_t> graph_execs EMU_FIRST;

CUstream_st &stream_of(cudaStream_t handle)
{
    if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream;
    if (handle == cudaStreamPerThread) return thread_stream;
    if (!handle->alive) emu_failed("a stream is used after cudaStreamDestroy");
    return *handle;
}

void check_event(cudaEvent_t event)
{
    if (!event || !event->alive)
        emu_failed("an event is used before cudaEventCreate or after cudaEventDestroy");
}

void run_one(CUstream_st &stream)
{
    std::function<void()> work = std::move(stream.queue.front());
    stream.queue.pop_front();
    DeviceWork device;
    work();
    ++stream.done;
}

void run_until(CUstream_st &stream, uint64_t number)
{
    while (stream.done < number) run_one(stream);
}
void run_all(CUstream_st &stream) { run_until(stream, stream.given); }

void run_blocking_streams()
{
    for (CUstream_st &s : streams)
        if (!s.non_blocking) run_all(s);
    run_all(thread_stream);
    run_all(legacy_stream);
}

/* Streams with work, in turns that the seed decides. */
void run_everything()
{
    for (;;) {
        std::vector<CUstream_st *> busy;
        for (CUstream_st &s : streams)
            if (!s.queue.empty()) busy.push_back(&s);
        if (!thread_stream.queue.empty()) busy.push_back(&thread_stream);
        if (!legacy_stream.queue.empty()) busy.push_back(&legacy_stream);
        if (busy.empty()) return;
        run_one(*busy[random_below(busy.size())]);
    }
}

/* ---- >>capture: what a stream is given between BeginCapture and EndCapture becomes a graph --- */

/* Another stream in a capture, and how much of its work the origin has waited for. */
struct Joined {
    CUstream_st *stream;
    uint64_t seen;
};

struct Capture {
    CUstream_st *origin;
    cudaStreamCaptureMode mode;
    std::shared_ptr<CUgraph_st> graph;
    std::vector<Joined> joined;
    bool invalid = false;
    unsigned long long id;
};

std::vector<Capture *> captures EMU_FIRST;

cudaError_t invalidate(Capture &capture, cudaError_t error)
{
    capture.invalid = true;
    return result(error);
}

/* For calls that would wait for the device, or change what is not the stream's: not during
   capture. */
cudaError_t forbid_during_capture(bool relaxed_may = false)
{
    for (Capture *c : captures)
        if (!relaxed_may || c->mode != cudaStreamCaptureModeRelaxed)
            return invalidate(*c, cudaErrorStreamCaptureUnsupported);
    return cudaSuccess;
}

/* Work on the legacy stream waits for all blocking streams: one that is capturing never gets
   done. */
cudaError_t forbid_implicit_wait(const CUstream_st &stream)
{
    if (&stream != &legacy_stream) return cudaSuccess;
    for (Capture *c : captures)
        if (!c->origin->non_blocking) return invalidate(*c, cudaErrorStreamCaptureImplicit);
    return cudaSuccess;
}

cudaError_t submit_to(CUstream_st &stream, std::function<void()> work)
{
    if (stream.capture) {
        if (stream.capture->invalid) return result(cudaErrorStreamCaptureInvalidated);
        stream.capture->graph->work.push_back(std::move(work));
        ++stream.captured;
        return cudaSuccess;
    }
    if (cudaError_t error = forbid_implicit_wait(stream)) return error;
    bool legacy = &stream == &legacy_stream;
    if (legacy) run_blocking_streams();
    stream.queue.push_back(std::move(work));
    ++stream.given;
    if (!options.lazy || legacy) run_all(stream);
    return cudaSuccess;
}

cudaError_t end_capture(Capture &capture, cudaGraph_t *graph)
{
    for (auto &[stream, seen] : capture.joined) {
        if (stream->captured != seen && !capture.invalid)
            capture.invalid = true, (void)result(cudaErrorStreamCaptureUnjoined);
        stream->capture = nullptr;
    }
    capture.origin->capture = nullptr;
    captures.erase(std::find(captures.begin(), captures.end(), &capture));
    if (capture.invalid)
        return last_error == cudaErrorStreamCaptureUnjoined
                   ? last_error
                   : result(cudaErrorStreamCaptureInvalidated);
    *graph = capture.graph.get();
    graphs.push_back(capture.graph);
    return cudaSuccess;
}

/* A stream that waits for an event of a capture joins it, or, as its origin, gets that work
   back. */
cudaError_t wait_in_capture(CUstream_st &stream, cudaEvent_t event)
{
    Capture *capture = event->capture;
    if (stream.capture && stream.capture != capture)
        return invalidate(*stream.capture, cudaErrorStreamCaptureMerge);
    if (!stream.capture) {
        stream.capture = capture;
        stream.captured = 0;
        capture->joined.push_back(Joined{&stream, 0});
    } else {
        for (Joined &j : capture->joined)
            if (j.stream == event->stream) j.seen = event->captured;
    }
    return cudaSuccess;
}

} // namespace

cudaError_t emu::submit(cudaStream_t stream, std::function<void()> work)
{
    return submit_to(stream_of(stream), std::move(work));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    streams.emplace_back();
    streams.back().non_blocking = (flags & cudaStreamNonBlocking) != 0;
    *stream = &streams.back();
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int)
{
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    CUstream_st &stream = stream_of(handle);
    if (&stream == &legacy_stream || &stream == &thread_stream)
        return result(cudaErrorInvalidResourceHandle);
    if (stream.capture) emu_failed("cudaStreamDestroy of a stream that is capturing");
    run_all(stream);
    stream.alive = false;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    CUstream_st &stream = stream_of(handle);
    if (stream.capture) return invalidate(*stream.capture, cudaErrorStreamCaptureUnsupported);
    if (cudaError_t error = forbid_implicit_wait(stream)) return error;
    if (&stream == &legacy_stream) run_blocking_streams();
    run_all(stream);
    return cudaSuccess;
}

/* Asking makes a step, so that a loop of asking ends. */
cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    CUstream_st &stream = stream_of(handle);
    if (stream.capture) return invalidate(*stream.capture, cudaErrorStreamCaptureUnsupported);
    if (stream.queue.empty()) return cudaSuccess;
    run_one(stream);
    return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int)
{
    CUstream_st &stream = stream_of(handle);
    check_event(event);
    if (event->capture) return wait_in_capture(stream, event);
    if (stream.capture) return invalidate(*stream.capture, cudaErrorStreamCaptureIsolation);
    if (!event->stream) return cudaSuccess;
    CUstream_st *other = event->stream;
    uint64_t number = event->number;
    return submit_to(stream, [other, number] { run_until(*other, number); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user)
{
    return submit_to(stream_of(stream), [function, user] { function(user); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    events.emplace_back();
    events.back().timing = !(flags & cudaEventDisableTiming);
    *event = &events.back();
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags)
{
    return cudaEventCreateWithFlags(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    check_event(event);
    event->alive = false;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    CUstream_st &stream = stream_of(handle);
    check_event(event);
    event->stream = &stream;
    event->capture = stream.capture;
    event->captured = stream.captured;
    if (stream.capture)
        return stream.capture->invalid ? result(cudaErrorStreamCaptureInvalidated) : cudaSuccess;
    event->number = stream.given + 1;
    return submit_to(stream, [event] {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        event->time = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    check_event(event);
    if (event->capture) return invalidate(*event->capture, cudaErrorCapturedEvent);
    if (event->stream) run_until(*event->stream, event->number);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    check_event(event);
    if (event->capture) return invalidate(*event->capture, cudaErrorCapturedEvent);
    if (!event->stream || event->stream->done >= event->number) return cudaSuccess;
    run_one(*event->stream);
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    check_event(start);
    check_event(end);
    if (!start->stream || !end->stream || !start->timing || !end->timing)
        return result(cudaErrorInvalidResourceHandle);
    if (start->stream->done < start->number || end->stream->done < end->number)
        return cudaErrorNotReady;
    *milliseconds = (float)(end->time - start->time);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    static unsigned long long id = 0;
    CUstream_st &stream = stream_of(handle);
    if (&stream == &legacy_stream) return result(cudaErrorStreamCaptureUnsupported);
    if (stream.capture) return result(cudaErrorInvalidValue);
    stream.capture = new Capture{&stream, mode, std::make_shared<CUgraph_st>(), {}, false, ++id};
    stream.captured = 0;
    captures.push_back(stream.capture);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    CUstream_st &stream = stream_of(handle);
    *graph = nullptr;
    if (!stream.capture) return result(cudaErrorInvalidValue);
    if (stream.capture->origin != &stream)
        return invalidate(*stream.capture, cudaErrorStreamCaptureUnmatched);
    std::unique_ptr<Capture> capture(stream.capture);
    return end_capture(*capture, graph);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph)
{
    const Capture *capture = stream_of(handle).capture;
    if (!capture) *status = cudaStreamCaptureStatusNone;
    else
        *status =
            capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    if (id && capture) *id = capture->id;
    if (graph && capture) *graph = capture->graph.get();
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status)
{
    return cudaStreamGetCaptureInfo(handle, status, nullptr, nullptr);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    /* there is nothing that one could do with them here */
    if (nodes) return result(cudaErrorNotSupported);
    *count = graph->work.size();
    return cudaSuccess;
}

namespace {

std::vector<std::shared_ptr<CUgraph_st>>::iterator find_graph(cudaGraph_t graph)
{
    return std::find_if(graphs.begin(), graphs.end(),
                        [graph](const std::shared_ptr<CUgraph_st> &g) { return g.get() == graph; });
}

std::vector<cudaGraphExec_t>::iterator find_exec(cudaGraphExec_t exec)
{
    auto found = std::find(graph_execs.begin(), graph_execs.end(), exec);
    if (found == graph_execs.end()) emu_failed("use of what is not an instantiated graph");
    return found;
}

/* The last owner, graph or instance, takes the graph's memory along. */
void drop_graph(std::shared_ptr<CUgraph_st> graph)
{
    if (graph.use_count() > 1) return;
    for (void *p : graph->memory)
        if (allocation_at(p)) release(p, "the end of a graph", false);
}

} // namespace

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    auto owner = find_graph(graph);
    if (owner == graphs.end()) return result(cudaErrorInvalidValue);
    *exec = new CUgraphExec_st{*owner};
    graph_execs.push_back(*exec);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t)
{
    find_exec(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    std::shared_ptr<CUgraph_st> graph = (*find_exec(exec))->graph;
    return submit_to(stream_of(stream), [graph] { for (const auto &work : graph->work) work(); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    graph_execs.erase(find_exec(exec));
    run_everything();
    std::shared_ptr<CUgraph_st> graph = exec->graph;
    delete exec;
    drop_graph(std::move(graph));
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle)
{
    auto found = find_graph(handle);
    if (found == graphs.end()) emu_failed("cudaGraphDestroy of what is not a graph");
    std::shared_ptr<CUgraph_st> graph = *found;
    graphs.erase(found);
    drop_graph(std::move(graph));
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    if (cudaError_t error = forbid_during_capture()) return error;
    run_everything();
    return cudaSuccess;
}

/* ---- >>launch -------------------------------------------------------------------------------- */

namespace {

long fail_launch_at = 0;

bool legal_shape(dim3 grid, dim3 block)
{
    size_t threads = (size_t)block.x * block.y * block.z;
    bool block_fits = threads >= 1 && threads <= (size_t)max_block_threads && block.x <= 1024 &&
                      block.y <= 1024 && block.z <= 64;
    return block_fits && grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= 0x7fffffffu &&
           grid.y <= 65535 && grid.z <= 65535;
}

} // namespace

void emu::check_range(const void *p, size_t size, const char *what)
{
    ::check_range(p, size, what);
}

void emu::check_argument(const void *kernel, int position, const void *pointer)
{
    /* an end is fine */
    bool known = !pointer || find_allocation(pointer) || find_allocation((const char *)pointer - 1);
    if (!known)
        emu_failed("argument %d of kernel %s, %p, is a pointer to host memory", position + 1,
                   kernel_at(kernel).name, pointer);
}

cudaError_t emu::launch(const cudaLaunchConfig_t &config, const void *kernel,
                        std::shared_ptr<const Body> body)
{
    Kernel &which = kernel_at(kernel);
    if (current) emu_failed("kernel %s is launched from a kernel", which.name);
    if (fail_launch_at > 0 && --fail_launch_at == 0) return result(cudaErrorLaunchOutOfResources);
    if (!legal_shape(config.gridDim, config.blockDim)) return result(cudaErrorInvalidConfiguration);
    if (config.dynamicSmemBytes > (size_t)which.dynamic_limit) return result(cudaErrorInvalidValue);
    dim3 grid = config.gridDim, block = config.blockDim;
    for (unsigned a = 0; a < config.numAttrs; a++)
        if (config.attrs[a].id == cudaLaunchAttributeCooperative && grid.x * grid.y * grid.z > 1)
            emu_failed("a cooperative launch has one block here: blocks run one after another");
    size_t dynamic_bytes = config.dynamicSmemBytes;
    return submit_to(stream_of(config.stream), [=, &which] {
        Launch launch;
        launch.kernel = &which;
        launch.body = body.get();
        launch.grid = grid;
        launch.block = block;
        launch.dynamic_bytes = dynamic_bytes;
        run_grid(launch);
    });
}

cudaError_t emu::set_function_attribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || (size_t)value > dynamic_capacity) return result(cudaErrorInvalidValue);
    kernel_at(kernel).dynamic_limit = value;
    return cudaSuccess;
}

cudaError_t emu::get_function_attributes(cudaFuncAttributes *attributes, const void *kernel)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = max_block_threads;
    attributes->numRegs = 32;
    attributes->maxDynamicSharedSizeBytes = kernel_at(kernel).dynamic_limit;
    return cudaSuccess;
}

cudaError_t emu::occupancy(int *blocks, const void *kernel, int block, size_t shared)
{
    if (block < 1 || block > max_block_threads || shared > (size_t)kernel_at(kernel).dynamic_limit)
        return result(cudaErrorInvalidValue);
    *blocks = std::min(2048 / block, 32);
    return cudaSuccess;
}

/* ---- >>copies -------------------------------------------------------------------------------- */

namespace {

void check_copy(const void *to, const void *from, size_t size, cudaMemcpyKind kind)
{
    static const char *const names[] = {"HostToHost", "HostToDevice", "DeviceToHost",
                                        "DeviceToDevice", "Default"};
    if (kind == cudaMemcpyDefault)
        kind = (cudaMemcpyKind)((on_device(from) ? 2 : 0) + (on_device(to) ? 1 : 0));
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (to_device != on_device(to))
        emu_failed("cudaMemcpy%s: the destination is %s memory", names[kind],
                   to_device ? "host" : "device");
    if (from_device != on_device(from))
        emu_failed("cudaMemcpy%s: the source is %s memory", names[kind],
                   from_device ? "host" : "device");
    if (to_device) check_range(to, size, "destination of a copy");
    if (from_device) check_range(from, size, "source of a copy");
}

/* As CUDA says: a pageable source may change as soon as the call has returned. */
bool needs_staging(const CUstream_st &stream, const void *from)
{
    return options.lazy && !stream.capture && &stream != &legacy_stream && !find_allocation(from);
}

} // namespace

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t handle)
{
    if (size == 0) return cudaSuccess;
    CUstream_st &stream = stream_of(handle);
    check_copy(to, from, size, kind);
    if (needs_staging(stream, from)) {
        auto staged = std::make_shared<std::vector<char>>(size);
        memcpy(staged->data(), from, size);
        return submit_to(stream, [=] { memcpy(to, staged->data(), size); });
    }
    return submit_to(stream, [=] { memmove(to, from, size); });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind)
{
    if (cudaError_t error = forbid_implicit_wait(legacy_stream)) return error;
    if (cudaError_t error = forbid_during_capture(true)) return error;
    return cudaMemcpyAsync(to, from, size, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream)
{
    if (size == 0) return cudaSuccess;
    check_range(p, size, "cudaMemset");
    return submit_to(stream_of(stream), [=] { memset(p, value, size); });
}

cudaError_t cudaMemset(void *p, int value, size_t size)
{
    if (cudaError_t error = forbid_implicit_wait(legacy_stream)) return error;
    if (cudaError_t error = forbid_during_capture(true)) return error;
    return cudaMemsetAsync(p, value, size, nullptr);
}

cudaError_t cudaMalloc(void **p, size_t size)
{
    if (cudaError_t error = forbid_during_capture(true)) return error;
    return allocate(p, size, Kind::device, "cudaMalloc", false);
}
cudaError_t cudaMallocManaged(void **p, size_t size, unsigned int)
{
    if (cudaError_t error = forbid_during_capture(true)) return error;
    return allocate(p, size, Kind::managed, "cudaMallocManaged", false);
}
cudaError_t cudaMallocHost(void **p, size_t size, unsigned int)
{
    if (cudaError_t error = forbid_during_capture(true)) return error;
    return allocate(p, size, Kind::pinned, "cudaMallocHost", false);
}
cudaError_t cudaHostAlloc(void **p, size_t size, unsigned int flags)
{
    return cudaMallocHost(p, size, flags);
}

cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t handle)
{
    CUstream_st &stream = stream_of(handle);
    if (cudaError_t error = forbid_implicit_wait(stream)) return error;
    cudaError_t error =
        allocate(p, size, Kind::device, "cudaMallocAsync", stream.capture != nullptr);
    if (error == cudaSuccess && stream.capture && *p) stream.capture->graph->memory.push_back(*p);
    return error;
}

cudaError_t cudaFree(void *p)
{
    if (!p) return cudaSuccess;
    if (cudaError_t error = forbid_during_capture(true)) return error;
    run_everything();
    release(p, "cudaFree", false);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *p)
{
    if (!p) return cudaSuccess;
    if (cudaError_t error = forbid_during_capture(true)) return error;
    run_everything();
    release(p, "cudaFreeHost", true);
    return cudaSuccess;
}

/* What a graph has allocated stays until the graph goes: it may be launched again. */
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    if (!p) return cudaSuccess;
    const Allocation *found = allocation_at(p);
    if (found && found->of_graph)
        return submit_to(stream_of(stream), [p, size = found->size] { raw_fill(p, 0xff, size); });
    return submit_to(stream_of(stream), [p] { release(p, "cudaFreeAsync", false); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p)
{
    const Allocation *found = find_allocation(p);
    *attributes = cudaPointerAttributes{cudaMemoryTypeUnregistered, -2, nullptr, nullptr};
    if (!found) return cudaSuccess;
    static const cudaMemoryType types[] = {cudaMemoryTypeDevice, cudaMemoryTypeHost,
                                           cudaMemoryTypeManaged};
    attributes->type = types[(int)found->kind];
    attributes->device = 0;
    attributes->devicePointer = const_cast<void *>(p);
    attributes->hostPointer = found->kind == Kind::device ? nullptr : const_cast<void *>(p);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int)
{
    *pool = nullptr;
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

/* ---- >>devices: one, with the limits of an H100 ---------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : result(cudaErrorInvalidDevice);
}
cudaError_t cudaDriverGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = (size_t)16 << 30;
    *free_bytes = *total_bytes - std::min(*total_bytes, emu_live_bytes());
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    if (device != 0) return result(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    strcpy(p->name, "nearfield CUDA emulator");
    p->totalGlobalMem = (size_t)16 << 30;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = p->sharedMemPerMultiprocessor = dynamic_capacity;
    p->totalConstMem = p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = max_block_threads;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->major = 9;
    p->multiProcessorCount = 2;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->memoryBusWidth = 64;
    p->l2CacheSize = 1 << 18; /* so that few particles exceed it */
    p->concurrentKernels = p->unifiedAddressing = p->managedMemory = p->memoryPoolsSupported = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp p;
    if (cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: *value = p.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: *value = p.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: *value = p.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = p.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = (int)p.sharedMemPerMultiprocessor;
        break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case cudaDevAttrClockRate: case cudaDevAttrMemoryClockRate: *value = 1000000; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrManagedMemory: case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    case cudaDevAttrCooperativeLaunch: *value = 0; break;
    default: return result(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define EMU_NAME(name, number, text) case name: return #name;
        EMU_ERRORS(EMU_NAME)
    }
    return "unrecognized error code";
}
const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define EMU_TEXT(name, number, text) case name: return text;
        EMU_ERRORS(EMU_TEXT)
    }
    return "unrecognized error code";
}
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError()
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- emu.h ----------------------------------------------------------------------------------- */

struct emu_options *emu_options(void) { return &options; }
void emu_fail_alloc(long n) { fail_allocation_at = n; }
void emu_fail_launch(long n) { fail_launch_at = n; }
long emu_allocations(void) { return allocation_count; }

long emu_live_allocations(void)
{
    long n = 0;
    for (const Allocation &a : allocations) n += !a.of_graph;
    return n;
}
size_t emu_live_bytes(void)
{
    size_t bytes = 0;
    for (const Allocation &a : allocations) bytes += a.size;
    return bytes;
}

long emu_launches(void)
{
    long n = 0;
    for (const Kernel &kernel : kernels) n += kernel.launches;
    return n;
}
int emu_kernel_count(void) { return (int)kernels.size(); }
const char *emu_kernel_name(int i) { return kernels[(size_t)i].name; }
long emu_kernel_launches(int i) { return kernels[(size_t)i].launches; }

/* ---- >>exit ---------------------------------------------------------------------------------- */

namespace {

void print_summary()
{
    int launched = 0;
    for (const Kernel &kernel : kernels) launched += kernel.launches > 0;
    fprintf(stderr, "emu: %ld launches of %d kernels", emu_launches(), launched);
    const char *before = ": ";
    for (const Kernel &kernel : kernels) {
        if (!kernel.launches) continue;
        fprintf(stderr, "%s%s×%ld", before, kernel.name, kernel.launches);
        before = ", ";
    }
    fprintf(stderr, " (order %s, seed %llu)\n", order_name(), options.seed);
}

/* A line "count name" for each kernel of the program, appended to $EMU_REPORT: emu.mk adds them
   up. */
void write_report(const char *path)
{
    FILE *file = fopen(path, "a");
    if (!file) return;
    for (const Kernel &kernel : kernels) fprintf(file, "%ld %s\n", kernel.launches, kernel.name);
    fclose(file);
}

long print_leaks()
{
    long leaks = 0;
    for (const Allocation &a : allocations) {
        if (a.of_graph) continue;
        ++leaks;
        fprintf(stderr, "emu: leak: %zu bytes, allocation #%ld, %s\n", a.size, a.number, a.made_by);
    }
    long live_streams =
        std::count_if(streams.begin(), streams.end(), [](const CUstream_st &s) { return s.alive; });
    long live_events =
        std::count_if(events.begin(), events.end(), [](const CUevent_st &e) { return e.alive; });
    if (live_streams) fprintf(stderr, "emu: leak: %ld streams never destroyed\n", live_streams);
    if (live_events) fprintf(stderr, "emu: leak: %ld events never destroyed\n", live_events);
    if (!graphs.empty()) fprintf(stderr, "emu: leak: %zu graphs never destroyed\n", graphs.size());
    if (!graph_execs.empty())
        fprintf(stderr, "emu: leak: %zu instantiated graphs never destroyed\n", graph_execs.size());
    return leaks + live_streams + live_events + (long)graphs.size() + (long)graph_execs.size();
}

struct AtExit {
    ~AtExit() {
        fflush(stdout);
        if (const char *path = getenv("EMU_REPORT")) write_report(path);
        if (!options.quiet) print_summary();
        if (!options.leaks || print_leaks() == 0) return;
        say_where();
        fflush(stderr);
        _exit(71);
    }
} at_exit EMU_FIRST;

} // namespace
