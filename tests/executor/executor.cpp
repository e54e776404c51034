/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the TAGC authors
 *
 * The executor: fibers, and who runs next. */
#include "executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#if defined __SANITIZE_ADDRESS__
#define EXECUTOR_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define EXECUTOR_ASAN 1
#endif
#endif
#ifdef EXECUTOR_ASAN
#include <sanitizer/common_interface_defs.h>
#define STACK ((size_t)256 << 10)
#else
#define STACK ((size_t)64 << 10)
#endif

struct executor_index executor_thread, executor_block, executor_block_size, executor_grid;

namespace
{
enum state { READY, AT_WAVE, AT_BARRIER, DONE };

struct fiber {
#ifdef __x86_64__
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    const char *stack;
    size_t stack_bytes;
    void *fake_stack; /* of the address sanitizer */
    enum state state;
    int line;          /* where it waits */
    unsigned sequence; /* how many meetings of its wave it has been at */
};

/* What the lanes of a wave bring to a meeting. Two of them: a lane may be at the next one before all have read this. */
struct wave {
    uint64_t brought[2][EXECUTOR_WAVE_MAX];
};

fiber fibers[EXECUTOR_BLOCK_MAX], host;
wave waves[EXECUTOR_BLOCK_MAX / 32];
unsigned running, block_threads, wave_threads;
void (*run_body)(void *);
void *run_context;
uint64_t random_state;
unsigned order; /* 0: by number */

/* ---- Fibers ---- */
#ifdef __x86_64__
extern "C" void executor_switch(void **save, void *load);
/* Saves what a called function must keep, and takes the other's. */
asm(".text\n"
    ".type executor_switch, @function\n"
    "executor_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size executor_switch, .-executor_switch\n"
    ".section .note.GNU-stack,\"\",@progbits\n.text\n");
#endif

void change(fiber *from, fiber *to, bool leaving)
{
#ifdef EXECUTOR_ASAN
    __sanitizer_start_switch_fiber(leaving ? nullptr : &from->fake_stack, to->stack, to->stack_bytes);
#else
    (void)leaving;
#endif
#ifdef __x86_64__
    executor_switch(&from->stack_pointer, to->stack_pointer);
#else
    swapcontext(&from->context, &to->context);
#endif
#ifdef EXECUTOR_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}

void fiber_main()
{
#ifdef EXECUTOR_ASAN
    __sanitizer_finish_switch_fiber(nullptr, (const void **)&host.stack, &host.stack_bytes);
#endif
    run_body(run_context);
    fibers[running].state = DONE;
    change(&fibers[running], &host, true);
}

void wait_as(enum state state, int line)
{
    fiber *f = &fibers[running];
    f->state = state;
    f->line = line;
    change(f, &host, false);
}

void prepare(fiber *f)
{
    if (!f->stack) {
        void *at = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            fputs("executor: no memory for stacks\n", stderr);
            abort();
        }
        f->stack = (char *)at;
        f->stack_bytes = STACK;
    }
    f->state = READY;
    f->sequence = 0;
#ifdef __x86_64__
    void **top = (void **)((uintptr_t)f->stack + STACK) - 1; /* as if called: 8 below a multiple of 16 */
    top[0] = nullptr;
    *--top = (void *)fiber_main;
    top -= 6; /* what executor_switch takes from there */
    for (int i = 0; i < 6; i++)
        top[i] = nullptr;
    f->stack_pointer = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = (void *)f->stack;
    f->context.uc_stack.ss_size = STACK;
    makecontext(&f->context, fiber_main, 0);
#endif
}

void resume(unsigned thread)
{
    running = thread;
    executor_thread.x = thread;
    fibers[thread].state = READY;
    change(&host, &fibers[thread], false);
}

/* ---- Order ---- */
unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % below);
}

void shuffle(unsigned *numbers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        numbers[i] = i;
    for (unsigned i = n; order && i > 1; i--) {
        unsigned j = draw(i), t = numbers[i - 1];
        numbers[i - 1] = numbers[j];
        numbers[j] = t;
    }
}

/* ---- Waves and blocks ---- */
const char *name_of(enum state state)
{
    return state == AT_WAVE ? "at a vote or shuffle" : state == AT_BARRIER ? "at a barrier" : "has returned";
}

[[noreturn]] void differ(const char *who, unsigned a, unsigned b)
{
    fprintf(stderr,
            "executor: threads of a %s have parted: thread %u of block %u,%u %s (line %d), thread %u %s (line %d)\n",
            who, a, executor_block.x, executor_block.y, name_of(fibers[a].state), fibers[a].line, b,
            name_of(fibers[b].state), fibers[b].line);
    abort();
}

/* Threads [first, last) are all in the same state at the same line. */
enum state agree(const char *who, unsigned first, unsigned last)
{
    for (unsigned i = first + 1; i < last; i++)
        if (fibers[i].state != fibers[first].state || (fibers[i].state != DONE && fibers[i].line != fibers[first].line))
            differ(who, first, i);
    return fibers[first].state;
}

/* Every lane once, up to where it must wait. */
enum state step_wave(unsigned wave, const unsigned *lanes)
{
    unsigned first = wave * wave_threads, last = first + wave_threads;
    last = last < block_threads ? last : block_threads;
    for (unsigned i = 0; i < wave_threads; i++)
        if (first + lanes[i] < last)
            resume(first + lanes[i]);
    return agree("wave", first, last);
}

void run_block()
{
    unsigned count = (block_threads + wave_threads - 1) / wave_threads;
    unsigned lanes[EXECUTOR_WAVE_MAX], turn[EXECUTOR_BLOCK_MAX / 32];
    enum state at[EXECUTOR_BLOCK_MAX / 32];
    for (unsigned i = 0; i < block_threads; i++)
        prepare(&fibers[i]);
    for (;;) {
        unsigned left = count;
        for (unsigned w = 0; w < count; w++)
            at[w] = READY;
        while (left) { /* up to the next barrier; waves take turns in any order */
            shuffle(turn, count);
            shuffle(lanes, wave_threads);
            for (unsigned i = 0; i < count; i++) {
                unsigned w = turn[i], steps = order ? 1 + draw(3) : UINT32_MAX;
                while (steps-- && (at[w] == READY || at[w] == AT_WAVE)) {
                    at[w] = step_wave(w, lanes);
                    left -= at[w] == AT_BARRIER || at[w] == DONE;
                }
            }
        }
        if (agree("block", 0, block_threads) == DONE)
            return;
    }
}
} // namespace

extern "C" uint64_t __start_executor_shared[], __stop_executor_shared[];

/* Not memset, which the address sanitizer would look at: there is room between variables. */
__attribute__((no_sanitize("address"))) static void spoil_shared(void)
{
    for (volatile uint64_t *at = __start_executor_shared; at + 1 <= __stop_executor_shared; at++)
        *at = 0xa5a5a5a5a5a5a5a5;
}

const uint64_t *executor_wave(uint64_t brought, int line)
{
    fiber *f = &fibers[running];
    unsigned wave = running / wave_threads, buffer = f->sequence++ & 1;
    waves[wave].brought[buffer][running % wave_threads] = brought;
    wait_as(AT_WAVE, line);
    return waves[wave].brought[buffer];
}

void executor_barrier(int line)
{
    wait_as(AT_BARRIER, line);
}

extern "C" void executor_use_order(unsigned wanted)
{
    order = wanted;
}

void executor_run(unsigned grid_x, unsigned grid_y, unsigned block, unsigned wave, void (*body)(void *), void *context)
{
    random_state = order;
    if (block == 0 || block > EXECUTOR_BLOCK_MAX || block % wave || (wave != 32 && wave != 64)) {
        fprintf(stderr, "executor: a block of %u threads in waves of %u\n", block, wave);
        abort();
    }
    block_threads = block;
    wave_threads = wave;
    run_body = body;
    run_context = context;
    executor_grid = {grid_x, grid_y, 1};
    spoil_shared();
    executor_block_size = {block, 1, 1};
    for (unsigned y = 0; y < grid_y; y++)
        for (unsigned x = 0; x < grid_x; x++) {
            executor_block = {order ? grid_x - 1 - x : x, y, 0};
            run_block();
        }
}
