/* threads.h - desc.parallel of the headers on threads of the system.
   SPDX-License-Identifier: MIT OR Unlicense

   The headers start no threads: they hand tasks to a hook. This one has a pool, which lives as long
   as the library: threads are started by the first calls that want them, and sleep between calls.
   Any number of threads may call at once, also from within a task; the pool has as many threads as
   all calls under way want together. A call does its own tasks too, and so waits for no thread that
   has none. After a fork the child has an empty pool. The threads leave signals to the caller's,
   but for those of a fault of their own. They round, and treat subnormals, as the caller does. */

#include <fenv.h>

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#if !defined(_WIN32_WINNT) || _WIN32_WINNT < 0x0600
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0600 /* condition variables */
#endif
#include <windows.h>
#undef near /* words of 16-bit Windows, which names of ours have */
#undef far
typedef HANDLE nearfield_i_thread;
typedef SRWLOCK nearfield_i_mutex;
typedef CONDITION_VARIABLE nearfield_i_condition;
#define NEARFIELD_I_MUTEX SRWLOCK_INIT
#define NEARFIELD_I_CONDITION CONDITION_VARIABLE_INIT
#else
#include <pthread.h>
#include <signal.h>
typedef pthread_t nearfield_i_thread;
typedef pthread_mutex_t nearfield_i_mutex;
typedef pthread_cond_t nearfield_i_condition;
#define NEARFIELD_I_MUTEX PTHREAD_MUTEX_INITIALIZER
#define NEARFIELD_I_CONDITION PTHREAD_COND_INITIALIZER
#endif

enum { NEARFIELD_I_THREADS = 255 };     /* the most of the pool: callers are not among them */

/* A call that is under way: its threads take the tasks that are left, one by one. */
typedef struct nearfield_i_call {
    ugrid_task *task;
    void *context;
    int32_t next, tasks;
    int32_t helpers;            /* threads that may still join it */
    int32_t inside;             /* threads that have */
    fenv_t numbers;             /* how the caller rounds, and whether subnormals are 0 for it */
    int32_t forks;              /* of the pool when it began: after another one, nobody is inside */
    struct nearfield_i_call *other; /* a list */
} nearfield_i_call;

typedef struct nearfield_i_pool {
    nearfield_i_mutex lock;             /* of all that follows, and of the calls */
    nearfield_i_condition work, done;   /* there are tasks; a thread has left a call */
    nearfield_i_call *first;
    int32_t threads, wanted;            /* that it has; that all calls under way want */
    int32_t forks, ending;
    nearfield_i_thread thread[NEARFIELD_I_THREADS];
} nearfield_i_pool;

static nearfield_i_pool nearfield_i_all = {
    NEARFIELD_I_MUTEX, NEARFIELD_I_CONDITION, NEARFIELD_I_CONDITION, 0, 0, 0, 0, 0, {0}};

static void nearfield_i_help(nearfield_i_pool *pool);

#if defined(_WIN32)

static void nearfield_i_lock(nearfield_i_mutex *lock) { AcquireSRWLockExclusive(lock); }
static void nearfield_i_unlock(nearfield_i_mutex *lock) { ReleaseSRWLockExclusive(lock); }
static void nearfield_i_wait(nearfield_i_condition *until, nearfield_i_mutex *lock)
{
    (void)SleepConditionVariableSRW(until, lock, INFINITE, 0);
}
static void nearfield_i_signal(nearfield_i_condition *one) { WakeConditionVariable(one); }
static void nearfield_i_signal_all(nearfield_i_condition *all) { WakeAllConditionVariable(all); }

static DWORD WINAPI nearfield_i_begin(void *pool)
{
    nearfield_i_help((nearfield_i_pool *)pool);
    return 0;
}
static int nearfield_i_start(nearfield_i_pool *pool, nearfield_i_thread *thread)
{
    *thread = CreateThread(NULL, 0, nearfield_i_begin, pool, 0, NULL);
    return *thread != NULL;
}
static void nearfield_i_join(nearfield_i_thread thread)
{
    (void)WaitForSingleObject(thread, INFINITE);
    (void)CloseHandle(thread);
}

#else

static void nearfield_i_lock(nearfield_i_mutex *lock) { (void)pthread_mutex_lock(lock); }
static void nearfield_i_unlock(nearfield_i_mutex *lock) { (void)pthread_mutex_unlock(lock); }
static void nearfield_i_wait(nearfield_i_condition *until, nearfield_i_mutex *lock)
{
    (void)pthread_cond_wait(until, lock);
}
static void nearfield_i_signal(nearfield_i_condition *one) { (void)pthread_cond_signal(one); }
static void nearfield_i_signal_all(nearfield_i_condition *all)
{
    (void)pthread_cond_broadcast(all);
}

/* In the child there is one thread, whoever held the lock. */
static void nearfield_i_forked(void)
{
    nearfield_i_pool none = {NEARFIELD_I_MUTEX, NEARFIELD_I_CONDITION, NEARFIELD_I_CONDITION,
                             0, 0, 0, 0, 0, {0}};
    none.forks = nearfield_i_all.forks + 1;
    nearfield_i_all = none;
}

static void *nearfield_i_begin(void *pool)
{
    nearfield_i_help((nearfield_i_pool *)pool);
    return NULL;
}
static int nearfield_i_start(nearfield_i_pool *pool, nearfield_i_thread *thread)
{
    static int watched = 0;
    sigset_t every, had;
    int failed;
    if (!watched && pthread_atfork(NULL, NULL, nearfield_i_forked) != 0) return 0;
    watched = 1;
    (void)sigfillset(&every);
    (void)sigdelset(&every, SIGSEGV); /* blocked, they would end the process without a handler */
    (void)sigdelset(&every, SIGBUS);
    (void)sigdelset(&every, SIGFPE);
    (void)sigdelset(&every, SIGILL);
    (void)pthread_sigmask(SIG_SETMASK, &every, &had);
    failed = pthread_create(thread, NULL, nearfield_i_begin, pool);
    (void)pthread_sigmask(SIG_SETMASK, &had, NULL);
    return !failed;
}
static void nearfield_i_join(nearfield_i_thread thread) { (void)pthread_join(thread, NULL); }

#endif

/* Does tasks of a call until none is left. The lock is held at the call and at the return. */
static void nearfield_i_work_off(nearfield_i_pool *pool, nearfield_i_call *call)
{
    while (call->next < call->tasks) {
        int32_t const task = call->next++;
        nearfield_i_unlock(&pool->lock);
        call->task(call->context, task);
        nearfield_i_lock(&pool->lock);
    }
}

/* A thread of the pool: joins calls, and sleeps while there is none to join. */
static void nearfield_i_help(nearfield_i_pool *pool)
{
    nearfield_i_lock(&pool->lock);
    while (!pool->ending) {
        nearfield_i_call *call = pool->first;
        while (call && (call->helpers == 0 || call->next == call->tasks)) call = call->other;
        if (!call) {
            nearfield_i_wait(&pool->work, &pool->lock);
            continue;
        }
        call->helpers--;
        call->inside++;
        (void)fesetenv(&call->numbers);
        nearfield_i_work_off(pool, call);
        if (--call->inside == 0) nearfield_i_signal_all(&pool->done);
    }
    nearfield_i_unlock(&pool->lock);
}

/* The call is under way: threads for it are there, where the system gives them, and awake. */
static void nearfield_i_open(nearfield_i_pool *pool, nearfield_i_call *call)
{
    int32_t const helpers = call->helpers; /* fewer as soon as threads join */
    int32_t k;
    nearfield_i_lock(&pool->lock);
    call->forks = pool->forks;
    call->other = pool->first;
    pool->first = call;
    pool->wanted += helpers;
    while (pool->threads < pool->wanted && pool->threads < NEARFIELD_I_THREADS &&
           nearfield_i_start(pool, &pool->thread[pool->threads]))
        pool->threads++;
    nearfield_i_unlock(&pool->lock);
    for (k = 0; k < helpers; k++) nearfield_i_signal(&pool->work);
}

/* A hook for desc.parallel.run; `user` is the number of threads, the caller's included. Where the
   system gives fewer, these do the work. */
NEARFIELD_API void nearfield_run(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    nearfield_i_pool *pool = &nearfield_i_all;
    int32_t const threads = (int32_t)(intptr_t)user, most = threads < tasks ? threads : tasks,
                  helpers = most > NEARFIELD_I_THREADS ? NEARFIELD_I_THREADS : most - 1;
    nearfield_i_call call, **at;
    call.task = task;
    call.context = context;
    call.next = call.inside = 0;
    call.tasks = tasks;
    call.helpers = helpers;
    if (helpers < 1) {
        for (; call.next < tasks; call.next++) task(context, call.next);
        return;
    }
    (void)fegetenv(&call.numbers);
    nearfield_i_open(pool, &call);
    nearfield_i_lock(&pool->lock);
    nearfield_i_work_off(pool, &call);
    if (call.forks == pool->forks) {
        for (at = &pool->first; *at != &call; at = &(*at)->other) continue;
        *at = call.other;
        pool->wanted -= helpers;
        while (call.inside > 0) nearfield_i_wait(&pool->done, &pool->lock);
    }
    nearfield_i_unlock(&pool->lock);
}

/* Ends the threads, which the next call starts again: before the library is unloaded. No call may
   be under way. */
NEARFIELD_API void nearfield_end_threads(void)
{
    nearfield_i_pool *pool = &nearfield_i_all;
    nearfield_i_lock(&pool->lock);
    pool->ending = 1;
    nearfield_i_signal_all(&pool->work);
    nearfield_i_unlock(&pool->lock);
    while (pool->threads > 0) nearfield_i_join(pool->thread[--pool->threads]);
    pool->ending = 0;
}
