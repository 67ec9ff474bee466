/* threads.h - desc.parallel of the headers on threads of the system.
   SPDX-License-Identifier: MIT OR Unlicense

   The headers start no threads: they hand tasks to a hook. This one starts threads for each call
   and waits until they have ended, so that nothing of them is left when a process forks. */

#if !defined(_WIN32)
#include <pthread.h>
#endif

enum { NEARFIELD_I_THREADS = 256 };

#if defined(_WIN32)

/* Windows: the tasks run one after the other. */
NEARFIELD_API void nearfield_run(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    int32_t k;
    (void)user;
    for (k = 0; k < tasks; k++) task(context, k);
}

#else

/* Tasks that are left: the threads take them one by one. */
typedef struct nearfield_i_tasks {
    pthread_mutex_t lock;
    ugrid_task *task;
    void *context;
    int32_t next, tasks;
} nearfield_i_tasks;

static int32_t nearfield_i_next_task(nearfield_i_tasks *left)
{
    int32_t task;
    (void)pthread_mutex_lock(&left->lock);
    task = left->next < left->tasks ? left->next++ : -1;
    (void)pthread_mutex_unlock(&left->lock);
    return task;
}

static void *nearfield_i_work_off(void *tasks)
{
    nearfield_i_tasks *left = (nearfield_i_tasks *)tasks;
    int32_t task;
    while ((task = nearfield_i_next_task(left)) >= 0) left->task(left->context, task);
    return NULL;
}

/* A hook for desc.parallel.run; `user` is the number of threads, the caller's included. Where the
   system gives fewer, these do the work. */
NEARFIELD_API void nearfield_run(ugrid_task *task, void *context, int32_t tasks, void *user)
{
    nearfield_i_tasks left;
    pthread_t thread[NEARFIELD_I_THREADS];
    int32_t const wanted = (int32_t)(intptr_t)user;
    int32_t started = 0;
    left.task = task;
    left.context = context;
    left.next = 0;
    left.tasks = tasks;
    if (pthread_mutex_init(&left.lock, NULL) != 0) {
        for (; left.next < tasks; left.next++) task(context, left.next);
        return;
    }
    while (started < wanted - 1 && started < tasks - 1 && started < NEARFIELD_I_THREADS &&
           pthread_create(&thread[started], NULL, nearfield_i_work_off, &left) == 0)
        started++;
    (void)nearfield_i_work_off(&left);
    while (started > 0) (void)pthread_join(thread[--started], NULL);
    (void)pthread_mutex_destroy(&left.lock);
}

#endif
