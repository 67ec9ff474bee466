/* threads.h - desc.parallel of the headers on threads of the system.
   SPDX-License-Identifier: MIT OR Unlicense

   The headers start no threads: they hand tasks to a hook. This one starts threads for each call
   and waits until they have ended, so that nothing of them is left when a process forks. */

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#undef near /* words of 16-bit Windows, which names of ours have */
#undef far
typedef HANDLE nearfield_i_thread;
typedef CRITICAL_SECTION nearfield_i_mutex;
#else
#include <pthread.h>
typedef pthread_t nearfield_i_thread;
typedef pthread_mutex_t nearfield_i_mutex;
#endif

enum { NEARFIELD_I_THREADS = 256 };

/* Tasks that are left: the threads take them one by one. */
typedef struct nearfield_i_tasks {
    nearfield_i_mutex lock;
    ugrid_task *task;
    void *context;
    int32_t next, tasks;
} nearfield_i_tasks;

static void nearfield_i_work_off(nearfield_i_tasks *left);

#if defined(_WIN32)

static int nearfield_i_make(nearfield_i_mutex *lock)
{
    InitializeCriticalSection(lock);
    return 1;
}
static void nearfield_i_unmake(nearfield_i_mutex *lock) { DeleteCriticalSection(lock); }
static void nearfield_i_lock(nearfield_i_mutex *lock) { EnterCriticalSection(lock); }
static void nearfield_i_unlock(nearfield_i_mutex *lock) { LeaveCriticalSection(lock); }

static DWORD WINAPI nearfield_i_begin(void *tasks)
{
    nearfield_i_work_off((nearfield_i_tasks *)tasks);
    return 0;
}
static int nearfield_i_start(nearfield_i_thread *thread, nearfield_i_tasks *tasks)
{
    *thread = CreateThread(NULL, 0, nearfield_i_begin, tasks, 0, NULL);
    return *thread != NULL;
}
static void nearfield_i_join(nearfield_i_thread thread)
{
    (void)WaitForSingleObject(thread, INFINITE);
    (void)CloseHandle(thread);
}

#else

static int nearfield_i_make(nearfield_i_mutex *lock) { return !pthread_mutex_init(lock, NULL); }
static void nearfield_i_unmake(nearfield_i_mutex *lock) { (void)pthread_mutex_destroy(lock); }
static void nearfield_i_lock(nearfield_i_mutex *lock) { (void)pthread_mutex_lock(lock); }
static void nearfield_i_unlock(nearfield_i_mutex *lock) { (void)pthread_mutex_unlock(lock); }

static void *nearfield_i_begin(void *tasks)
{
    nearfield_i_work_off((nearfield_i_tasks *)tasks);
    return NULL;
}
static int nearfield_i_start(nearfield_i_thread *thread, nearfield_i_tasks *tasks)
{
    return pthread_create(thread, NULL, nearfield_i_begin, tasks) == 0;
}
static void nearfield_i_join(nearfield_i_thread thread) { (void)pthread_join(thread, NULL); }

#endif

static int32_t nearfield_i_next_task(nearfield_i_tasks *left)
{
    int32_t task;
    nearfield_i_lock(&left->lock);
    task = left->next < left->tasks ? left->next++ : -1;
    nearfield_i_unlock(&left->lock);
    return task;
}

static void nearfield_i_work_off(nearfield_i_tasks *left)
{
    int32_t task;
    while ((task = nearfield_i_next_task(left)) >= 0) left->task(left->context, task);
}

/* A hook for desc.parallel.run; `user` is the number of threads, the caller's included. Where the
   system gives fewer, these do the work. */
NEARFIELD_API void nearfield_run(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    nearfield_i_tasks left;
    nearfield_i_thread thread[NEARFIELD_I_THREADS];
    int32_t const wanted = (int32_t)(intptr_t)user;
    int32_t started = 0;
    left.task = task;
    left.context = context;
    left.next = 0;
    left.tasks = tasks;
    if (!nearfield_i_make(&left.lock)) {
        for (; left.next < tasks; left.next++) task(context, left.next);
        return;
    }
    while (started < wanted - 1 && started < tasks - 1 && started < NEARFIELD_I_THREADS &&
           nearfield_i_start(&thread[started], &left))
        started++;
    nearfield_i_work_off(&left);
    while (started > 0) nearfield_i_join(thread[--started]);
    nearfield_i_unmake(&left.lock);
}
