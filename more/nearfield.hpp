/* more/nearfield.hpp - v0.2.0 - C++17 over ugrid.h, lbvh.h, nlist.h and nbody.h.
   SPDX-License-Identifier: MIT OR Unlicense */

/*
   The headers are C. In C++ they compile as they are, but `ugrid copy = grid;` copies pointers, so
   both objects free the same memory. This header adds classes that own what the C objects own:

       grid, tree, world, list, bodies   move, do not copy, free themselves
       for (auto hit : grid.within(...)) range-for over neighbours, overlaps, pairs and contacts
       grid.each_pair(r, [&](...) {})    lambdas with captures, which may throw
       records, view                     std::vector, std::array, std::span, arrays of structs in
       grid.build(desc, pos)             throws nearfield::error,
       grid.build(desc, pos, &result)    or tells the result
       nearfield::f64::grid              doubles beside floats in one program

   Each function calls one of C, or runs the walk that C programs run, in the same time
   (tests/cpp/bench_nearfield.cpp measures both). What has no method here takes the C object:
   nearfield::check(ugrid_verify(&*grid, ...)). docs/cpp.md shows all of it.

   >>contents: common, records, results, ranges, callbacks, grid, tree, world, list, bodies, doubles

   >>use

   Copy the folder more beside the headers. It includes those of the four that are there.

   In one C++ file:        #define NEARFIELD_IMPLEMENTATION
                           #include "more/nearfield.hpp"
   everywhere else:        #include "more/nearfield.hpp"
   parts:                  their macros before it (LBVH_WITH_WORLD ...), in every file
   doubles too:            #define NEARFIELD_DOUBLE before it, in every file that uses them and in
                           the one with the implementation: the headers once more, in the namespace
                           nearfield::f64. There nearfield::f64::ugrid_desc is the desc of doubles

   Where a file includes it with another macro for the second time, that one comes too late. The
   real types of C files (UGRID_REAL) stay float. With UGRID_CUDA and its like the classes are those
   of the CPU, and NEARFIELD_DOUBLE is refused.

   >>rules

   Memory     A class holds one C object. Moving it moves the struct, and leaves an empty one:
              ranges and walks of the old place are then not valid. Positions that C borrows
              (UGRID_FIXED, UGRID_LIST ...) are borrowed here, and so is what the pointers of a
              desc or a filter point to (masks, radii, exclusions, indices, tasks, laws).
   Errors     Last argument `result`: given, it gets the C result, and nothing is thrown; not given,
              any result but OK throws. (-fno-exceptions: it must be given.) Memory of the class
              `rows`, which C++ allocates, throws std::bad_alloc in both cases.
   Callbacks  return nothing, or non-zero to stop. One that throws ends the search, and its
              exception leaves the call. Others: list.sum (0: the two do not touch), nearest_by
              (a distance), law (a number); law and tasks may not throw.
   Threads    As those of the C functions. `tasks` makes a hook of a lambda.
*/
#ifndef NEARFIELD_HPP
#define NEARFIELD_HPP

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "nearfield.hpp needs C++17: -std=c++17 (cl: /std:c++17). The C headers do not"
#endif

#if defined(NEARFIELD_IMPLEMENTATION)
#define UGRID_IMPLEMENTATION
#define LBVH_IMPLEMENTATION
#define NLIST_IMPLEMENTATION
#define NBODY_IMPLEMENTATION
#endif

#if defined(NEARFIELD_DOUBLE) && (defined(UGRID_CUDA) || defined(LBVH_CUDA) || \
    defined(NLIST_CUDA) || defined(NBODY_CUDA))
#error "nearfield.hpp: NEARFIELD_DOUBLE goes without CUDA: use doubles in another file"
#endif

#if __has_include("../ugrid.h")
#include "../ugrid.h"
#endif
#if __has_include("../lbvh.h")
#include "../lbvh.h"
#endif
#if __has_include("../nlist.h")
#include "../nlist.h"
#endif
#if __has_include("../nbody.h")
#include "../nbody.h"
#endif

#ifdef UGRID_H
#if 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + UGRID_VERSION_PATCH != 200
#error "more/nearfield.hpp 0.2.0 and ugrid.h are of different versions: copy both from one release"
#endif
#endif
#ifdef LBVH_H
#if 10000 * LBVH_VERSION_MAJOR + 100 * LBVH_VERSION_MINOR + LBVH_VERSION_PATCH != 200
#error "more/nearfield.hpp 0.2.0 and lbvh.h are of different versions: copy both from one release"
#endif
#endif
#ifdef NLIST_H
#if 10000 * NLIST_VERSION_MAJOR + 100 * NLIST_VERSION_MINOR + NLIST_VERSION_PATCH != 200
#error "more/nearfield.hpp 0.2.0 and nlist.h are of different versions: copy both from one release"
#endif
#endif
#ifdef NBODY_H
#if 10000 * NBODY_VERSION_MAJOR + 100 * NBODY_VERSION_MINOR + NBODY_VERSION_PATCH != 200
#error "more/nearfield.hpp 0.2.0 and nbody.h are of different versions: copy both from one release"
#endif
#endif

#if (defined(UGRID_H) && UGRID_I_REAL_KIND != 1) || (defined(LBVH_H) && LBVH_I_REAL_KIND != 1) || \
    (defined(NLIST_H) && NLIST_I_REAL_KIND != 1) || (defined(NBODY_H) && NBODY_I_REAL_KIND != 1)
#error "nearfield.hpp: leave UGRID_REAL and its like float, and define NEARFIELD_DOUBLE for doubles"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wweak-vtables" /* class error, whole in a header */
#endif
#endif

#ifdef __cpp_exceptions
#define NEARFIELD_I_THROWS = nullptr
#define NEARFIELD_I_OR(value) = value /* of arguments before it */
#else
#define NEARFIELD_I_THROWS
#define NEARFIELD_I_OR(value)
#endif

/* The step of a walk: inlined with the C function that it calls, as in a loop of C. (clang turns
   the loop round first, and then sees two calls, which it leaves calls.) */
#if defined(__clang__)
#define NEARFIELD_I_STEP __attribute__((always_inline, flatten)) inline
#elif defined(__GNUC__)
#define NEARFIELD_I_STEP __attribute__((always_inline)) inline
#else
#define NEARFIELD_I_STEP inline
#endif

/* Not inlined: where it would take the registers of such a loop. */
#if defined(__GNUC__) || defined(__clang__)
#define NEARFIELD_I_RARE __attribute__((noinline, cold))
#else
#define NEARFIELD_I_RARE
#endif

namespace nearfield {

/* ----------------------------------------------------------------------------------------------
   >>common: what both real types share
   ---------------------------------------------------------------------------------------------- */

/* A C call that was refused: its text, which names the field to change, its code (ugrid_result and
   so on), and the particle or element that it refused, -1 if the reason was another. */
class error : public std::runtime_error {
public:
    error(const char *text, int code, std::int32_t bad_id)
        : std::runtime_error(bad_id < 0 ? std::string(text)
                                        : text + (": " + std::to_string(bad_id))),
          code_(code), bad_id_(bad_id) {}
    int code() const noexcept { return code_; }
    std::int32_t bad_id() const noexcept { return bad_id_; }

private:
    int code_;
    std::int32_t bad_id_;
};

/* Elements that lie one after the other, borrowed: std::span of C++17. From anything with data()
   and size(), and from arrays. */
template <class T> class view {
public:
    view() noexcept = default;
    view(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class Container, class = std::enable_if_t<std::is_convertible_v<
        std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))> (*)[], T (*)[]>>>
    view(Container &&all) : data_(std::data(all)), size_(std::size(all)) {}
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + size_; }
    T &operator[](std::size_t k) const noexcept { return data_[k]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* An array that grows without setting its elements, and without keeping them (std::vector writes
   each of them first). */
template <class T> class buffer {
    static_assert(std::is_trivial_v<T>, "for numbers and plain structs");

public:
    buffer() noexcept = default;
    /* The other is empty then, and can be used again. */
    buffer(buffer &&other) noexcept
        : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    buffer &operator=(buffer &&other) noexcept
    {
        memory_ = std::move(other.memory_);
        size_ = std::exchange(other.size_, 0);
        capacity_ = std::exchange(other.capacity_, 0);
        return *this;
    }
    std::size_t size() const noexcept { return size_; }
    std::size_t capacity() const noexcept { return capacity_; }
    T *data() noexcept { return memory_.get(); }
    const T *data() const noexcept { return memory_.get(); }
    const T *begin() const noexcept { return data(); }
    const T *end() const noexcept { return data() + size_; }
    const T &operator[](std::size_t k) const noexcept { return data()[k]; }

    /* Room for `size` elements; larger memory does not keep what was there. */
    void resize(std::size_t size)
    {
        if (size > capacity_) {
            memory_.reset();
            capacity_ = size_ = 0;
            memory_.reset(new T[size]);
            capacity_ = size;
        }
        size_ = size;
    }
    /* Room for `more` elements behind those that are there. */
    T *append(std::size_t more)
    {
        if (more > capacity_ - size_) {
            std::size_t const room = size_ + more + capacity_;
            std::unique_ptr<T[]> larger(new T[room]);
            for (std::size_t k = 0; k < size_; k++) larger[k] = memory_[k];
            memory_ = std::move(larger);
            capacity_ = room;
        }
        size_ += more;
        return data() + size_ - more;
    }
    void clear() noexcept { size_ = 0; }

private:
    std::unique_ptr<T[]> memory_;
    std::size_t size_ = 0, capacity_ = 0;
};

/* Lists in CSR form: rows[i] are the ids of row i. Memory is kept from call to call. */
struct rows {
    buffer<std::int64_t> offsets;
    buffer<std::int32_t> ids;

    std::size_t size() const noexcept { return offsets.size() ? offsets.size() - 1 : 0; }
    view<const std::int32_t> operator[](std::size_t i) const noexcept
    {
        return {ids.data() + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
    }
};

struct pair { std::int32_t i, j; };

/* Owns a C object. `*grid` is the object, for the functions of C: ugrid_bytes(&*grid). */
template <class Object, void (*Free)(Object *)> class owner {
public:
    owner() noexcept = default;
    owner(owner &&other) noexcept : object_(other.object_) { other.object_ = Object{}; }
    owner &operator=(owner &&other) noexcept
    {
        if (this == &other) return *this;
        Free(&object_);
        object_ = other.object_;
        other.object_ = Object{};
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() { Free(&object_); }

    Object &operator*() noexcept { return object_; }
    const Object &operator*() const noexcept { return object_; }
    Object *operator->() noexcept { return &object_; }
    const Object *operator->() const noexcept { return &object_; }

private:
    Object object_{};
};

/* ----------------------------------------------------------------------------------------------
   >>records: positions, boxes, triangles in, as C takes them: a pointer, a stride, a number

       std::vector<float> pos;                              x y z x y z ...
       std::vector<std::array<float, 3>>, float pos[8][3]   a record each
       std::vector<vec3>                                    a struct that begins with a number x,
                                                            followed by all others (y, z; a box: 6)
       records(bodies, &body::position)                     a member of a struct
   ---------------------------------------------------------------------------------------------- */
template <class Real> class basic_records {
    template <class T, class = void> struct begins_with_x : std::false_type {};
    template <class T> struct begins_with_x<T, std::void_t<decltype(T::x)>>
        : std::bool_constant<std::is_same_v<std::remove_cv_t<decltype(T::x)>, Real> &&
                             std::is_standard_layout_v<T>> {};
    /* One record of T: is it made of Reals, from its first byte on? */
    template <class T> static constexpr bool is_record()
    {
        if constexpr (std::is_array_v<T>) return is_number<std::remove_extent_t<T>>();
        else if constexpr (std::is_class_v<T>) return begins_with_x<T>::value || is_std_array<T>();
        else return false;
    }
    template <class T> static constexpr bool is_number()
    {
        return std::is_same_v<std::remove_cv_t<T>, Real>;
    }
    template <class T> static constexpr bool is_std_array()
    {
        if constexpr (has_value_type<T>::value)
            return is_number<typename T::value_type>() && std::is_standard_layout_v<T> &&
                   std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(Real) == 0 &&
                   std::tuple_size<T>::value * sizeof(Real) == sizeof(T);
        else return false;
    }
    template <class T, class = void> struct has_value_type : std::false_type {};
    template <class T> struct has_value_type<T, std::void_t<typename T::value_type,
                                                            decltype(std::tuple_size<T>::value)>>
        : std::true_type {};
    template <class Container>
    using element = std::remove_cv_t<
        std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))>>;

public:
    basic_records() noexcept = default;
    basic_records(const Real *first, std::size_t stride, std::size_t count) noexcept
        : first_(first), stride_(stride), size_(count), width_(stride / sizeof(Real)) {}

    template <class Container, class T = element<Container>,
              class = std::enable_if_t<is_number<T>() || is_record<T>()>>
    basic_records(Container &&all) : size_(std::size(all))
    {
        if constexpr (is_number<T>()) {
            first_ = std::data(all);
        } else {
            first_ = reinterpret_cast<const Real *>(std::data(all));
            stride_ = sizeof(T);
            width_ = sizeof(T) / sizeof(Real);
        }
    }

    template <class Container, class Struct, class Member,
              class = std::enable_if_t<is_number<Member>() || is_record<Member>()>>
    basic_records(Container &&all, Member Struct::*member)
        : stride_(sizeof(Struct)), size_(std::size(all)), width_(sizeof(Member) / sizeof(Real))
    {
        static_assert(sizeof(Struct) % sizeof(Real) == 0, "the stride is a multiple of the number");
        if (size_ == 0) return;
        first_ = reinterpret_cast<const Real *>(&(std::data(all)->*member));
    }

    const Real *data() const noexcept { return first_; }
    std::size_t stride() const noexcept { return stride_; }
    /* How many, of `numbers` numbers each; -1: they do not go into it, or are too many. */
    std::int32_t count(int numbers) const noexcept
    {
        std::size_t const each = static_cast<std::size_t>(numbers);
        std::size_t const n = stride_ ? size_ : size_ / each;
        bool const fits = stride_ ? each <= width_ : size_ % each == 0;
        return fits && n <= INT32_MAX ? static_cast<std::int32_t>(n) : -1;
    }
    /* What a C call takes for an empty array: any pointer but NULL. */
    const Real *pointer() const noexcept { return first_ ? first_ : &nothing; }

private:
    static constexpr Real nothing = 0;
    const Real *first_ = nullptr;
    std::size_t stride_ = 0, size_ = 0, width_ = 0;
};

/* One point, or one box: an array, a std::vector, or a record as above; or a pointer, which does
   not tell how many numbers there are. */
template <class Real> class basic_point {
public:
    template <class Pointer, class = std::enable_if_t<std::is_pointer_v<Pointer> &&
                                                      std::is_convertible_v<Pointer, const Real *>>>
    basic_point(const Pointer &numbers) noexcept
        : numbers_(numbers), size_(static_cast<std::size_t>(-1)) {}
    basic_point(std::nullptr_t) noexcept : numbers_(nullptr), size_(0) {}
    template <class T, class = decltype(basic_records<Real>(std::declval<const T (&)[1]>())),
              class = std::enable_if_t<!std::is_same_v<T, Real>>>
    basic_point(const T &record) noexcept
        : numbers_(reinterpret_cast<const Real *>(&record)), size_(sizeof(T) / sizeof(Real)) {}
    basic_point(const std::vector<Real> &numbers) noexcept
        : numbers_(numbers.data()), size_(numbers.size()) {}
    const Real *data() const noexcept { return numbers_; }
    /* Are there so many numbers, as far as is known? */
    bool holds(int numbers) const noexcept
    {
        return numbers_ && static_cast<std::size_t>(numbers) <= size_;
    }

private:
    const Real *numbers_;
    std::size_t size_;
};

/* ----------------------------------------------------------------------------------------------
   >>ranges: a C walk as a range, for range-for, and not for <algorithm>: its iterator has ++, *
   and the comparison with end(), which takes the next element and so comes before *. begin() moves
   the walk into the iterator, so a range is walked once. `Walk` has step() and value().
   ---------------------------------------------------------------------------------------------- */
struct at_end {};

/* Where the walk of an iterator is: in it, so that compilers keep it in registers; or, for walks
   that the caller changes as they go (`changes`), in the range. */
template <class Walk> Walk &walk_of(Walk &walk) noexcept { return walk; }
template <class Walk> Walk &walk_of(Walk *walk) noexcept { return *walk; }

template <class Walk> class range {
public:
    class iterator {
        using held = std::conditional_t<Walk::changes, Walk *, Walk>;

    public:
        using value_type = typename Walk::value_type;

        explicit iterator(Walk &walk) : walk_(from(walk)) {}
        value_type operator*() const { return walk_of<Walk>(walk_).value(); }
        iterator &operator++()
        {
            tested_ = false;
            return *this;
        }
        friend bool operator==(const iterator &a, at_end) { return !a.more(); }
        friend bool operator!=(const iterator &a, at_end) { return a.more(); }

    private:
        /* The only place that calls step: compilers inline what is called once. */
        bool more() const
        {
            if (!tested_) more_ = walk_of<Walk>(walk_).step();
            tested_ = true;
            return more_;
        }
        static held from(Walk &walk)
        {
            if constexpr (Walk::changes) return &walk;
            else return std::move(walk);
        }
        mutable held walk_;
        mutable bool more_ = false, tested_ = false;
    };

    explicit range(Walk walk) : walk_(std::move(walk)) {}
    iterator begin() { return iterator(walk_); }
    at_end end() const noexcept { return {}; }
    /* Before the first turn, and where `changes` is true at any time: what C lets you set, as in
       range.walk().c.filter. */
    Walk &walk() noexcept { return walk_; }

private:
    Walk walk_;
};

/* ----------------------------------------------------------------------------------------------
   >>callbacks: a lambda as a function pointer and its `user`
   ---------------------------------------------------------------------------------------------- */

/* `call` is what C gets as user. An exception of the lambda ends the search (its turns after that
   are left out), and is thrown again where C has returned. */
template <class F> class callback {
public:
    explicit callback(F &f) noexcept : f_(f) {}

    /* f(arguments...), as C wants it: what f returns, 0 where it returns nothing, `instead` where
       it throws. */
    template <class Result, class... Arguments>
    Result call(Result instead, Arguments... arguments) noexcept
    {
#ifdef __cpp_exceptions
        if (thrown_) return instead;
        try {
            return of<Result>(arguments...);
        } catch (...) {
            thrown_ = std::current_exception();
        }
        return instead;
#else
        (void)instead;
        return of<Result>(arguments...);
#endif
    }
    void rethrow()
    {
#ifdef __cpp_exceptions
        if (thrown_) std::rethrow_exception(thrown_);
#endif
    }

private:
    template <class Result, class... Arguments> Result of(Arguments... arguments)
    {
        if constexpr (std::is_void_v<std::invoke_result_t<F &, Arguments...>>) {
            f_(arguments...);
            return Result();
        } else {
            return static_cast<Result>(f_(arguments...));
        }
    }
    F &f_;
#ifdef __cpp_exceptions
    std::exception_ptr thrown_;
#endif
};

/* f(arguments...), and whether it wants to stop: not where it returns nothing. */
template <class F, class... Arguments> int stops(F &f, Arguments... arguments)
{
    if constexpr (std::is_void_v<std::invoke_result_t<F &, Arguments...>>) {
        f(arguments...);
        return 0;
    } else {
        return f(arguments...) ? 1 : 0;
    }
}

/* A hook for threads (desc.parallel) from a lambda: run(n, task) calls task(0) .. task(n - 1), each
   once, in any order, and returns when all are done. It must outlive what uses it, and not throw.

       nearfield::tasks pool([&](int32_t n, nearfield::task task) { ... }, 64);
       desc.parallel = pool; */
class task {
public:
    using function = void(void *context, std::int32_t index);
    task(function *call, void *context) noexcept : call_(call), context_(context) {}
    void operator()(std::int32_t index) const { call_(context_, index); }

private:
    function *call_;
    void *context_;
};

template <class F> class tasks {
public:
    tasks(F run, std::int32_t most) : run_(std::move(run)), most_(most) {}
    tasks(const tasks &) = delete;
    tasks &operator=(const tasks &) = delete;
    /* ugrid_parallel, lbvh_parallel, nlist_parallel, nbody_parallel */
    template <class Parallel, class = decltype(Parallel::tasks)> operator Parallel() noexcept
    {
        Parallel hook{};
        hook.run = [](task::function *call, void *context, std::int32_t n, void *user) {
            static_cast<tasks *>(user)->run_(n, task(call, context));
        };
        hook.user = this;
        hook.tasks = most_;
        return hook;
    }

private:
    F run_;
    std::int32_t most_;
};

template <class F> tasks(F, std::int32_t) -> tasks<F>;

/* A law for NBODY_FUNCTION (NBODY_WITH_FUNCTION) from two lambdas: force(d) and potential(d), in
   doubles. `desc.function = law` keeps a pointer to it: it must outlive the desc, and not throw. */
template <class Force, class Potential> class law {
public:
    law(Force force, Potential potential)
        : force_(std::move(force)), potential_(std::move(potential)) {}
    law(const law &) = delete;
    law &operator=(const law &) = delete;
    /* nbody_function */
    template <class Function, class = decltype(Function::force)> operator Function() noexcept
    {
        Function function{};
        function.force = [](double d, void *user) -> double {
            return static_cast<law *>(user)->force_(d);
        };
        function.potential = [](double d, void *user) -> double {
            return static_cast<law *>(user)->potential_(d);
        };
        function.user = this;
        return function;
    }

private:
    Force force_;
    Potential potential_;
};
template <class Force, class Potential> law(Force, Potential) -> law<Force, Potential>;

} /* namespace nearfield */

/* The classes, once for each real type: this file includes itself for them. */
#define NEARFIELD_I_CLASSES
namespace nearfield {
namespace f32 {
#include "nearfield.hpp"
}
using namespace f32;
}

/* ----------------------------------------------------------------------------------------------
   >>doubles: the headers once more, in a namespace, where their functions are C++'s and not C's.
   What says that they were here, and the numbers of a real type, are taken back before.
   ---------------------------------------------------------------------------------------------- */
#ifdef NEARFIELD_DOUBLE
#define NEARFIELD_NAMESPACE
#undef UGRID_H
#undef UGRID_IMPLEMENTATION_DONE
#undef UGRID_I_IMPLEMENTED
#undef UGRID_TUNE_H
#undef UGRID_TUNE_IMPLEMENTATION_DONE
#undef LBVH_H
#undef LBVH_IMPLEMENTATION_DONE
#undef LBVH_NEAREST_IMPLEMENTATION_DONE
#undef LBVH_OPTIMIZE_H
#undef LBVH_OPTIMIZE_IMPLEMENTATION_DONE
#undef LBVH_WIDE_H
#undef LBVH_WIDE_IMPLEMENTATION_DONE
#undef LBVH_WORLD_H
#undef LBVH_WORLD_IMPLEMENTATION_DONE
#undef NLIST_H
#undef NLIST_IMPLEMENTATION_DONE
#undef NLIST_I_IMPLEMENTED
#undef NLIST_BOXES_H
#undef NLIST_BOXES_IMPLEMENTATION_DONE
#undef NLIST_TUNE_H
#undef NLIST_TUNE_IMPLEMENTATION_DONE
#undef NBODY_H
#undef NBODY_IMPLEMENTATION_DONE
#undef NBODY_I_IMPLEMENTED
#undef NBODY_BLOCKS_H
#undef NBODY_BLOCKS_IMPLEMENTATION_DONE
#undef NBODY_FUNCTION_H
#undef NBODY_FUNCTION_IMPLEMENTATION_DONE
#undef NBODY_PERIODIC_H
#undef NBODY_PERIODIC_IMPLEMENTATION_DONE
#undef NBODY_POINTS_H
#undef NBODY_POINTS_IMPLEMENTATION_DONE
#undef NBODY_SETS_H
#undef NBODY_SETS_IMPLEMENTATION_DONE
#undef NBODY_STEP_H
#undef NBODY_STEP_IMPLEMENTATION_DONE
#undef NBODY_VORTEX_H
#undef LBVH_I_AVX2
#undef LBVH_I_HAS_AVX2
#undef LBVH_I_INFINITE
#undef LBVH_I_LANES_FN
#undef LBVH_I_MANTISSA_BITS
#undef LBVH_I_MAYBE_AVX2
#undef LBVH_I_PACK_NONE
#undef LBVH_I_PAD_LEAST
#undef LBVH_I_PAD_UNIT
#undef LBVH_I_SLAB_OF_LANES
#undef LBVH_I_SORT_STAGE
#undef LBVH_I_SSE2
#undef NLIST_I_FOUR
#undef NLIST_I_REAL_MAX
#undef NLIST_I_REAL_MIN
#undef UGRID_I_512
#undef UGRID_I_512_BITS
#undef UGRID_I_AXIS_CELLS
#undef UGRID_I_EPSILON
#undef UGRID_I_REAL_MAX
#undef UGRID_I_REAL_MIN
#undef UGRID_REAL
#define UGRID_REAL double
#undef LBVH_REAL
#define LBVH_REAL double
#undef NLIST_REAL
#define NLIST_REAL double
#undef NBODY_REAL
#define NBODY_REAL double
namespace nearfield {
namespace f64 {
#if __has_include("../ugrid.h")
#include "../ugrid.h"
#endif
#if __has_include("../lbvh.h")
#include "../lbvh.h"
#endif
#if __has_include("../nlist.h")
#include "../nlist.h"
#endif
#if __has_include("../nbody.h")
#include "../nbody.h"
#endif
#include "nearfield.hpp"
}
}
#undef UGRID_REAL
#define UGRID_REAL float
#undef LBVH_REAL
#define LBVH_REAL float
#undef NLIST_REAL
#define NLIST_REAL float
#undef NBODY_REAL
#define NBODY_REAL float
#undef NEARFIELD_NAMESPACE
#endif
#undef NEARFIELD_I_CLASSES
#undef NEARFIELD_I_THROWS
#undef NEARFIELD_I_STEP
#undef NEARFIELD_I_RARE
#undef NEARFIELD_I_OR

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

#elif defined(NEARFIELD_I_CLASSES) /* in the namespace of a real type */

/* ----------------------------------------------------------------------------------------------
   >>results: a C result becomes *result, or an exception
   ---------------------------------------------------------------------------------------------- */
#ifdef __cpp_exceptions
#define NEARFIELD_I_TELL(code, text, result, bad_id) \
    if (result) *result = code; \
    else if (code) throw error(text(code), static_cast<int>(code), bad_id)
#else
#define NEARFIELD_I_TELL(code, text, result, bad_id) static_cast<void>(bad_id), *result = code
#endif

#ifdef UGRID_H

inline void check(ugrid_result code, ugrid_result *result NEARFIELD_I_THROWS,
                  std::int32_t bad_id = -1)
{
    NEARFIELD_I_TELL(code, ugrid_result_text, result, bad_id);
}

/* ----------------------------------------------------------------------------------------------
   >>grid
   ---------------------------------------------------------------------------------------------- */

/* A particle within the radius. */
struct grid_hit {
    std::int32_t id, place;
    ugrid_real distance2;
};

/* The particles within a radius of p: the candidates of ugrid_next, tested. */
struct grid_within {
    using value_type = grid_hit;
    static constexpr bool changes = false;
    ugrid_near c;
    ugrid_real p[3], radius2, distance2;

    NEARFIELD_I_STEP bool step()
    {
        ugrid_real q[3];
        while (ugrid_next(&c)) {
            ugrid_point(c.grid, c.place, q);
            distance2 = ugrid_i_distance2_in_box(c.grid, p, q);
            if (distance2 <= radius2) return true;
        }
        return false;
    }
    grid_hit value() const { return {c.id, c.place, distance2}; }
};

/* Pairs, from the search over all particles, a piece of some hundred rows at a time. */
struct grid_pairs {
    using value_type = pair;
    static constexpr bool changes = false;
    const ugrid *c;
    ugrid_real radius;
    int flags;
    std::int32_t piece, pieces;
    std::size_t at;
    buffer<pair> found;

    bool step()
    {
        while (++at >= found.size()) {
            if (piece >= pieces) return false;
            search();
        }
        return true;
    }
    pair value() const { return found[at]; }

private:
    void search()
    {
        auto keep = [this](std::int32_t i, const std::int32_t *ids, std::int32_t count) {
            pair *to = found.append(static_cast<std::size_t>(count));
            for (std::int32_t k = 0; k < count; k++) to[k] = {i, ids[k]};
        };
        callback<decltype(keep)> call(keep);
        found.clear();
        at = static_cast<std::size_t>(-1);
        ugrid_each_row_in(c, radius, flags, piece++, pieces, call_row<decltype(keep)>, &call);
        call.rethrow();
    }

public:
    /* The function that C calls for a row. */
    template <class F>
    static int call_row(void *user, std::int32_t i, const std::int32_t *ids, std::int32_t count)
    {
        return static_cast<callback<F> *>(user)->template call<int>(1, i, ids, count);
    }
};

/* ugrid.h has what the functions do, under the same names. */
class grid : public owner<ugrid, ugrid_free> {
public:
    using real_type = ugrid_real;
    using desc_type = ugrid_desc;
    using result_type = ugrid_result;
    using records = basic_records<ugrid_real>;
    using point = basic_point<ugrid_real>;

    grid() noexcept = default;
#ifdef __cpp_exceptions
    grid(const ugrid_desc &desc, const records &pos) { build(desc, pos); }
#endif

    void build(const ugrid_desc &desc, const records &pos,
               ugrid_result *result NEARFIELD_I_THROWS)
    {
        std::int32_t const n = pos.count(desc.dim == 2 ? 2 : 3);
        ugrid_result const code = ugrid_build(&**this, &desc, pos.pointer(), pos.stride(), n);
        check(code, result, (*this)->bad_id); /* read after the call */
    }
    void reserve(const ugrid_desc &desc, std::int32_t n, ugrid_result *result NEARFIELD_I_THROWS)
    {
        check(ugrid_reserve(&**this, &desc, n), result);
    }

    std::int32_t size() const noexcept { return (*this)->n; }
    /* Rows of a list: particles, but for ghosts; by place: all. */
    std::int32_t rows_of(int flags) const noexcept
    {
        return flags & UGRID_PLACES ? (*this)->n : (*this)->rows;
    }

    /* for (auto hit : grid.within(p, radius)): hit.id, hit.place, hit.distance2, in no fixed order.
       A particle at p itself is found, too. With *result not OK nothing is found. */
    range<grid_within> within(point p, ugrid_real radius,
                              ugrid_result *result NEARFIELD_I_THROWS) const &
    {
        grid_within walk{};
        ugrid_result code = ugrid_i_check_search(&**this, radius, 0);
        if (code == UGRID_OK && !p.holds((*this)->desc.dim)) code = UGRID_BAD_ARGUMENT;
        if (code == UGRID_OK) {
            ugrid_i_wrap_point(&**this, p.data(), walk.p);
            if (!ugrid_i_point_finite(walk.p)) code = UGRID_NOT_FINITE;
        }
        check(code, result);
        walk.c = code == UGRID_OK ? ugrid_near_within(&**this, walk.p, radius)
                                  : ugrid_i_near_none(&**this);
        walk.radius2 = radius * radius;
        return range<grid_within>(walk);
    }

    /* The same around the particle at a place, without itself. */
    range<grid_within> around(std::int32_t place, ugrid_real radius,
                              ugrid_result *result NEARFIELD_I_THROWS) const &
    {
        grid_within walk{};
        ugrid_result code = ugrid_i_check_search(&**this, radius, 0);
        if (code == UGRID_OK && (place < 0 || place >= size())) code = UGRID_BAD_ARGUMENT;
        check(code, result);
        walk.c = ugrid_i_near_none(&**this);
        if (code == UGRID_OK) {
            ugrid_point(&**this, place, walk.p);
            walk.c = ugrid_near_place(&**this, place, radius);
        }
        walk.radius2 = radius * radius;
        return range<grid_within>(walk);
    }

    /* for (auto [i, j] : grid.pairs(radius)): each pair once (flags 0: twice), as grid->filter
       says. Memory for the pairs of some hundred particles at a time. */
    range<grid_pairs> pairs(ugrid_real radius, int flags NEARFIELD_I_OR(UGRID_HALF),
                            ugrid_result *result NEARFIELD_I_THROWS) const &
    {
        std::int32_t const each = 512;
        ugrid_result const code =
            ugrid_each_row_in(&**this, radius, flags, 0, INT32_MAX, none, nullptr);
        check(code == UGRID_STOPPED ? UGRID_OK : code, result);
        bool const right = code == UGRID_OK || code == UGRID_STOPPED;
        return range<grid_pairs>(grid_pairs{&**this, radius, flags, 0,
                                            right ? size() / each + 1 : 0,
                                            static_cast<std::size_t>(-1), {}});
    }

    /* f(i, j) for every pair within radius; true where f stopped it. */
    template <class F>
    bool each_pair(ugrid_real radius, F &&f, int flags NEARFIELD_I_OR(UGRID_HALF),
                   ugrid_result *result NEARFIELD_I_THROWS) const
    {
        auto row = [&f](std::int32_t i, const std::int32_t *ids, std::int32_t count) {
            for (std::int32_t k = 0; k < count; k++) if (stops(f, i, ids[k])) return 1;
            return 0;
        };
        return run(radius, row, flags, result);
    }

    /* f(i, ids) for every row: ids is a view. Long rows come in pieces. */
    template <class F>
    bool each_row(ugrid_real radius, F &&f, int flags NEARFIELD_I_OR(0),
                  ugrid_result *result NEARFIELD_I_THROWS) const
    {
        auto row = [&f](std::int32_t i, const std::int32_t *ids, std::int32_t count) {
            return stops(f, i, view<const std::int32_t>(ids, static_cast<std::size_t>(count)));
        };
        return run(radius, row, flags, result);
    }

    std::int64_t count_pairs(ugrid_real radius, ugrid_result *result NEARFIELD_I_THROWS) const
    {
        std::int64_t pairs = 0;
        check(ugrid_count_pairs(&**this, radius, &pairs), result);
        return pairs;
    }

    /* Neighbour lists of all particles. `out` keeps its memory: where the lists fit, one search. */
    void neighbors(ugrid_real radius, rows &out, int flags NEARFIELD_I_OR(0),
                   ugrid_result *result NEARFIELD_I_THROWS) const
    {
        out.offsets.resize(static_cast<std::size_t>(rows_of(flags)) + 1);
        fill(out, result, [&](std::int64_t *needed) {
            return ugrid_neighbors(&**this, radius, flags, out.offsets.data(), out.ids.data(),
                                   static_cast<std::int64_t>(out.ids.capacity()), needed);
        });
    }
    /* And of points that are not in the grid. */
    void neighbors_at(const records &points, ugrid_real radius, rows &out,
                      ugrid_result *result NEARFIELD_I_THROWS) const
    {
        std::int32_t const m = points.count((*this)->desc.dim == 2 ? 2 : 3);
        out.offsets.resize(static_cast<std::size_t>(m < 0 ? 0 : m) + 1);
        fill(out, result, [&](std::int64_t *needed) {
            return ugrid_neighbors_at(&**this, points.pointer(), points.stride(), m, radius,
                                      out.offsets.data(), out.ids.data(),
                                      static_cast<std::int64_t>(out.ids.capacity()), needed);
        });
    }

    /* Not of a temporary: it is gone before the first turn of a range-for. */
    template <class... Any> void within(Any &&...) const && = delete;
    template <class... Any> void around(Any &&...) const && = delete;
    template <class... Any> void pairs(Any &&...) const && = delete;

private:
    static int none(void *, std::int32_t, const std::int32_t *, std::int32_t) { return 1; }

    template <class F> bool run(ugrid_real radius, F &row, int flags, ugrid_result *result) const
    {
        callback<F> call(row);
        ugrid_result const code =
            ugrid_each_row(&**this, radius, flags, grid_pairs::call_row<F>, &call);
        call.rethrow();
        check(code == UGRID_STOPPED ? UGRID_OK : code, result);
        return code == UGRID_STOPPED;
    }
    template <class Search> void fill(rows &out, ugrid_result *result, Search search) const
    {
        std::int64_t needed = 0;
        ugrid_result code = search(&needed);
        if (code == UGRID_BUFFER_TOO_SMALL) {
            out.ids.resize(static_cast<std::size_t>(needed));
            code = search(&needed);
        }
        if (code != UGRID_OK) out.offsets.clear();
        out.ids.resize(code == UGRID_OK ? static_cast<std::size_t>(needed) : 0);
        check(code, result);
    }
};
#endif /* UGRID_H */

#ifdef LBVH_H

inline void check(lbvh_result code, lbvh_result *result NEARFIELD_I_THROWS,
                  std::int32_t bad_id = -1)
{
    NEARFIELD_I_TELL(code, lbvh_result_text, result, bad_id);
}

/* ----------------------------------------------------------------------------------------------
   >>tree
   ---------------------------------------------------------------------------------------------- */

/* An element found, and its place. */
struct tree_hit { std::int32_t id, place; };

struct tree_overlaps {
    using value_type = tree_hit;
    static constexpr bool changes = false;
    lbvh_overlap c;
    NEARFIELD_I_STEP bool step() { return lbvh_next(&c) != 0; }
    tree_hit value() const { return {c.id, c.place}; }
};

/* walk().c.reach2 may be made smaller while it is walked. */
struct tree_nearby {
    struct value_type { std::int32_t id, place; lbvh_real distance2; };
    static constexpr bool changes = true;
    lbvh_near c;
    NEARFIELD_I_STEP bool step() { return lbvh_next_near(&c) != 0; }
    value_type value() const { return {c.id, c.place, c.distance2}; }
};

/* walk().c.t_max may be made smaller while it is walked. */
struct tree_ray {
    struct value_type { std::int32_t id, place; lbvh_real t; };
    static constexpr bool changes = true;
    lbvh_ray c;
    NEARFIELD_I_STEP bool step() { return lbvh_next_ray(&c) != 0; }
    value_type value() const { return {c.id, c.place, c.t}; }
};

/* Overlapping elements, each pair once: the walks of lbvh_overlap_later, some at a time. */
struct tree_pairs {
    using value_type = pair;
    static constexpr bool changes = false;
    const lbvh *c;
    std::int32_t place;
    std::size_t at;
    buffer<pair> found;

    bool step()
    {
        if (++at >= found.size()) search();
        return at < found.size();
    }
    pair value() const { return found[at]; }

private:
    void search()
    {
        found.clear();
        at = 0;
        while (place < c->n && found.size() < 256) {
            std::int32_t const i = c->node[c->first_leaf + place].link;
            lbvh_overlap o = lbvh_overlap_later(c, place++);
            while (lbvh_next(&o)) *found.append(1) = {i, o.id};
        }
    }
};

/* lbvh.h has what the functions do, under the same names. */
class tree : public owner<lbvh, lbvh_free> {
public:
    using real_type = lbvh_real;
    using desc_type = lbvh_desc;
    using result_type = lbvh_result;
    using queries_type = lbvh_queries;
    using records = basic_records<lbvh_real>;
    using point = basic_point<lbvh_real>;

    tree() noexcept = default;
#ifdef __cpp_exceptions
    tree(const lbvh_desc &desc, const records &elements) { build(desc, elements); }
#endif

    void build(const lbvh_desc &desc, const records &elements,
               lbvh_result *result NEARFIELD_I_THROWS)
    {
        std::int32_t const n = elements.count(numbers(desc));
        tell(lbvh_build(&**this, &desc, elements.pointer(), elements.stride(), n), result);
    }
    /* Triangles by three indices each. The indices are borrowed while the tree is refitted. */
    void build(lbvh_desc desc, const records &vertices, view<const std::int32_t> indices,
               lbvh_result *result NEARFIELD_I_THROWS)
    {
        desc.kind = LBVH_TRIANGLES;
        desc.indices = indices.data();
        desc.vertices = vertices.count(desc.dim == 2 ? 2 : 3);
        bool const fits = indices.size() % 3 == 0 && indices.size() / 3 <= INT32_MAX;
        std::int32_t const n = fits ? static_cast<std::int32_t>(indices.size() / 3) : -1;
        tell(lbvh_build(&**this, &desc, vertices.pointer(), vertices.stride(), n), result);
    }
    void refit(const records &elements, lbvh_result *result NEARFIELD_I_THROWS)
    {
        lbvh_desc const &desc = (*this)->desc;
        std::int32_t const n = elements.count(desc.indices ? dim() : numbers(desc));
        bool const fits = n == (desc.indices ? desc.vertices : size());
        if (!fits && (*this)->built) return check(LBVH_BAD_ARGUMENT, result);
        tell(lbvh_refit(&**this, elements.pointer(), elements.stride()), result);
    }

    std::int32_t size() const noexcept { return (*this)->n; }
    int dim() const noexcept { return (*this)->desc.dim == 2 ? 2 : 3; }

    /* Walks: for (auto hit : tree.overlaps(box)). A tree that was not built has no hits; with
       *result not OK, where p or box have too few numbers, there are none. */
    range<tree_overlaps> overlaps(point box, lbvh_result *result NEARFIELD_I_THROWS) const &
    {
        const lbvh_real *const given = checked(box, 2 * dim(), result);
        return range<tree_overlaps>(tree_overlaps{lbvh_overlap_box(&**this, given)});
    }
    range<tree_overlaps> overlaps_sphere(point p, lbvh_real radius,
                                         lbvh_result *result NEARFIELD_I_THROWS) const &
    {
        const lbvh_real *const given = checked(p, dim(), result);
        return range<tree_overlaps>(tree_overlaps{lbvh_overlap_sphere(&**this, given, radius)});
    }
    range<tree_nearby> nearby(point p, lbvh_real reach,
                              lbvh_result *result NEARFIELD_I_THROWS) const &
    {
        const lbvh_real *const given = checked(p, dim(), result);
        return range<tree_nearby>(tree_nearby{lbvh_near_point(&**this, given, reach)});
    }
    range<tree_ray> ray(point origin, point direction, lbvh_real t_max,
                        lbvh_result *result NEARFIELD_I_THROWS) const &
    {
        bool const fits = origin.holds(dim()) && direction.holds(dim());
        const lbvh_real *const from = checked(fits ? origin : nullptr, dim(), result);
        const lbvh_real *const along = fits ? direction.data() : from;
        return range<tree_ray>(tree_ray{lbvh_ray_cast(&**this, from, along, t_max)});
    }
    /* for (auto [i, j] : tree.pairs()): each pair once. each_pair is faster for many. */
    range<tree_pairs> pairs() const &
    {
        return range<tree_pairs>(tree_pairs{&**this, 0, static_cast<std::size_t>(-1), {}});
    }

    /* f(i, j) for every pair; true where f stopped it. */
    template <class F> bool each_pair(F &&f, lbvh_result *result NEARFIELD_I_THROWS) const
    {
        using plain = std::remove_reference_t<F>;
        callback<plain> call(f);
        lbvh_result const code = lbvh_each_pair(&**this, [](void *user, std::int32_t i,
                                                            std::int32_t j) -> int {
            return static_cast<callback<plain> *>(user)->template call<int>(1, i, j);
        }, &call);
        call.rethrow();
        check(code == LBVH_STOPPED ? LBVH_OK : code, result);
        return code == LBVH_STOPPED;
    }

    std::int64_t count_pairs(lbvh_result *result NEARFIELD_I_THROWS) const
    {
        std::int64_t pairs = 0;
        check(lbvh_count_pairs(&**this, &pairs), result);
        return pairs;
    }

    /* Overlap lists of many searches; `out` keeps its memory. */
    void overlaps(const lbvh_queries &queries, rows &out,
                  lbvh_result *result NEARFIELD_I_THROWS) const
    {
        std::int64_t needed = 0;
        std::int32_t const n = queries.data ? queries.n : size();
        out.offsets.resize(static_cast<std::size_t>(n < 0 ? 0 : n) + 1);
        lbvh_result code = LBVH_OK;
        for (int turn = 0; turn < 2; turn++) {
            code = lbvh_overlaps(&**this, &queries, out.offsets.data(), out.ids.data(),
                                 static_cast<std::int64_t>(out.ids.capacity()), &needed);
            if (code != LBVH_BUFFER_TOO_SMALL) break;
            out.ids.resize(static_cast<std::size_t>(needed));
        }
        if (code != LBVH_OK) out.offsets.clear();
        out.ids.resize(code == LBVH_OK ? static_cast<std::size_t>(needed) : 0);
        check(code, result);
    }

    /* The ids.size() nearest of p, nearest first; how many there are. distances2: as many. */
    std::int32_t nearest(point p, lbvh_real reach, view<std::int32_t> ids,
                         view<lbvh_real> distances2, lbvh_result *result NEARFIELD_I_THROWS) const
    {
        std::int32_t found = 0;
        check(lbvh_nearest(&**this, given(p), most(ids, distances2), reach, nullptr, nullptr,
                           ids.data(), distances2.data(), &found), result);
        return found;
    }
    /* By a distance of yours: distance2(id), squared, at least that to the element's box. */
    template <class F>
    std::int32_t nearest_by(point p, lbvh_real reach, F &&distance2, view<std::int32_t> ids,
                            view<lbvh_real> distances2,
                            lbvh_result *result NEARFIELD_I_THROWS) const
    {
        using plain = std::remove_reference_t<F>;
        std::int32_t found = 0;
        callback<plain> call(distance2);
        lbvh_result const code = lbvh_nearest(
            &**this, given(p), most(ids, distances2), reach,
            [](void *user, std::int32_t id, const lbvh_real *) -> lbvh_real {
                return static_cast<callback<plain> *>(user)->template call<lbvh_real>(
                    lbvh_i_infinity(), id);
            },
            &call, ids.data(), distances2.data(), &found);
        call.rethrow();
        check(code, result);
        return found;
    }

    /* Not of a temporary: it is gone before the first turn of a range-for. */
    template <class... Any> void overlaps(Any &&...) const && = delete;
    template <class... Any> void overlaps_sphere(Any &&...) const && = delete;
    template <class... Any> void nearby(Any &&...) const && = delete;
    template <class... Any> void ray(Any &&...) const && = delete;
    template <class... Any> void pairs(Any &&...) const && = delete;

private:
    static int numbers(const lbvh_desc &desc) noexcept
    {
        int const d = desc.dim == 2 ? 2 : 3;
        if (desc.kind == LBVH_POINTS) return d;
        if (desc.kind == LBVH_SPHERES) return d + 1;
        return desc.kind == LBVH_TRIANGLES ? 3 * d : 2 * d;
    }
    void tell(lbvh_result code, lbvh_result *result) const
    {
        check(code, result, (*this)->bad_id);
    }
    /* The point as C takes it: NULL, which it refuses, where there are too few numbers. */
    const lbvh_real *given(const point &p) const noexcept
    {
        return p.holds(dim()) ? p.data() : nullptr;
    }
    /* What a walk searches: NaN, which meets nothing, where there are too few numbers. */
    const lbvh_real *checked(const point &p, int numbers, lbvh_result *result) const
    {
        if (!p.holds(numbers)) return refused(result);
        if (result) *result = LBVH_OK;
        return p.data();
    }
    NEARFIELD_I_RARE const lbvh_real *refused(lbvh_result *result) const
    {
        constexpr lbvh_real nan = std::numeric_limits<lbvh_real>::quiet_NaN();
        static constexpr lbvh_real nothing[6] = {nan, nan, nan, nan, nan, nan};
        check(size() == 0 ? LBVH_OK : LBVH_BAD_ARGUMENT, result);
        return nothing;
    }
    static std::int32_t most(view<std::int32_t> ids, view<lbvh_real> distances2) noexcept
    {
        bool const fits = ids.size() <= distances2.size() && ids.size() <= INT32_MAX;
        return fits ? static_cast<std::int32_t>(ids.size()) : -1;
    }
};

#ifdef LBVH_WITH_WORLD
/* ----------------------------------------------------------------------------------------------
   >>world: more/lbvh_world.h
   ---------------------------------------------------------------------------------------------- */

/* A pair of indices whose boxes touch; data<T>(): desc.pair_bytes of yours. */
struct world_pair {
    std::int32_t a, b;
    std::uint64_t user_a, user_b;
    void *bytes;
    template <class T> T &data() const
    {
        static_assert(std::is_trivially_copyable_v<T>, "C moves it as bytes");
        return *static_cast<T *>(bytes);
    }
};

struct world_pairs {
    using value_type = world_pair;
    static constexpr bool changes = false;
    lbvh_pair_walk c;
    NEARFIELD_I_STEP bool step() { return lbvh_next_pair(&c) != 0; }
    world_pair value() const { return {c.a, c.b, c.user_a, c.user_b, c.data}; }
};

struct world_overlaps {
    struct value_type { std::int32_t index; std::uint64_t user; };
    static constexpr bool changes = false;
    lbvh_world_overlap c;
    NEARFIELD_I_STEP bool step() { return lbvh_next_object(&c) != 0; }
    value_type value() const { return {c.index, c.user}; }
};

/* more/lbvh_world.h has what the functions do, under the same names. */
class world : public owner<lbvh_world, lbvh_world_free> {
public:
    using real_type = lbvh_real;
    using desc_type = lbvh_world_desc;
    using result_type = lbvh_result;
    using point = basic_point<lbvh_real>;

    world() noexcept = default;
#ifdef __cpp_exceptions
    explicit world(const lbvh_world_desc &desc) { begin(desc); }
#endif
    void begin(const lbvh_world_desc &desc, lbvh_result *result NEARFIELD_I_THROWS)
    {
        check(lbvh_world_begin(&**this, &desc), result);
    }
    lbvh_id insert(point box, std::uint64_t user, lbvh_state state NEARFIELD_I_OR(LBVH_MOVING),
                   const lbvh_filter &filter NEARFIELD_I_OR({}),
                   lbvh_result *result NEARFIELD_I_THROWS)
    {
        lbvh_id id = 0;
        check(lbvh_world_insert(&**this, given(box), &filter, state, user, &id), result);
        return id;
    }
    void move(lbvh_id id, point box, lbvh_result *result NEARFIELD_I_THROWS)
    {
        check(lbvh_world_move(&**this, id, given(box), nullptr), result);
    }
    void remove(lbvh_id id, lbvh_result *result NEARFIELD_I_THROWS)
    {
        check(lbvh_world_remove(&**this, id), result);
    }
    void update(lbvh_result *result NEARFIELD_I_THROWS)
    {
        check(lbvh_world_update(&**this), result);
    }

    /* Pairs that touch, of which one object moves at least; indices of those that the last update
       began and ended. */
    range<world_pairs> pairs(lbvh_fit fit = LBVH_TIGHT) const &
    {
        return range<world_pairs>(world_pairs{lbvh_world_pairs(&**this, fit)});
    }
    view<const pair> begun() const & { return listed((*this)->begun, (*this)->begun_count); }
    view<const pair> ended() const & { return listed((*this)->ended, (*this)->ended_count); }

    range<world_overlaps> overlaps(point box, lbvh_result *result NEARFIELD_I_THROWS) const &
    {
        static const lbvh_world nothing{};
        bool const fits = given(box) != nullptr;
        check(fits ? LBVH_OK : LBVH_BAD_ARGUMENT, result);
        return range<world_overlaps>(
            world_overlaps{lbvh_world_overlap_box(fits ? &**this : &nothing, box.data())});
    }

    /* Not of a temporary: it is gone before the first turn of a range-for. */
    template <class... Any> void pairs(Any &&...) const && = delete;
    template <class... Any> void overlaps(Any &&...) const && = delete;
    template <class... Any> void begun(Any &&...) const && = delete;
    template <class... Any> void ended(Any &&...) const && = delete;

private:
    /* The box as C takes it: NULL, which it refuses, where there are too few numbers. */
    const lbvh_real *given(const point &box) const noexcept
    {
        return box.holds((*this)->desc.dim == 2 ? 4 : 6) ? box.data() : nullptr;
    }
    static view<const pair> listed(const std::int32_t *pairs, std::int32_t count)
    {
        static_assert(sizeof(pair) == 2 * sizeof(std::int32_t), "two numbers in a row");
        return {reinterpret_cast<const pair *>(pairs), static_cast<std::size_t>(count)};
    }
};
#endif /* LBVH_WITH_WORLD */
#endif /* LBVH_H */

#ifdef NLIST_H

inline void check(nlist_result code, nlist_result *result NEARFIELD_I_THROWS,
                  std::int32_t bad_id = -1)
{
    NEARFIELD_I_TELL(code, nlist_result_text, result, bad_id);
}

/* ----------------------------------------------------------------------------------------------
   >>list
   ---------------------------------------------------------------------------------------------- */

/* An entry of row i. history<T>(): its bytes, desc.history of them; they may be written. touch:
   whether the two touch, in each step, before its history is used: with a skin the pair is listed
   before and after (nlist_touch). It returns its argument. */
struct contact {
    std::int32_t i, id;
    std::int64_t entry;
    void *bytes;
    const nlist *c;
    std::int32_t width; /* desc.history */
    template <class T> T &history() const
    {
        static_assert(std::is_trivially_copyable_v<T>, "C moves it as bytes");
        if (static_cast<std::size_t>(width) < sizeof(T)) too_few();
        return *static_cast<T *>(bytes);
    }
    bool touch(bool touching) const
    {
        return nlist_touch_entry(c, entry, touching) != 0;
    }

private:
    [[noreturn]] static void too_few()
    {
        const char *const text = "contact.history<T>(): desc.history has fewer bytes than T";
#ifdef __cpp_exceptions
        throw error(text, static_cast<int>(NLIST_BAD_HISTORY), -1);
#else
        static_cast<void>(text);
        std::abort();
#endif
    }
};

/* Row i. */
struct list_row {
    using value_type = contact;
    static constexpr bool changes = false;
    std::int32_t i;
    const nlist *list;
    nlist_each c;
    NEARFIELD_I_STEP bool step() { return nlist_next(&c) != 0; }
    contact value() const { return {i, c.id, c.entry, c.history, list, c.bytes}; }
};

/* nlist.h has what the functions do, under the same names. */
class list : public owner<nlist, nlist_free> {
public:
    using real_type = nlist_real;
    using desc_type = nlist_desc;
    using result_type = nlist_result;
    using sums_type = nlist_sums;
    using records = basic_records<nlist_real>;

    list() noexcept = default;

    /* By brute force; from a grid; from a tree. */
    void build(const nlist_desc &desc, const records &pos, nlist_result *result NEARFIELD_I_THROWS)
    {
        std::int32_t const n = count(desc, pos);
        tell(nlist_build_brute(&**this, &desc, pos.pointer(), pos.stride(), n), result);
    }
#ifdef UGRID_H
    void build(const nlist_desc &desc, const grid &from, const records &pos,
               nlist_result *result NEARFIELD_I_THROWS)
    {
        std::int32_t const n = count(desc, pos);
        tell(nlist_build_ugrid(&**this, &desc, &*from, pos.pointer(), pos.stride(), n), result);
    }
#endif
#ifdef LBVH_H
    void build(const nlist_desc &desc, const tree &from, const records &pos,
               nlist_result *result NEARFIELD_I_THROWS)
    {
        std::int32_t const n = count(desc, pos);
        tell(nlist_build_lbvh(&**this, &desc, &*from, pos.pointer(), pos.stride(), n), result);
    }
#endif
    /* Must it be built (again)? Where a particle has moved by more than half the skin, and where
       there is no list, or one of no particles. */
    bool moved(const records &pos, nlist_result *result NEARFIELD_I_THROWS) const
    {
        std::int32_t moved = 1;
        bool const fits = size() == 0 || count((*this)->desc, pos) == size();
        check(fits ? nlist_moved(&**this, pos.pointer(), pos.stride(), &moved)
                   : NLIST_BAD_ARGUMENT, result);
        return moved != 0;
    }
    void remap(view<const std::int32_t> new_id, std::int32_t n,
               nlist_result *result NEARFIELD_I_THROWS)
    {
        bool const fits = new_id.size() == static_cast<std::size_t>(size());
        if (!fits && (*this)->built) return check(NLIST_BAD_ARGUMENT, result);
        tell(nlist_remap(&**this, new_id.data(), n), result);
    }

    std::int32_t size() const noexcept { return (*this)->n; }
    std::int64_t total() const noexcept { return (*this)->total; }

    /* for (auto c : list.of(i)): c.id, c.entry, c.history<T>(). No entries for an i that the list
       does not have. */
    range<list_row> of(std::int32_t i) const &
    {
        return range<list_row>(list_row{i, &**this, nlist_of(&**this, i)});
    }
    /* f(c) for all entries, row by row: c.i, c.id, ...; true where f stopped it. */
    template <class F> bool each_contact(F &&f) const
    {
        for (std::int32_t i = 0; i < size(); i++) {
            nlist_each e = nlist_of(&**this, i);
            while (nlist_next(&e))
                if (stops(f, contact{i, e.id, e.entry, e.history, &**this, e.bytes})) return true;
        }
        return false;
    }
    /* desc.events: contacts that began, persist, ended with the last build. */
    view<const nlist_event> begun() const & { return events(NLIST_BEGUN); }
    view<const nlist_event> persisted() const & { return events(NLIST_PERSISTED); }
    view<const nlist_event> ended() const & { return events(NLIST_ENDED); }

    /* sums[values i ..] += what f adds to own (half lists: and to other), for every entry:
       f(i, j, history, own, other). It returns nothing, or 0 where the two do not touch. */
    template <class F>
    void sum(const nlist_sums &how, F &&f, view<nlist_real> sums,
             nlist_result *result NEARFIELD_I_THROWS)
    {
        using plain = std::remove_reference_t<F>;
        callback<plain> call(f);
        std::size_t const n = static_cast<std::size_t>(size());
        bool const fits = how.values > 0 && sums.size() / static_cast<std::size_t>(how.values) >= n;
        nlist_result code = NLIST_BAD_ARGUMENT;
        if (fits) code = nlist_sum(&**this, &how, call_sum<plain>, &call, sums.data());
        call.rethrow();
        check(code, result);
    }

    /* Not of a temporary: it is gone before the first turn of a range-for. */
    template <class... Any> void of(Any &&...) const && = delete;
    template <class... Any> void begun(Any &&...) const && = delete;
    template <class... Any> void persisted(Any &&...) const && = delete;
    template <class... Any> void ended(Any &&...) const && = delete;

private:
    template <class F>
    static int call_sum(void *user, std::int32_t i, std::int32_t j, void *history, nlist_real *own,
                        nlist_real *other)
    {
        using returned = std::invoke_result_t<F &, std::int32_t, std::int32_t, void *,
                                              nlist_real *, nlist_real *>;
        auto *call = static_cast<callback<F> *>(user);
        int const touch = call->template call<int>(0, i, j, history, own, other);
        return std::is_void_v<returned> ? 1 : touch;
    }
    static std::int32_t count(const nlist_desc &desc, const records &pos) noexcept
    {
        return pos.count(desc.dim == 2 ? 2 : 3);
    }
    view<const nlist_event> events(int kind) const
    {
        return {(*this)->event[kind], static_cast<std::size_t>((*this)->event_count[kind])};
    }
    void tell(nlist_result code, nlist_result *result) const
    {
        check(code, result, (*this)->bad_id);
    }
};
#endif /* NLIST_H */

#ifdef NBODY_H

inline void check(nbody_result code, nbody_result *result NEARFIELD_I_THROWS,
                  std::int32_t bad_id = -1)
{
    NEARFIELD_I_TELL(code, nbody_result_text, result, bad_id);
}

/* ----------------------------------------------------------------------------------------------
   >>bodies
   ---------------------------------------------------------------------------------------------- */

/* nbody.h has what the functions do, under the same names. */
class bodies : public owner<nbody, nbody_free> {
public:
    using real_type = nbody_real;
    using desc_type = nbody_desc;
    using result_type = nbody_result;
    using records = basic_records<nbody_real>;
    using masses = view<const nbody_real>; /* empty: all 1; else desc.mass_stride 0 */

    bodies() noexcept = default;

    void build(const nbody_desc &desc, const records &pos, masses mass,
               nbody_result *result NEARFIELD_I_THROWS)
    {
        std::int32_t const n = count(pos, mass, desc.mass_stride);
        tell(nbody_build(&**this, &desc, pos.pointer(), pos.stride(), mass.data(), n), result);
    }
    /* acc: 2 numbers a body, or empty; potential: one, or empty. */
    void fields(const nbody_desc &desc, const records &pos, masses mass, view<nbody_real> acc,
                view<nbody_real> potential NEARFIELD_I_OR({}),
                nbody_result *result NEARFIELD_I_THROWS)
    {
        std::int32_t n = count(pos, mass, desc.mass_stride);
        std::size_t const least = static_cast<std::size_t>(n < 0 ? 0 : n);
        if (!acc.empty() && !desc.acc_stride && acc.size() < 2 * least) n = -1;
        if (!potential.empty() && potential.size() < least) n = -1;
        tell(nbody_fields(&**this, &desc, pos.pointer(), pos.stride(), mass.data(), n, acc.data(),
                          potential.data()), result);
    }
    void accelerations(const nbody_desc &desc, const records &pos, masses mass,
                       view<nbody_real> acc, nbody_result *result NEARFIELD_I_THROWS)
    {
        fields(desc, pos, mass, acc, {}, result);
    }
    std::int32_t size() const noexcept { return (*this)->n; }

private:
    static std::int32_t count(const records &pos, masses mass, std::size_t stride) noexcept
    {
        std::int32_t const n = pos.count(2);
        if (n < 0 || mass.empty() || stride) return n;
        return mass.size() < static_cast<std::size_t>(n) ? -1 : n;
    }
    void tell(nbody_result code, nbody_result *result) const
    {
        check(code, result, (*this)->bad_id);
    }
};
#endif /* NBODY_H */

#undef NEARFIELD_I_TELL
#endif /* NEARFIELD_HPP, NEARFIELD_I_CLASSES */
