/*
 * peerbench: cost of derived metrics in libpcp.
 *
 *   peerbench parse -N n [-k kind] [-f]          registration only
 *   peerbench bind  -s source -N n [-k kind]     new context, names, descriptors
 *   peerbench fetch -s source -N n [-k kind] [-M m] [-r fetches] [-i]
 *   peerbench values -s source -N n [-k kind] [-M m] [-r fetches] [-i]
 *   peerbench mem   -s source -N n [-k kind] [-C contexts]
 *
 * source: archive base name, or host:SPEC for a live pmcd.
 * The metrics are those of gen_archive (and of pmda_synth): synth.c64.mK,
 * synth.g64.mK, synth.gd.mK with K < m.
 * kind: copy add64 addd const rate ratio sum tern rescale match filter iostat
 *       tree mix, or names:FILE (every line "name = expression" of FILE is
 *       registered, -N is ignored).
 *
 * One line of key=value pairs is printed per run; times are in nanoseconds.
 * "fetch" runs the operands alone first, then the derived metrics, and reports
 * medians over the fetches of each; the first two fetches are not counted.
 */
#include <pcp/pmapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double
now(void)
{
    struct timespec	ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* processor time of this process */
static double
cpu(void)
{
    struct timespec	ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

#ifdef WRAP
static double	t_pre, t_post;
extern int __real___dmprefetch(void *, int, const pmID *, pmID **);
extern void __real___dmpostfetch(void *, void **);
int
__wrap___dmprefetch(void *ctxp, int n, const pmID *list, pmID **newlist)
{
    double	t = now();
    int		sts = __real___dmprefetch(ctxp, n, list, newlist);
    t_pre += now() - t;
    return sts;
}
void
__wrap___dmpostfetch(void *ctxp, void **result)
{
    double	t = now();
    __real___dmpostfetch(ctxp, result);
    t_post += now() - t;
}
#endif

static void
die(const char *what, int sts)
{
    fprintf(stderr, "peerbench: %s: %s\n", what, pmErrStr(sts));
    exit(1);
}

static int
cmp(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double
median(double *v, int n)
{
    if (n <= 0)
	return 0;
    qsort(v, n, sizeof *v, cmp);
    return n & 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static long
status_kb(const char *key)
{
    char	line[256];
    long	v = -1;
    FILE	*f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
	if (strncmp(line, key, strlen(key)) == 0)
	    v = atol(line + strlen(key) + 1);
    if (f)
	fclose(f);
    return v;
}

/* ---- expressions ---- */

static char	**ops;			/* names of the distinct operand metrics */
static int	nops, capops;

static const char *
op(const char *type, int k, int m)
{
    char	buf[64];
    snprintf(buf, sizeof buf, "synth.%s.m%d", type, k % m);
    for (int i = nops - 1; i >= 0 && i >= nops - 64; i--)
	if (strcmp(ops[i], buf) == 0)
	    return ops[i];
    if (nops == capops)
	ops = realloc(ops, (capops = capops ? 2 * capops : 64) * sizeof *ops);
    return ops[nops++] = strdup(buf);
}

static void
mkexpr(char *buf, size_t len, const char *kind, int i, int m)
{
    static const char *mix[] =
	{ "addd", "rate", "ratio", "sum", "tern", "rescale", "tree", "const" };
    int		j = i + 1 + i / m;	/* second operand, varied between rounds */

    if (strcmp(kind, "mix") == 0)
	kind = mix[i % 8];
    if (strcmp(kind, "copy") == 0)
	snprintf(buf, len, "%s", op("gd", i, m));
    else if (strcmp(kind, "add64") == 0)
	snprintf(buf, len, "%s + %s", op("g64", i, m), op("g64", j, m));
    else if (strcmp(kind, "addd") == 0)
	snprintf(buf, len, "%s + %s", op("gd", i, m), op("gd", j, m));
    else if (strcmp(kind, "const") == 0)
	snprintf(buf, len, "100 * %s", op("gd", i, m));
    else if (strcmp(kind, "rate") == 0)
	snprintf(buf, len, "rate(%s)", op("c64", i, m));
    else if (strcmp(kind, "ratio") == 0)
	snprintf(buf, len, "delta(%s) / delta(%s)", op("c64", i, m), op("c64", j, m));
    else if (strcmp(kind, "sum") == 0)
	snprintf(buf, len, "sum(%s)", op("gd", i, m));
    else if (strcmp(kind, "tern") == 0)
	snprintf(buf, len, "%s > %s ? %s : %s", op("gd", i, m), op("gd", j, m),
	    op("gd", i, m), op("gd", j, m));
    else if (strcmp(kind, "rescale") == 0)
	snprintf(buf, len, "rescale(%s, \"Mbyte\")", op("g64", i, m));
    else if (strcmp(kind, "match") == 0)
	snprintf(buf, len, "matchinst(/5$/, %s)", op("gd", i, m));
    else if (strcmp(kind, "filter") == 0)
	snprintf(buf, len, "%s[i5]", op("gd", i, m));
    else if (strcmp(kind, "iostat") == 0)
	snprintf(buf, len, "delta(%s) == 0 ? mkconst(0, meta=%s, type=double,"
	    " semantics=instant, units=\"\") : delta(%s) / delta(%s)",
	    op("c64", i, m), op("c64", i, m), op("c64", j, m), op("c64", i, m));
    else if (strcmp(kind, "tree") == 0) {
	const char *a = op("gd", i, m), *b = op("gd", j, m), *c = op("gd", i + 2, m),
	    *d = op("gd", j + 3, m);
	/* 10 leaves, 9 binary operators, one negation */
	snprintf(buf, len, "(%s + %s) * (%s - %s) + (%s * 3 + %s) / (%s + 1) - (-%s)",
	    a, b, c, d, b, c, d, a);
    }
    else {
	fprintf(stderr, "peerbench: no such kind: %s\n", kind);
	exit(2);
    }
}

static char	**names;
static int	nnames;
static char	**exprs;

static void
mkall(const char *kind, int n, int m)
{
    char	buf[4096], name[64];
    if (strncmp(kind, "names:", 6) == 0) {
	FILE *f = fopen(kind + 6, "r");
	if (f == NULL) {
	    perror(kind + 6);
	    exit(1);
	}
	int cap = 0;
	while (fgets(buf, sizeof buf, f)) {
	    char *eq = strstr(buf, " = ");
	    if (eq == NULL || buf[0] == '#')
		continue;
	    *eq = '\0';
	    eq[3 + strcspn(eq + 3, "\n")] = '\0';
	    if (nnames == cap) {
		cap = cap ? 2 * cap : 64;
		names = realloc(names, cap * sizeof *names);
		exprs = realloc(exprs, cap * sizeof *exprs);
	    }
	    names[nnames] = strdup(buf);
	    exprs[nnames++] = strdup(eq + 3);
	}
	fclose(f);
	return;
    }
    names = malloc(n * sizeof *names);
    exprs = malloc(n * sizeof *exprs);
    for (nnames = 0; nnames < n; nnames++) {
	snprintf(name, sizeof name, "derived.grp%d.metric%d", nnames / 100, nnames);
	mkexpr(buf, sizeof buf, kind, nnames, m);
	names[nnames] = strdup(name);
	exprs[nnames] = strdup(buf);
    }
}

static double
registerall(void)
{
    double	t = now();
    for (int i = 0; i < nnames; i++) {
	char *err = pmRegisterDerived(names[i], exprs[i]);
	if (err != NULL) {
	    fprintf(stderr, "peerbench: %s = %s\n%s\n", names[i], exprs[i], pmDerivedErrStr());
	    exit(1);
	}
    }
    return now() - t;
}

static int
opencontext(const char *source)
{
    int		sts;
    if (strncmp(source, "host:", 5) == 0)
	sts = pmNewContext(PM_CONTEXT_HOST, source + 5);
    else
	sts = pmNewContext(PM_CONTEXT_ARCHIVE, source);
    if (sts < 0)
	die(source, sts);
    return sts;
}

static void
rewind_archive(const char *source, int interp)
{
    int		sts;
    if (strncmp(source, "host:", 5) == 0)
	return;
#if PM_VERSION_CURRENT >= PM_VERSION(7,0,0)
    struct timespec	start, step = { 1, 0 };
    pmLogLabel	label;
    if ((sts = pmGetArchiveLabel(&label)) < 0)
	die("label", sts);
    start = label.start;
    if (interp)
	start.tv_nsec += 500000000;
    sts = pmSetMode(interp ? PM_MODE_INTERP : PM_MODE_FORW, &start, &step);
#else
    struct timeval	start;
    pmLogLabel	label;
    if ((sts = pmGetArchiveLabel(&label)) < 0)
	die("label", sts);
    start = label.ll_start;
    if (interp)
	start.tv_usec += 500000;
    sts = pmSetMode(interp ? PM_MODE_INTERP : PM_MODE_FORW, &start, 1000);
#endif
    if (sts < 0)
	die("pmSetMode", sts);
}

/* prints fetch, metric, instance and bits of all values */
static void
printvalues(const char *source, int interp, int n, pmID *pmids, int reps)
{
    pmResult	*rp;
    int		sts;

    rewind_archive(source, interp);
    for (int k = 0; k < reps; k++) {
	if ((sts = pmFetch(n, pmids, &rp)) < 0)
	    die("pmFetch", sts);
	for (int i = 0; i < rp->numpmid; i++) {
	    pmValueSet *vs = rp->vset[i];
	    for (int v = 0; v < vs->numval; v++) {
		unsigned long long bits = 0;
		if (vs->valfmt == PM_VAL_INSITU)
		    bits = (unsigned)vs->vlist[v].value.lval;
		else
		    memcpy(&bits, vs->vlist[v].value.pval->vbuf,
			vs->vlist[v].value.pval->vlen - PM_VAL_HDR_SIZE);
		printf("%d %d %d %llx\n", k, i, vs->vlist[v].inst, bits);
	    }
	}
	pmFreeResult(rp);
    }
}

/* median time of a fetch of these metrics; *values is set to the number of values */
static double
fetchloop(const char *source, int interp, int n, pmID *pmids, int reps,
	  long *values, long *errors, double *cpu_ns)
{
    double	*t = malloc(reps * sizeof *t), t0;
    pmResult	*rp;
    int		k = 0, warm = 2, sts;

    double	c0 = 0;

    *values = *errors = 0;
    rewind_archive(source, interp);
#ifdef WRAP
    double	*w_pre = malloc(reps * sizeof *t), *w_post = malloc(reps * sizeof *t);
#endif
    while (k < reps) {
#ifdef WRAP
	t_pre = t_post = 0;
#endif
	t0 = now();
	sts = pmFetch(n, pmids, &rp);
	if (sts == PM_ERR_EOL && k > 0) {	/* once more from the start */
	    rewind_archive(source, interp);
	    warm = 2;
	    continue;
	}
	if (sts < 0)
	    die("pmFetch", sts);
	long v = 0, e = 0;
	for (int i = 0; i < rp->numpmid; i++) {
	    if (rp->vset[i]->numval > 0)
		v += rp->vset[i]->numval;
	    else
		e++;
	}
	pmFreeResult(rp);
	t0 = now() - t0;
	if (warm > 0) {
	    warm--;
	    continue;
	}
#ifdef WRAP
	w_pre[k] = t_pre;
	w_post[k] = t_post;
#endif
	*values = v;
	*errors = e;
	if (k == 0)
	    c0 = cpu();
	t[k++] = t0;
    }
    *cpu_ns = k > 1 ? (cpu() - c0) / (k - 1) : 0;
#ifdef WRAP
    t_pre = median(w_pre, k);
    t_post = median(w_post, k);
    free(w_pre);
    free(w_post);
#endif
    t0 = median(t, k);
    free(t);
    return t0;
}

static void
lookup(int n, char **nm, pmID *pmids)
{
    int		sts = pmLookupName(n, (const char **)nm, pmids);
    if (sts < n) {
	for (int i = 0; i < n; i++)
	    if (pmids[i] == PM_ID_NULL)
		fprintf(stderr, "peerbench: unknown: %s\n", nm[i]);
	if (sts < 0)
	    die("pmLookupName", sts);
    }
}

int
main(int argc, char **argv)
{
    const char	*cmd = argc > 1 ? argv[1] : "", *source = NULL, *kind = "mix";
    int		c, n = 100, m = 10, reps = 50, interp = 0, contexts = 1, byfile = 0;

    optind = 2;
    while ((c = getopt(argc, argv, "s:N:M:k:r:C:if")) != -1) {
	switch (c) {
	case 's': source = optarg; break;
	case 'N': n = atoi(optarg); break;
	case 'M': m = atoi(optarg); break;
	case 'k': kind = optarg; break;
	case 'r': reps = atoi(optarg); break;
	case 'C': contexts = atoi(optarg); break;
	case 'i': interp = 1; break;
	case 'f': byfile = 1; break;
	default: return 2;
	}
    }
    setenv("PCP_DERIVED_CONFIG", "", 1);
    mkall(kind, n, m);
    n = nnames;
    if (strcmp(cmd, "values") != 0)
	printf("lib=%d.%d.%d cmd=%s kind=%s N=%d", PM_VERSION_CURRENT >> 16 & 0xff,
	PM_VERSION_CURRENT >> 8 & 0xff, PM_VERSION_CURRENT & 0xff, cmd, kind, n);

    if (strcmp(cmd, "parse") == 0) {
	double t;
	if (byfile) {
	    char path[] = "peerbench.conf.XXXXXX";
	    int fd = mkstemp(path);
	    FILE *f = fdopen(fd, "w");
	    for (int i = 0; i < n; i++)
		fprintf(f, "%s = %s\n", names[i], exprs[i]);
	    fclose(f);
	    t = now();
	    int sts = pmLoadDerivedConfig(path);
	    t = now() - t;
	    unlink(path);
	    if (sts != n)
		fprintf(stderr, "peerbench: %d of %d loaded\n", sts, n);
	}
	else
	    t = registerall();
	printf(" parse_ns=%.0f parse_ns_per=%.1f\n", t, t / n);
	return 0;
    }
    if (source == NULL)
	return 2;

    /* operands first, in a context without any derived metric */
    pmID	*opids = calloc(nops + 1, sizeof(pmID));
    long	values = 0, errors = 0, opvalues = 0;
    double	base = 0, base_cpu = 0, derived_cpu = 0;
    if (strcmp(cmd, "fetch") == 0 && nops > 0) {
	int ctx = opencontext(source);
	/* distinct operands only */
	int d = 0;
	char **uniq = malloc(nops * sizeof *uniq);
	for (int i = 0; i < nops; i++) {
	    int j;
	    for (j = 0; j < d; j++)
		if (strcmp(uniq[j], ops[i]) == 0)
		    break;
	    if (j == d)
		uniq[d++] = ops[i];
	}
	nops = d;
	lookup(nops, uniq, opids);
	base = fetchloop(source, interp, nops, opids, reps, &opvalues, &errors, &base_cpu);
	pmDestroyContext(ctx);
    }

    double	t_parse = registerall();
    pmID	*pmids = calloc(n, sizeof(pmID));
    pmDesc	desc;

    if (strcmp(cmd, "bind") == 0) {
	double t0 = now();
	opencontext(source);
	double t1 = now();
	lookup(n, names, pmids);
	double t2 = now();
	int bad = 0;
	for (int i = 0; i < n; i++)
	    if (pmLookupDesc(pmids[i], &desc) < 0)
		bad++;
	double t3 = now();
	printf(" parse_ns_per=%.1f context_ns=%.0f name_ns=%.0f desc_ns=%.0f"
	    " bind_ns_per=%.1f bad=%d\n", t_parse / n, t1 - t0, t2 - t1, t3 - t2,
	    (t3 - t1) / n, bad);
    }
    else if (strcmp(cmd, "fetch") == 0) {
	opencontext(source);
	lookup(n, names, pmids);
	for (int i = 0; i < n; i++)
	    pmLookupDesc(pmids[i], &desc);
	double t = fetchloop(source, interp, n, pmids, reps, &values, &errors, &derived_cpu);
	printf(" mode=%s M=%d opvalues=%ld outvalues=%ld empty=%ld base_ns=%.0f"
	    " derived_ns=%.0f extra_ns=%.0f extra_ns_per_metric=%.1f"
	    " extra_ns_per_outvalue=%.2f", strncmp(source, "host:", 5) == 0 ? "live" :
	    interp ? "interp" : "forw", nops, opvalues, values, errors, base, t,
	    t - base, (t - base) / n, values ? (t - base) / values : 0.0);
	printf(" base_cpu_ns=%.0f derived_cpu_ns=%.0f", base_cpu, derived_cpu);
#ifdef WRAP
	printf(" pre_ns=%.0f post_ns=%.0f engine_ns_per_metric=%.1f"
	    " engine_ns_per_outvalue=%.2f", t_pre, t_post, (t_pre + t_post) / n,
	    values ? (t_pre + t_post) / values : 0.0);
#endif
	printf("\n");
    }
    else if (strcmp(cmd, "values") == 0) {
	opencontext(source);
	lookup(n, names, pmids);
	printvalues(source, interp, n, pmids, reps);
    }
    else if (strcmp(cmd, "mem") == 0) {
	long rss0 = status_kb("VmRSS:");
	double t0 = now();
	long rss1 = 0, rss2 = 0;
	int *ctx = malloc(contexts * sizeof *ctx), k;
	for (k = 0; k < contexts; k++) {
	    ctx[k] = opencontext(source);
	    lookup(n, names, pmids);
	    for (int i = 0; i < n; i++)
		pmLookupDesc(pmids[i], &desc);
	    if (k == 0)
		rss1 = status_kb("VmRSS:");
	}
	double t1 = now();
	rss2 = status_kb("VmRSS:");
	/* one round of fetches, one context after another, twice (rate needs two) */
	double t2 = 0;
	pmResult *rp;
	for (int round = 0; round < 3; round++) {
	    t2 = now();
	    for (k = 0; k < contexts; k++) {
		pmUseContext(ctx[k]);
		int sts = pmFetch(n, pmids, &rp);
		if (sts < 0)
		    die("pmFetch", sts);
		pmFreeResult(rp);
	    }
	    t2 = now() - t2;
	}
	long rss3 = status_kb("VmRSS:");
	printf(" contexts=%d rss_registered_kb=%ld rss_first_kb=%ld rss_all_kb=%ld"
	    " rss_fetched_kb=%ld setup_ns_per_context=%.0f fetch_ns_per_context=%.0f\n",
	    contexts, rss0, rss1, rss2, rss3, (t1 - t0) / contexts, t2 / contexts);
    }
    else
	return 2;
    return 0;
}
