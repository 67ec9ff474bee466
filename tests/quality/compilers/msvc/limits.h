/* Stand-in. */
#pragma once
#define CHAR_BIT 8
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 0xffffffff
#define LONG_MIN (-2147483647L - 1)
#define LONG_MAX 2147483647L
#define LLONG_MAX 9223372036854775807i64
#define ULLONG_MAX 0xffffffffffffffffui64
