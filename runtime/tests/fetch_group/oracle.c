/*
 * A fetch group of the libpcp of this machine, driven by lines on standard
 * input, for comparison. Fields of a line are separated by tabs; "-" is NULL.
 *
 *	host NAME | archive NAME		pmCreateFetchGroup
 *	item METRIC INST SCALE TYPE		pmExtendFetchGroup_item
 *	indom METRIC SCALE TYPE MAX		pmExtendFetchGroup_indom
 *	event METRIC INST FIELD SCALE TYPE MAX	pmExtendFetchGroup_event
 *	fetch					pmFetchGroup
 *	sleep MILLISECONDS
 *	clear					pmClearFetchGroup
 *
 * Each line but "sleep" is answered by one with its status. After that of
 * "fetch" come the time stamp and the entries, one a line, in the order in
 * which they were added: values, statuses, instances, names, times.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pcp/pmapi.h>

/* The headers of 6.0 leave it out. */
extern int pmClearFetchGroup(pmFG);

#define MAX_ENTRIES 4096

static struct entry {
    char kind;
    int type;
    int sts;
    unsigned max;
    unsigned num;
    pmAtomValue value;
    pmAtomValue *values;
    int *codes;
    char **names;
    int *stss;
    struct timespec *times;
} entries[MAX_ENTRIES];
static int count;
static pmFG group;
static struct timeval when;

static void
put_value(const pmAtomValue *value, int type, int sts)
{
    if (sts < 0) {
	/* Some functions write into the output of what fails. */
	printf("(%d)", sts);
	return;
    }
    switch (type) {
	case PM_TYPE_32: printf("%d", value->l); break;
	case PM_TYPE_U32: printf("%u", value->ul); break;
	case PM_TYPE_64: printf("%" PRId64, value->ll); break;
	case PM_TYPE_U64: printf("%" PRIu64, value->ull); break;
	case PM_TYPE_FLOAT:
	    if (isnan(value->f)) printf("nan"); else printf("%.9g", value->f);
	    break;
	case PM_TYPE_DOUBLE:
	    if (isnan(value->d)) printf("nan"); else printf("%.17g", value->d);
	    break;
	case PM_TYPE_STRING: printf("\"%s\"", value->cp ? value->cp : ""); break;
    }
}

static void
put_entries(void)
{
    for (int at = 0; at < count; at++) {
	struct entry *e = &entries[at];

	if (e->kind == 'i')
	    put_value(&e->value, e->type, e->sts);
	else {
	    /* The number of rows is not told when there are too many. */
	    unsigned rows = e->sts == PM_ERR_TOOBIG ? e->max : e->num;

	    printf("%d:", e->sts);
	    for (unsigned row = 0; row < rows; row++) {
		if (e->kind == 'd')
		    printf(" %d[%s]=", e->codes[row], e->names[row] ? e->names[row] : "");
		else
		    printf(" %ld.%09ld=", (long)e->times[row].tv_sec, e->times[row].tv_nsec);
		put_value(&e->values[row], e->type, e->stss[row]);
	    }
	}
	putchar('\n');
    }
}

static const char *
or_null(const char *field)
{
    return strcmp(field, "-") == 0 ? NULL : field;
}

int
main(void)
{
    static char line[65536];

    while (fgets(line, sizeof(line), stdin)) {
	char *f[8] = { "", "-", "-", "-", "-", "-", "-", "-" };
	char *rest = line;
	int sts = 0;
	struct entry *e = &entries[count];

	line[strcspn(line, "\n")] = '\0';
	for (int at = 0; at < 8 && rest; at++)
	    f[at] = strsep(&rest, "\t");
	memset(e, 0, sizeof(*e));
	/* What the group starts with here; libpcp leaves it to the caller. */
	e->sts = PM_ERR_VALUE;
	if (count == MAX_ENTRIES - 1)
	    return 1;
	if (strcmp(f[0], "host") == 0 || strcmp(f[0], "archive") == 0) {
	    sts = pmCreateFetchGroup(&group,
		f[0][0] == 'h' ? PM_CONTEXT_HOST : PM_CONTEXT_ARCHIVE, f[1]);
	    if (sts == 0)
		sts = pmExtendFetchGroup_timestamp(group, &when);
	}
	else if (strcmp(f[0], "item") == 0) {
	    e->kind = 'i';
	    e->type = atoi(f[4]);
	    sts = pmExtendFetchGroup_item(group, f[1], or_null(f[2]), or_null(f[3]),
		&e->value, e->type, &e->sts);
	}
	else if (strcmp(f[0], "indom") == 0) {
	    e->kind = 'd';
	    e->type = atoi(f[3]);
	    e->max = atoi(f[4]);
	    e->values = calloc(e->max + 1, sizeof(pmAtomValue));
	    e->codes = calloc(e->max + 1, sizeof(int));
	    e->names = calloc(e->max + 1, sizeof(char *));
	    e->stss = calloc(e->max + 1, sizeof(int));
	    sts = pmExtendFetchGroup_indom(group, f[1], or_null(f[2]), e->codes, e->names,
		e->values, e->type, e->stss, e->max, &e->num, &e->sts);
	}
	else if (strcmp(f[0], "event") == 0) {
	    e->kind = 'e';
	    e->type = atoi(f[5]);
	    e->max = atoi(f[6]);
	    e->values = calloc(e->max + 1, sizeof(pmAtomValue));
	    e->times = calloc(e->max + 1, sizeof(struct timespec));
	    e->stss = calloc(e->max + 1, sizeof(int));
	    sts = pmExtendFetchGroup_event(group, f[1], or_null(f[2]), f[3], or_null(f[4]),
		e->times, e->values, e->type, e->stss, e->max, &e->num, &e->sts);
	}
	else if (strcmp(f[0], "fetch") == 0) {
	    sts = pmFetchGroup(group);
	    printf("%d\n", sts);
	    printf("%ld.%06ld\n", (long)when.tv_sec, (long)when.tv_usec);
	    put_entries();
	    continue;
	}
	else if (strcmp(f[0], "clear") == 0) {
	    sts = pmClearFetchGroup(group);
	    count = 0;
	    pmExtendFetchGroup_timestamp(group, &when);
	}
	else if (strcmp(f[0], "sleep") == 0) {
	    fflush(stdout);
	    usleep(1000 * atoi(f[1]));
	    continue;
	}
	else
	    return 1;
	if (strchr("ide", f[0][0]) && f[0][0] && sts == 0 && e->kind)
	    count++;
	printf("%d\n", sts);
    }
    return 0;
}
