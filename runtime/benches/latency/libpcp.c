/*
 * Latency of fetches with libpcp, for comparison.
 *
 *   libpcp HOST METRIC COUNT FETCHES
 *
 * Fetches one metric COUNT times in each of FETCHES requests, adds up the
 * values, and prints the median time of a fetch in nanoseconds and the sum of
 * the last one.
 */
#include <pcp/pmapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int
compare(const void *a, const void *b)
{
    long	x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void
check(int sts, const char *what)
{
    if (sts >= 0)
	return;
    fprintf(stderr, "%s: %s\n", what, pmErrStr(sts));
    exit(1);
}

int
main(int argc, char **argv)
{
    if (argc != 5)
	return 2;
    int		count = atoi(argv[3]), fetches = atoi(argv[4]);
    const char	*name = argv[2];
    pmID	pmid, *pmids = malloc(count * sizeof(pmID));
    long	*times = malloc(fetches * sizeof(long));
    double	sum = 0;
    pmDesc	desc;

    check(pmNewContext(PM_CONTEXT_HOST, argv[1]), argv[1]);
    check(pmLookupName(1, &name, &pmid), name);
    check(pmLookupDesc(pmid, &desc), name);
    for (int i = 0; i < count; i++)
	pmids[i] = pmid;
    for (int i = 0; i < fetches; i++) {
	struct timespec	start, end;
	pmResult	*result;
	clock_gettime(CLOCK_MONOTONIC, &start);
	check(pmFetch(count, pmids, &result), "pmFetch");
	sum = 0;
	for (int j = 0; j < result->numpmid; j++) {
	    pmValueSet	*set = result->vset[j];
	    for (int k = 0; k < set->numval; k++) {
		pmAtomValue	atom;
		check(pmExtractValue(set->valfmt, &set->vlist[k], desc.type, &atom, desc.type),
		    "pmExtractValue");
		sum += desc.type == PM_TYPE_32 ? atom.l : (double)atom.ull;
	    }
	}
	pmFreeResult(result);
	clock_gettime(CLOCK_MONOTONIC, &end);
	times[i] = (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec;
    }
    qsort(times, fetches, sizeof(long), compare);
    printf("%ld %.0f\n", times[fetches / 2], sum);
    return 0;
}
