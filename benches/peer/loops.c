/*
 * The fastest C that gcc compiles to vectors of 16 bytes, a function for each
 * family of kernels. There may be more than one for a name: the best counts.
 *
 * Build with -O3 -march=x86-64-v3 -mprefer-vector-width=128 -ffp-contract=off
 * -fno-trapping-math -DLOOPS=name, with and without -funroll-loops.
 */
#include "loops.h"
#include <string.h>

#define LOOP(name) static __attribute__((noinline)) uint64_t name(const struct columns *c, size_t n)
#define IN(type, at) const type *restrict in##at = c->in[at]
#define OUT(type) type *restrict out = c->out
#define EACH for (size_t i = 0; i < n; i++)

#define BINARY(name, type, result, expression) \
    LOOP(name) \
    { \
        IN(type, 0); \
        IN(type, 1); \
        OUT(result); \
        EACH \
        { \
            type a = in0[i], b = in1[i]; \
            out[i] = expression; \
        } \
        return 0; \
    }

BINARY(add_f64, double, double, a + b)
BINARY(sub_f64, double, double, a - b)
BINARY(mul_f64, double, double, a *b)
BINARY(div_f64, double, double, a == 0 ? 0 : a / b)
BINARY(gt_f64, double, uint32_t, a > b)
BINARY(choose_f64, double, double, a > b ? a : b)
BINARY(add_u64, uint64_t, uint64_t, a + b)
BINARY(sub_u64, uint64_t, uint64_t, a - b)
BINARY(mul_u64, uint64_t, uint64_t, a *b)
BINARY(gt_u64, uint64_t, uint32_t, a > b)
BINARY(choose_u64, uint64_t, uint64_t, a > b ? a : b)
BINARY(add_i64, int64_t, int64_t, (int64_t)((uint64_t)a + (uint64_t)b))
BINARY(mul_i64, int64_t, int64_t, (int64_t)((uint64_t)a * (uint64_t)b))
BINARY(gt_i64, int64_t, uint32_t, a > b)
BINARY(add_u32, uint32_t, uint32_t, a + b)
BINARY(mul_u32, uint32_t, uint32_t, a *b)
BINARY(gt_u32, uint32_t, uint32_t, a > b)

/* The two-constant conversion of 64 bits without sign, which is exact but for
 * its one rounding: the vector form of (double)x. */
static inline double
of_u64(uint64_t x)
{
    uint64_t low = (x & 0xffffffff) | 0x4330000000000000, high = x >> 32 | 0x4530000000000000;
    double l, h;
    memcpy(&l, &low, 8);
    memcpy(&h, &high, 8);
    return (h - 0x1.00000001p84) + l;
}
BINARY(div_u64, uint64_t, double, of_u64(a) == 0 ? 0 : of_u64(a) / of_u64(b))
BINARY(div_u32, uint32_t, double, a == 0 ? 0 : (double)a / (double)b)

LOOP(scale_f64)
{
    IN(double, 0);
    OUT(double);
    double factor = (double)*(const uint32_t *)c->constants;
    EACH out[i] = factor * in0[i];
    return 0;
}

LOOP(delta_f64)
{
    IN(double, 0);
    IN(double, 1);
    OUT(double);
    EACH out[i] = in0[i] - in1[i];
    return 0;
}
LOOP(delta_u64)
{
    IN(uint64_t, 0);
    IN(uint64_t, 1);
    OUT(double);
    EACH out[i] = of_u64(in0[i]) - of_u64(in1[i]);
    return 0;
}
LOOP(delta_u32)
{
    IN(uint32_t, 0);
    IN(uint32_t, 1);
    OUT(int64_t);
    EACH out[i] = (int64_t)in0[i] - (int64_t)in1[i];
    return 0;
}

/* A counter that fell has no rate. */
LOOP(rate_u64)
{
    IN(uint64_t, 0);
    IN(uint64_t, 1);
    OUT(double);
    double elapsed = *(const double *)c->in[2];
    uint64_t fell = 0;
    EACH
    {
        uint64_t now = in0[i], before = in1[i];
        fell |= -(uint64_t)(now < before);
        out[i] = of_u64(now - before) / elapsed;
    }
    return fell;
}
/* The same where all differences are below 2^52, and by a reciprocal, whose
 * two corrections make the quotient that division would give (see the proof in
 * src/jit/quick.rs). Where a difference is not, the plain loop runs. */
LOOP(rate_u64_quick)
{
    IN(uint64_t, 0);
    IN(uint64_t, 1);
    OUT(double);
    double elapsed = *(const double *)c->in[2], share = 1 / elapsed;
    uint64_t large = 0, top = 0;
    EACH
    {
        uint64_t before = in1[i], x = in0[i] - before, bits = x | 0x4330000000000000;
        double d, q;
        large |= x;
        top |= before;
        memcpy(&d, &bits, 8);
        d -= 0x1p52;
        q = d * share;
        out[i] = __builtin_fma(__builtin_fma(-q, elapsed, d), share, q);
    }
    if (large >> 52 || top >> 63 || !(elapsed > 0x1p-200 && elapsed < 0x1p200))
        return rate_u64(c, n);
    return 0;
}
LOOP(rate_u32)
{
    IN(uint32_t, 0);
    IN(uint32_t, 1);
    OUT(double);
    double elapsed = *(const double *)c->in[2];
    uint32_t fell = 0;
    EACH
    {
        uint32_t now = in0[i], before = in1[i];
        fell |= -(uint32_t)(now < before);
        out[i] = (double)(now - before) / elapsed;
    }
    return fell;
}
LOOP(rate_u32_quick)
{
    IN(uint32_t, 0);
    IN(uint32_t, 1);
    OUT(double);
    double elapsed = *(const double *)c->in[2], share = 1 / elapsed;
    uint32_t fell = 0;
    if (!(elapsed > 0x1p-200 && elapsed < 0x1p200))
        return rate_u32(c, n);
    EACH
    {
        uint32_t now = in0[i], before = in1[i];
        uint64_t bits = (uint64_t)(now - before) | 0x4330000000000000;
        double d, q;
        fell |= -(uint32_t)(now < before);
        memcpy(&d, &bits, 8);
        d -= 0x1p52;
        q = d * share;
        out[i] = __builtin_fma(__builtin_fma(-q, elapsed, d), share, q);
    }
    return fell;
}

LOOP(ratio_u64)
{
    IN(uint64_t, 0);
    IN(uint64_t, 1);
    IN(uint64_t, 2);
    IN(uint64_t, 3);
    OUT(double);
    EACH
    {
        double a = of_u64(in0[i]) - of_u64(in1[i]), b = of_u64(in2[i]) - of_u64(in3[i]);
        out[i] = a == 0 ? 0 : a / b;
    }
    return 0;
}

/* Units of 64-bit integers: by shifts where the divisor is a power of two, by
 * a product of 128 bits else. */
LOOP(rescale_u64_shift)
{
    IN(uint64_t, 0);
    OUT(uint64_t);
    uint64_t half = c->constants[0];
    int shift = __builtin_ctzll(c->constants[1]);
    EACH out[i] = (in0[i] + half) >> shift;
    return 0;
}
LOOP(rescale_u64_high)
{
    IN(uint64_t, 0);
    OUT(uint64_t);
    uint64_t half = c->constants[0], div = c->constants[1];
    /* div is no power of two, as 1000 and 3600 are not. */
    int shift = 63 - __builtin_clzll(div);
    uint64_t magic = (uint64_t)(((unsigned __int128)((1ull << shift << 1) - div) << 64) / div) + 1;
    EACH
    {
        uint64_t x = in0[i] + half;
        uint64_t t = (uint64_t)((unsigned __int128)x * magic >> 64);
        out[i] = (t + ((x - t) >> 1)) >> shift;
    }
    return 0;
}

LOOP(tree_f64)
{
    IN(double, 0);
    IN(double, 1);
    IN(double, 2);
    IN(double, 3);
    OUT(double);
    EACH
    {
        double a = in0[i], b = in1[i], d = in2[i], e = in3[i];
        double q = b * 3 + d;
        q = q == 0 ? 0 : q / (e + 1);
        out[i] = (a + b) * (d - e) + q - (-a);
    }
    return 0;
}

/* In the order of the lanes, but for integers. */
#define SUM(name, type) \
    LOOP(name) \
    { \
        IN(type, 0); \
        type sum = 0; \
        EACH sum += in0[i]; \
        *(type *)c->out = sum; \
        return 0; \
    }
/* Sums of integers do not depend on the order. */
#define SUM_PARTS(name, type, parts) \
    LOOP(name) \
    { \
        IN(type, 0); \
        type part[parts] = {0}, sum = 0; \
        size_t i = 0; \
        for (; i + parts <= n; i += parts) \
            for (int k = 0; k < parts; k++) \
                part[k] += in0[i + k]; \
        for (int k = 0; k < parts; k++) \
            sum += part[k]; \
        for (; i < n; i++) \
            sum += in0[i]; \
        *(type *)c->out = sum; \
        return 0; \
    }
SUM(sum_f64, double)
SUM(sum_u64, uint64_t)
SUM(sum_u32, uint32_t)
SUM_PARTS(sum_u64_parts, uint64_t, 8)
SUM_PARTS(sum_u32_parts, uint32_t, 16)

#define AVERAGE(name, type, convert) \
    LOOP(name) \
    { \
        IN(type, 0); \
        double sum = 0; \
        EACH sum += convert(in0[i]); \
        *(float *)c->out = (float)(sum / (double)n); \
        return 0; \
    }
AVERAGE(avg_f64, double, )
AVERAGE(avg_u64, uint64_t, of_u64)
AVERAGE(avg_u32, uint32_t, (double))

/* The first lane, then each that is further. */
#define EXTREME(name, type, op) \
    LOOP(name) \
    { \
        IN(type, 0); \
        type best = in0[0]; \
        EACH best = in0[i] op best ? in0[i] : best; \
        *(type *)c->out = best; \
        return 0; \
    }
/* The parts start with the first lane, so that they stay NaN if that is. If the
 * extreme is a zero that is not the first lane, its sign depends on the order. */
#define EXTREME_PARTS(name, type, op, parts) \
    LOOP(name##_parts) \
    { \
        IN(type, 0); \
        type part[parts], best; \
        size_t i = 0; \
        for (int k = 0; k < parts; k++) \
            part[k] = in0[0]; \
        for (; i + parts <= n; i += parts) \
            for (int k = 0; k < parts; k++) \
                part[k] = in0[i + k] op part[k] ? in0[i + k] : part[k]; \
        best = part[0]; \
        for (int k = 1; k < parts; k++) \
            best = part[k] op best ? part[k] : best; \
        for (; i < n; i++) \
            best = in0[i] op best ? in0[i] : best; \
        if (best == 0 && in0[0] != 0) \
            return name(c, n); \
        *(type *)c->out = best; \
        return 0; \
    }
EXTREME(max_f64, double, >)
EXTREME(min_f64, double, <)
EXTREME(max_u64, uint64_t, >)
EXTREME(min_u32, uint32_t, <)
EXTREME_PARTS(max_f64, double, >, 8)
EXTREME_PARTS(min_f64, double, <, 8)
EXTREME_PARTS(max_u64, uint64_t, >, 8)
EXTREME_PARTS(min_u32, uint32_t, <, 16)

const struct loop LOOPS[] = {
    {"add.f64", add_f64}, {"sub.f64", sub_f64}, {"mul.f64", mul_f64}, {"div.f64", div_f64},
    {"scale.f64", scale_f64}, {"gt.f64", gt_f64}, {"choose.f64", choose_f64},
    {"add.u64", add_u64}, {"sub.u64", sub_u64}, {"mul.u64", mul_u64}, {"div.u64", div_u64},
    {"gt.u64", gt_u64}, {"choose.u64", choose_u64},
    {"add.i64", add_i64}, {"mul.i64", mul_i64}, {"gt.i64", gt_i64},
    {"add.u32", add_u32}, {"mul.u32", mul_u32}, {"div.u32", div_u32}, {"gt.u32", gt_u32},
    {"delta.f64", delta_f64}, {"delta.u64", delta_u64}, {"delta.u32", delta_u32},
    {"rate.u64", rate_u64}, {"rate.u64", rate_u64_quick},
    {"rate.u32", rate_u32}, {"rate.u32", rate_u32_quick}, {"ratio.u64", ratio_u64},
    {"rescale.u64 1/2^20", rescale_u64_shift}, {"rescale.u64 1/1000", rescale_u64_high},
    {"tree.f64", tree_f64},
    {"sum.f64", sum_f64}, {"sum.u64", sum_u64}, {"sum.u64", sum_u64_parts},
    {"sum.u32", sum_u32}, {"sum.u32", sum_u32_parts},
    {"avg.f64", avg_f64}, {"avg.u64", avg_u64}, {"avg.u32", avg_u32},
    {"max.f64", max_f64}, {"max.f64", max_f64_parts},
    {"min.f64", min_f64}, {"min.f64", min_f64_parts},
    {"max.u64", max_u64}, {"max.u64", max_u64_parts},
    {"min.u32", min_u32}, {"min.u32", min_u32_parts},
    {0, 0},
};
