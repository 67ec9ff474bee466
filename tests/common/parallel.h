/* parallel.h - functions for `desc.parallel.run`, for tests and benchmarks: a pool of threads, and
   four that run the tasks of a call in one thread or not at all.
   SPDX-License-Identifier: MIT OR Unlicense

       parallel_pool pool;
       parallel_start(&pool, 4);                 four threads, the caller's one of them
       desc.parallel.run = parallel_threads;     each task on the next free thread
       desc.parallel.user = &pool;
       desc.parallel.tasks = 7;
       ...
       parallel_stop(&pool);

   Without a pool (user may be NULL): parallel_forward, parallel_backward and parallel_shuffled run
   the tasks one by one; parallel_refuse runs none; parallel_last_missing runs all but the last. */

#ifndef PARALLEL_H
#define PARALLEL_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef void parallel_task(void *context, int32_t index);

enum { PARALLEL_MOST_THREADS = 256 };

typedef struct parallel_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t threads[PARALLEL_MOST_THREADS];
    int32_t others;             /* threads besides the caller's */
    int32_t tasks, next, ended; /* of the call that is under way; 0: none */
    int ending;
    parallel_task *task;
    void *context;
    int64_t calls;              /* of parallel_threads so far: did a header use the hook? */
} parallel_pool;

/* Runs tasks until none is left. The lock is held at the call and at the return. */
static void parallel_take(parallel_pool *pool)
{
    while (pool->next < pool->tasks) {
        int32_t const index = pool->next++;
        pthread_mutex_unlock(&pool->lock);
        pool->task(pool->context, index);
        pthread_mutex_lock(&pool->lock);
        if (++pool->ended == pool->tasks) pthread_cond_signal(&pool->done);
    }
}

static void *parallel_thread(void *of_pool)
{
    parallel_pool *pool = (parallel_pool *)of_pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ending) {
        parallel_take(pool);
        if (!pool->ending) pthread_cond_wait(&pool->work, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void parallel_start(parallel_pool *pool, int32_t threads)
{
    int32_t i;
    if (threads < 1 || threads > PARALLEL_MOST_THREADS) abort();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->others = threads - 1;
    pool->tasks = pool->next = pool->ended = 0;
    pool->ending = 0;
    pool->calls = 0;
    for (i = 0; i < pool->others; i++)
        if (pthread_create(&pool->threads[i], NULL, parallel_thread, pool) != 0) abort();
}

static void parallel_stop(parallel_pool *pool)
{
    int32_t i;
    pthread_mutex_lock(&pool->lock);
    pool->ending = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < pool->others; i++) pthread_join(pool->threads[i], NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
}

static void parallel_threads(parallel_task *task, void *context, int32_t tasks, void *user)
{
    parallel_pool *pool = (parallel_pool *)user;
    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->context = context;
    pool->next = pool->ended = 0;
    pool->tasks = tasks;
    pool->calls++;
    pthread_cond_broadcast(&pool->work);
    parallel_take(pool);
    while (pool->ended < pool->tasks) pthread_cond_wait(&pool->done, &pool->lock);
    pool->tasks = 0;
    pthread_mutex_unlock(&pool->lock);
}

static void parallel_forward(parallel_task *task, void *context, int32_t tasks, void *user)
{
    int32_t i;
    (void)user;
    for (i = 0; i < tasks; i++) task(context, i);
}

static void parallel_backward(parallel_task *task, void *context, int32_t tasks, void *user)
{
    int32_t i;
    (void)user;
    for (i = tasks; i-- > 0;) task(context, i);
}

/* The order changes from call to call where `user` points to a uint64_t. */
static void parallel_shuffled(parallel_task *task, void *context, int32_t tasks, void *user)
{
    uint64_t state = user ? *(uint64_t *)user : 1;
    int32_t *order = (int32_t *)malloc((size_t)tasks * sizeof *order);
    int32_t i;
    if (!order) abort();
    for (i = 0; i < tasks; i++) order[i] = i;
    for (i = tasks; i-- > 1;) {
        int32_t j, other;
        state = state * 6364136223846793005u + 1442695040888963407u;
        j = (int32_t)((state >> 33) % (uint64_t)(i + 1));
        other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (i = 0; i < tasks; i++) task(context, order[i]);
    free(order);
    if (user) *(uint64_t *)user = state;
}

static void parallel_refuse(parallel_task *task, void *context, int32_t tasks, void *user)
{
    (void)task;
    (void)context;
    (void)tasks;
    (void)user;
}

static void parallel_last_missing(parallel_task *task, void *context, int32_t tasks, void *user)
{
    parallel_forward(task, context, tasks - 1, user);
}

/* Keeps compilers silent about those that a program does not use. */
static void parallel_all_used(void)
{
    (void)parallel_start;
    (void)parallel_stop;
    (void)parallel_threads;
    (void)parallel_backward;
    (void)parallel_shuffled;
    (void)parallel_refuse;
    (void)parallel_last_missing;
    (void)parallel_all_used;
}

#endif
