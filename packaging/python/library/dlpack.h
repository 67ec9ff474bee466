/* dlpack.h - memory lent to other packages in the form of DLPack (dmlc/dlpack, version 1.0).
   SPDX-License-Identifier: MIT OR Unlicense

   Python makes a capsule of what nearfield_lend returns. The borrower calls `deleter` when it is
   done, from any thread and also at the very end of the process: so the deleter is C, and asks
   first whether there still is a Python. That is reached by the addresses of its functions; this
   library is linked with no Python. */

typedef struct nearfield_python {
    int (*is_there)(void);                                      /* Py_IsInitialized */
    int (*lock)(void);                                          /* PyGILState_Ensure */
    void (*unlock)(int state);                                  /* PyGILState_Release */
    void (*let_go)(void *object);                               /* Py_DecRef */
    int (*is_valid)(void *capsule, const char *name);           /* PyCapsule_IsValid */
    void *(*pointer)(void *capsule, const char *name);          /* PyCapsule_GetPointer */
} nearfield_python;

#ifdef NEARFIELD_IMPLEMENTATION

/* DLPack's structs, by their own layout. */
typedef struct nearfield_i_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} nearfield_i_tensor;

typedef struct nearfield_i_managed {                    /* DLManagedTensor: "dltensor" */
    nearfield_i_tensor tensor;
    void *lent;
    void (*deleter)(struct nearfield_i_managed *self);
} nearfield_i_managed;

typedef struct nearfield_i_versioned {                  /* DLManagedTensorVersioned */
    uint32_t major, minor;
    void *lent;
    void (*deleter)(struct nearfield_i_versioned *self);
    uint64_t flags;                                     /* 1 = read only, 2 = a copy */
    nearfield_i_tensor tensor;
} nearfield_i_versioned;

enum { NEARFIELD_I_MOST_AXES = 8 };

typedef struct nearfield_i_lent {
    nearfield_i_managed managed;
    nearfield_i_versioned versioned;
    void *owner;
    int64_t shape[NEARFIELD_I_MOST_AXES], strides[NEARFIELD_I_MOST_AXES];
} nearfield_i_lent;

static nearfield_python nearfield_i_python;     /* a copy, which outlives Python's memory */

/* The loan ends. */
static void nearfield_i_return(nearfield_i_lent *lent)
{
    const nearfield_python *python = &nearfield_i_python;
    if (python->is_there()) {
        int const state = python->lock();
        python->let_go(lent->owner);
        python->unlock(state);
    }
    free(lent);
}

static void nearfield_i_return_managed(nearfield_i_managed *self)
{
    nearfield_i_return((nearfield_i_lent *)self->lent);
}

static void nearfield_i_return_versioned(nearfield_i_versioned *self)
{
    nearfield_i_return((nearfield_i_lent *)self->lent);
}

/* A packed array of `axes` lengths whose memory lives as long as `owner`, a reference to which now
   is the borrower's. device: 1 = the CPU's memory, 2 = CUDA's, number `id`; code: 0 = int, 1 =
   unsigned, 2 = float, of so many bits. Returns what the capsule holds, of version 0 or 1; NULL: no
   memory, or more than 8 axes. */
NEARFIELD_API void *nearfield_lend(const nearfield_python *python, void *owner, void *data,
                                   const int64_t *shape, int32_t axes, int32_t code, int32_t bits,
                                   int32_t device, int32_t id, int32_t version, uint64_t flags)
{
    nearfield_i_lent *lent;
    int64_t stride = 1;
    int32_t a;
    if (axes < 0 || axes > NEARFIELD_I_MOST_AXES) return NULL;
    lent = (nearfield_i_lent *)calloc(1, sizeof *lent);
    if (!lent) return NULL;
    for (a = axes - 1; a >= 0; a--) {
        lent->shape[a] = shape[a];
        lent->strides[a] = stride;
        stride *= shape[a];
    }
    nearfield_i_python = *python;
    lent->owner = owner;
    lent->managed.tensor.data = data;
    lent->managed.tensor.device_type = device;
    lent->managed.tensor.device_id = id;
    lent->managed.tensor.ndim = axes;
    lent->managed.tensor.code = (uint8_t)code;
    lent->managed.tensor.bits = (uint8_t)bits;
    lent->managed.tensor.lanes = 1;
    lent->managed.tensor.shape = lent->shape;
    lent->managed.tensor.strides = lent->strides;
    lent->managed.lent = lent->versioned.lent = lent;
    lent->managed.deleter = nearfield_i_return_managed;
    lent->versioned.deleter = nearfield_i_return_versioned;
    lent->versioned.major = 1;
    lent->versioned.flags = flags;
    lent->versioned.tensor = lent->managed.tensor;
    if (version == 0) return &lent->managed;
    return &lent->versioned;
}

/* The capsule's destructor. Who takes what a capsule holds gives it another name: then there is
   nothing to do. */
NEARFIELD_API void nearfield_untaken(void *capsule)
{
    const nearfield_python *python = &nearfield_i_python;
    nearfield_i_managed *managed = NULL;
    nearfield_i_versioned *versioned = NULL;
    if (python->is_valid(capsule, "dltensor"))
        managed = (nearfield_i_managed *)python->pointer(capsule, "dltensor");
    if (python->is_valid(capsule, "dltensor_versioned"))
        versioned = (nearfield_i_versioned *)python->pointer(capsule, "dltensor_versioned");
    if (managed) managed->deleter(managed);
    if (versioned) versioned->deleter(versioned);
}

#endif
