/* jax_struct.c - compares the structs of packaging/python/library/jax.h with XLA's own, for
   tests/python/jax_checks.py. It compiles, or names the difference.
   SPDX-License-Identifier: MIT OR Unlicense */

#include <stddef.h>
#include <stdint.h>

#include "xla/ffi/api/c_api.h"

#include "jax.h"

#define SAME(ours, a, theirs, b)                                                                   \
    _Static_assert(offsetof(ours, a) == offsetof(theirs, b), #ours "." #a " is not " #theirs "." #b)

SAME(nearfield_i_xla_version, major, struct XLA_FFI_Api_Version, major_version);
SAME(nearfield_i_xla_version, minor, struct XLA_FFI_Api_Version, minor_version);
SAME(nearfield_i_xla_metadata, version, struct XLA_FFI_Metadata, api_version);
SAME(nearfield_i_xla_metadata, traits, struct XLA_FFI_Metadata, traits);
SAME(nearfield_i_xla_extension, type, struct XLA_FFI_Metadata_Extension, extension_base.type);
SAME(nearfield_i_xla_extension, next, struct XLA_FFI_Metadata_Extension, extension_base.next);
SAME(nearfield_i_xla_extension, metadata, struct XLA_FFI_Metadata_Extension, metadata);
SAME(nearfield_i_xla_error, message, struct XLA_FFI_Error_Create_Args, message);
SAME(nearfield_i_xla_error, code, struct XLA_FFI_Error_Create_Args, errc);
SAME(nearfield_i_xla_api, version, struct XLA_FFI_Api, api_version);
SAME(nearfield_i_xla_api, internal, struct XLA_FFI_Api, internal_api);
SAME(nearfield_i_xla_api, error, struct XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(nearfield_i_xla_buffer, type, XLA_FFI_Buffer, dtype);
SAME(nearfield_i_xla_buffer, data, XLA_FFI_Buffer, data);
SAME(nearfield_i_xla_buffer, axes, XLA_FFI_Buffer, rank);
SAME(nearfield_i_xla_buffer, shape, XLA_FFI_Buffer, dims);
SAME(nearfield_i_xla_buffers, count, struct XLA_FFI_Args, size);
SAME(nearfield_i_xla_buffers, of, struct XLA_FFI_Args, args);
SAME(nearfield_i_xla_buffers, of, struct XLA_FFI_Rets, rets);
SAME(nearfield_i_xla_text, at, XLA_FFI_ByteSpan, ptr);
SAME(nearfield_i_xla_text, length, XLA_FFI_ByteSpan, len);
SAME(nearfield_i_xla_scalar, type, XLA_FFI_Scalar, dtype);
SAME(nearfield_i_xla_scalar, value, XLA_FFI_Scalar, value);
SAME(nearfield_i_xla_attributes, count, struct XLA_FFI_Attrs, size);
SAME(nearfield_i_xla_attributes, types, struct XLA_FFI_Attrs, types);
SAME(nearfield_i_xla_attributes, names, struct XLA_FFI_Attrs, names);
SAME(nearfield_i_xla_attributes, of, struct XLA_FFI_Attrs, attrs);
SAME(nearfield_i_xla_call, extension, struct XLA_FFI_CallFrame, extension_start);
SAME(nearfield_i_xla_call, api, struct XLA_FFI_CallFrame, api);
SAME(nearfield_i_xla_call, context, struct XLA_FFI_CallFrame, ctx);
SAME(nearfield_i_xla_call, stage, struct XLA_FFI_CallFrame, stage);
SAME(nearfield_i_xla_call, arguments, struct XLA_FFI_CallFrame, args);
SAME(nearfield_i_xla_call, results, struct XLA_FFI_CallFrame, rets);
SAME(nearfield_i_xla_call, attributes, struct XLA_FFI_CallFrame, attrs);

_Static_assert((int)NEARFIELD_I_XLA_EXECUTE == (int)XLA_FFI_ExecutionStage_EXECUTE, "stage");
_Static_assert((int)NEARFIELD_I_XLA_METADATA == (int)XLA_FFI_Extension_Metadata, "extension");
_Static_assert((int)NEARFIELD_I_XLA_INVALID == (int)XLA_FFI_Error_Code_INVALID_ARGUMENT, "code");
_Static_assert(XLA_FFI_API_MAJOR == 0, "another interface of XLA");
