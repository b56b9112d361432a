/*
 * Answers cases with the libpcp of this machine, for comparison.
 *
 * Reads from standard input one case a line: archive, start (SEC.NNNNNNNNN),
 * step in milliseconds, number of fetches and expression, separated by tabs.
 * Without a step, records are fetched forward, with one, values are
 * interpolated; a negative one leads backward. Without an archive the
 * expression is only registered. Writes one line of JSON a case, in the words
 * of the recorded answers in tests/conformance. Each case runs in a process of
 * its own, because libpcp keeps state between registrations and crashes on
 * some expressions; "crashed" then holds the signal, beside what was answered
 * before, if anything was.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <pcp/pmapi.h>

static char line[1 << 20];

static void
put_string(const char *text)
{
    const unsigned char *byte;

    putchar('"');
    for (byte = (const unsigned char *)text; *byte; byte++) {
	if (*byte == '"' || *byte == '\\')
	    printf("\\%c", *byte);
	else if (*byte < 0x20)
	    printf("\\u%04x", *byte);
	else
	    putchar(*byte);
    }
    putchar('"');
}

static void
put_double(double value, int digits)
{
    if (isnan(value))
	printf("\"nan\"");
    else if (isinf(value))
	printf(value > 0 ? "\"inf\"" : "\"-inf\"");
    else {
	char text[64];

	snprintf(text, sizeof(text), "%.*g", digits, value);
	printf(strpbrk(text, ".e") ? "%s" : "%s.0", text);
    }
}

static void
put_value(int format, const pmValue *value, int type)
{
    pmAtomValue atom;
    int sts;

    if (type == PM_TYPE_EVENT || type == PM_TYPE_HIGHRES_EVENT) {
	/* In the byte order of this machine, so nothing to compare with. */
	printf("null");
	return;
    }
    if (type >= PM_TYPE_STRING && type <= PM_TYPE_AGGREGATE_STATIC) {
	const pmValueBlock *block = value->value.pval;
	int length = block->vlen - PM_VAL_HDR_SIZE;
	int i;

	if (type == PM_TYPE_STRING) {
	    put_string(block->vbuf);
	    return;
	}
	printf("\"hex:");
	for (i = 0; i < length; i++)
	    printf("%02x", (unsigned char)block->vbuf[i]);
	putchar('"');
	return;
    }
    sts = pmExtractValue(format, value, type, &atom, type);
    if (sts < 0) {
	printf("\"error %d\"", sts);
	return;
    }
    switch (type) {
    case PM_TYPE_32:
	printf("%d", atom.l);
	break;
    case PM_TYPE_U32:
	printf("%u", atom.ul);
	break;
    case PM_TYPE_64:
	printf("%" PRId64, (int64_t)atom.ll);
	break;
    case PM_TYPE_U64:
	printf("%" PRIu64, (uint64_t)atom.ull);
	break;
    case PM_TYPE_FLOAT:
	put_double(atom.f, 9);
	break;
    case PM_TYPE_DOUBLE:
	put_double(atom.d, 17);
	break;
    default:
	printf("\"type %d\"", type);
    }
}

static const char *
type_name(int type)
{
    static const char *names[] = { "32", "U32", "64", "U64", "FLOAT", "DOUBLE", "STRING",
	"AGGREGATE", "AGGREGATE_STATIC", "EVENT", "HIGHRES_EVENT" };

    if (type == PM_TYPE_NOSUPPORT)
	return "NO_SUPPORT";
    return type >= PM_TYPE_32 && type <= PM_TYPE_HIGHRES_EVENT ? names[type] : "other";
}

static const char *
semantics_name(int semantics)
{
    return semantics == PM_SEM_COUNTER ? "counter" :
	   semantics == PM_SEM_INSTANT ? "instant" :
	   semantics == PM_SEM_DISCRETE ? "discrete" : "other";
}

static int
put_desc(pmID pmid, pmDesc *desc)
{
    int sts = pmLookupDesc(pmid, desc);

    if (sts < 0) {
	printf(",\"bind\":{\"ok\":false,\"phase\":\"desc\",\"err\":%d}", sts);
	return sts;
    }
    printf(",\"bind\":{\"ok\":true},\"desc\":{\"type\":\"%s\",\"indom\":", type_name(desc->type));
    if (desc->indom == PM_INDOM_NULL)
	printf("null");
    else
	printf("\"%s\"", pmInDomStr(desc->indom));
    printf(",\"sem\":\"%s\",\"units\":", semantics_name(desc->sem));
    put_string(pmUnitsStr(&desc->units));
    printf(",\"dim\":[%d,%d,%d],\"scale\":[%d,%d,%d]}",
	   desc->units.dimSpace, desc->units.dimTime, desc->units.dimCount,
	   desc->units.dimSpace ? desc->units.scaleSpace : 0,
	   desc->units.dimTime ? desc->units.scaleTime : 0,
	   desc->units.dimCount ? desc->units.scaleCount : 0);
    return 0;
}

/* The name in force at the time of the fetch, else one of another time. */
static void
put_name(pmInDom indom, int instance)
{
    char *name;

    if (indom != PM_INDOM_NULL &&
	(pmNameInDom(indom, instance, &name) >= 0 ||
	 pmNameInDomArchive(indom, instance, &name) >= 0)) {
	put_string(name);
	free(name);
    }
    else
	printf("null");
    putchar(',');
}

static void
put_fetches(pmID pmid, const pmDesc *desc, int count)
{
    int fetch, i;

    printf(",\"fetches\":[");
    for (fetch = 0; fetch < count; fetch++) {
	pmHighResResult *result;
	int sts = pmFetchHighRes(1, &pmid, &result);
	pmValueSet *set;

	if (sts < 0) {
	    printf("%s{\"err\":%d}", fetch ? "," : "", sts);
	    break;
	}
	set = result->vset[0];
	/* libpcp does not carry a sum of 1000000000 nanoseconds. */
	printf("%s{\"t\":\"%lld.%09ld\",", fetch ? "," : "",
	       (long long)result->timestamp.tv_sec + result->timestamp.tv_nsec / 1000000000,
	       (long)result->timestamp.tv_nsec % 1000000000);
	if (set->numval < 0)
	    printf("\"err\":%d}", set->numval);
	else {
	    printf("\"n\":%d,\"values\":[", set->numval);
	    for (i = 0; i < set->numval; i++) {
		printf("%s[%d,", i ? "," : "", set->vlist[i].inst);
		put_name(desc->indom, set->vlist[i].inst);
		put_value(set->valfmt, &set->vlist[i], desc->type);
		putchar(']');
	    }
	    printf("]}");
	}
	/* Results are left alone: freeing some of them crashes. */
    }
    printf("]");
}

static void
answer(char *archive, const char *start, long step, int count, char *expression)
{
    char *refused = pmRegisterDerived("qa.x", expression);
    const char *name = "qa.x";
    /* A negative step has its sign in both parts. */
    struct timespec when, delta = { step / 1000, step % 1000 * 1000000 };
    int mode = step ? PM_MODE_INTERP : PM_MODE_FORW;
    pmDesc desc;
    pmID pmid;
    int sts;

    if (refused != NULL) {
	printf("\"register\":{\"ok\":false,\"offset\":%d}", (int)(refused - expression));
	return;
    }
    printf("\"register\":{\"ok\":true}");
    if (*archive == '\0')
	return;
    if ((sts = pmNewContext(PM_CONTEXT_ARCHIVE, archive)) < 0) {
	printf(",\"error\":%d", sts);
	return;
    }
    when.tv_sec = atoll(start);
    when.tv_nsec = atol(strchr(start, '.') + 1);
    if ((sts = pmSetModeHighRes(mode, &when, step ? &delta : NULL)) < 0 ||
	(sts = pmLookupName(1, &name, &pmid)) < 0) {
	printf(",\"error\":%d", sts);
	return;
    }
    if (put_desc(pmid, &desc) == 0) {
	/* If a fetch crashes, this much is known. */
	fflush(stdout);
	put_fetches(pmid, &desc, count);
    }
}

int
main(void)
{
    static char buffer[1 << 22];

    /* What a case has written when it crashes is all or nothing. */
    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    while (fgets(line, sizeof(line), stdin) != NULL) {
	char *archive = line, *start, *step, *count, *expression;
	int status;
	pid_t child;

	line[strcspn(line, "\n")] = '\0';
	if ((start = strchr(archive, '\t')) == NULL ||
	    (step = strchr(start + 1, '\t')) == NULL ||
	    (count = strchr(step + 1, '\t')) == NULL ||
	    (expression = strchr(count + 1, '\t')) == NULL) {
	    fprintf(stderr, "not a case: %s\n", line);
	    return 1;
	}
	*start++ = *step++ = *count++ = *expression++ = '\0';
	putchar('{');
	fflush(stdout);
	if ((child = fork()) < 0) {
	    perror("fork");
	    return 1;
	}
	if (child == 0) {
	    alarm(10);
	    answer(archive, start, atol(step), atoi(count), expression);
	    fflush(stdout);
	    _exit(0);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
	    printf(" \"crashed\":%d", WTERMSIG(status));
	printf("}\n");
    }
    return 0;
}
