/*
 * pmderive's kernels beside C loops of the same meaning, in one process.
 *
 *   kernels [ROUNDS] < KERNELS      kernels as benches/peer/main.rs writes them
 *
 * Each kernel is machine code. Both sides read the same columns; their outputs
 * are compared bit by bit, and then they run in turn. The time of each is the
 * least of all rounds. A line for each kernel and number of lanes:
 *
 *   name lanes c_ns ours_ns ratio      (ns for each lane)
 *
 * Exits with 1 if values differ or a kernel has no loop.
 */
#include "loops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

extern const struct loop plain_loops[], unrolled_loops[];

/* What native code is called with; see runtime/core/src/kernel/native.rs. */
struct frame {
    void **bases;
    const uint32_t *rows;
    uint64_t count;
};
typedef uint64_t entry_fn(const struct frame *);

enum { OPERANDS = 8, VARIANTS = 8, COLUMN = 1 << 14 };

struct operand {
    char type[4]; /* f64, u64, ... */
    int column, previous;
};

struct kernel {
    char name[64], output[4];
    int single, operands;
    struct operand operand[OPERANDS];
    uint64_t constants[16];
    entry_fn *entry;
};

static void
die(const char *what, const char *name)
{
    fprintf(stderr, "kernels: %s: %s\n", name, what);
    exit(1);
}

static int
nibble(int c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static size_t
unhex(const char *text, unsigned char *out)
{
    size_t n = 0;
    for (; text[0] > ' ' && text[0] != '-'; text += 2)
        out[n++] = nibble(text[0]) << 4 | nibble(text[1]);
    return n;
}

/* A line: name, output, s or c, operands, constants, code; with tabs between. */
static int
read_kernel(struct kernel *k)
{
    static char *line;
    static size_t room;
    char *save, *field[6];
    if (getline(&line, &room, stdin) < 0)
        return 0;
    for (int i = 0; i < 6; i++)
        if ((field[i] = strtok_r(i ? NULL : line, "\t\n", &save)) == NULL)
            die("six fields are wanted", line);
    memset(k, 0, sizeof *k);
    snprintf(k->name, sizeof k->name, "%s", field[0]);
    snprintf(k->output, sizeof k->output, "%s", field[1]);
    k->single = field[2][0] == 's';
    for (char *o = strtok_r(field[3], " ", &save); o; o = strtok_r(NULL, " ", &save)) {
        struct operand *operand = &k->operand[k->operands++];
        memcpy(operand->type, o, 3);
        operand->column = strstr(o, "[]") != NULL;
        operand->previous = strchr(o, '<') != NULL;
    }
    unhex(field[4], (unsigned char *)k->constants);
    size_t size = strlen(field[5]) / 2;
    void *code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        die("no memory", k->name);
    unhex(field[5], code);
    if (mprotect(code, size, PROT_READ | PROT_EXEC) != 0)
        die("no executable memory", k->name);
    k->entry = (entry_fn *)code;
    return 1;
}

static size_t
bytes(const char *type)
{
    return strstr(type, "32") ? 4 : 8;
}

static void
put(unsigned char *column, const char *type, size_t lane, int64_t number)
{
    if (strcmp(type, "f64") == 0) {
        double value = number * 0.5;
        memcpy(column + lane * 8, &value, 8);
    } else if (bytes(type) == 8) {
        memcpy(column + lane * 8, &number, 8);
    } else {
        int32_t value = (int32_t)number;
        memcpy(column + lane * 4, &value, 4);
    }
}

/* Numbers of gauges and counters; where `fall` is true one counter has fallen. */
static void
fill(const struct kernel *k, unsigned char *work, unsigned char *history, size_t n, int fall)
{
    for (int at = 0; at < k->operands; at++) {
        const struct operand *o = &k->operand[at];
        unsigned char *column = (o->previous ? history : work) + (size_t)at * COLUMN;
        if (!o->column) {
            double elapsed = 1.0003;
            memcpy(column, &elapsed, 8);
            continue;
        }
        /* Padding too, with other numbers: nobody may notice. */
        for (size_t i = 0; i < (n + 3) / 4 * 4; i++) {
            int of = o->previous ? at - 1 : at;
            int64_t number = 1000003 * (int64_t)((i * 7 + of * 3) % 251 + 1) + 7919 * of;
            if (o->previous)
                number += fall && i == n / 2 ? 5000 : -(1000 + (int64_t)i % 97 + 5 * at);
            if (o->previous && i >= n)
                number = 1 << 30;
            put(column, o->type, i, number);
        }
    }
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static size_t
variants(const char *name, loop_fn **found)
{
    const struct loop *tables[] = {plain_loops, unrolled_loops};
    size_t n = 0;
    for (int t = 0; t < 2; t++)
        for (const struct loop *l = tables[t]; l->name; l++)
            if (strcmp(l->name, name) == 0)
                found[n++] = l->run;
    return n;
}

int
main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 41, bad = 0;
    size_t arena = (size_t)COLUMN * (OPERANDS + 2);
    unsigned char *work = aligned_alloc(64, arena), *history = aligned_alloc(64, arena);
    unsigned char *theirs = aligned_alloc(64, COLUMN);
    struct kernel k;

    printf("%-20s %6s %9s %9s %6s\n", "kernel", "lanes", "C", "pmderive", "ratio");
    while (read_kernel(&k)) {
        loop_fn *loop[VARIANTS];
        size_t count = variants(k.name, loop);
        if (count == 0)
            die("no loop", k.name);
        static const size_t sizes[] = {10, 100, 1000};
        for (int s = 0; s < 3; s++) {
            size_t n = sizes[s], width = bytes(k.output);
            struct columns c = {.constants = k.constants, .out = theirs};
            void *bases[3] = {work, history, k.constants};
            uint32_t rows[OPERANDS + 3] = {(uint32_t)n};
            for (int at = 0; at < k.operands; at++) {
                rows[at + 1] = (uint32_t)at * COLUMN;
                c.in[at] = (k.operand[at].previous ? history : work) + (size_t)at * COLUMN;
            }
            unsigned char *ours = work + (size_t)k.operands * COLUMN;
            rows[k.operands + 1] = (uint32_t)k.operands * COLUMN;
            struct frame frame = {bases, rows, 1};

            for (int fall = 1; fall >= 0; fall--) {
                fill(&k, work, history, n, fall);
                uint64_t flagged = k.entry(&frame);
                for (size_t v = 0; v < count; v++) {
                    memset(theirs, 0, COLUMN);
                    uint64_t missing = loop[v](&c, n);
                    size_t lanes = k.single ? 1 : n;
                    if (memcmp(ours, theirs, lanes * width) != 0 && !flagged) {
                        fprintf(stderr, "kernels: %s: values differ\n", k.name);
                        bad = 1;
                    }
                    if (!flagged != !missing) {
                        fprintf(stderr, "kernels: %s: flags differ\n", k.name);
                        bad = 1;
                    }
                }
            }

            double best[VARIANTS + 1];
            size_t times = 100000 / n;
            for (size_t v = 0; v <= count; v++)
                best[v] = 1e30;
            for (int r = 0; r < rounds; r++)
                for (size_t v = 0; v <= count; v++) {
                    double t = now();
                    if (v < count)
                        for (size_t i = 0; i < times; i++)
                            loop[v](&c, n);
                    else
                        for (size_t i = 0; i < times; i++)
                            k.entry(&frame);
                    t = (now() - t) / (double)times / (double)n;
                    if (t < best[v])
                        best[v] = t;
                }
            double fastest = best[0];
            for (size_t v = 1; v < count; v++)
                if (best[v] < fastest)
                    fastest = best[v];
            printf("%-20s %6zu %9.4f %9.4f %6.2f\n", k.name, n, fastest, best[count],
                   best[count] / fastest);
            fflush(stdout);
        }
    }
    return bad;
}
