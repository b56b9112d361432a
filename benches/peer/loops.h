/*
 * Plain C loops with the meaning and the bits of pmderive's kernels.
 *
 * Included by loops.c, which is compiled more than once with other options;
 * LOOPS is the name of the table that comes of it. A loop knows nothing of
 * segments, arenas and rows.
 */
#include <stddef.h>
#include <stdint.h>

/* Columns of a loop: what it reads, the constants of its kernel, what it writes. */
struct columns {
    const void *in[8];
    const uint64_t *constants;
    void *out;
};

/* Not zero when a value is missing in a lane. */
typedef uint64_t loop_fn(const struct columns *c, size_t n);

struct loop {
    const char *name;
    loop_fn *run;
};
