/*
 * Fetches from archives with the libpcp of this machine, for comparison.
 *
 * Reads from standard input one case a line, separated by tabs: archive, mode
 * (interp, forw, back, all or allback), start (SEC.NNNNNNNNN, or - to stay where the
 * context is), step in nanoseconds, number of fetches, metrics as decimal
 * PMIDs separated by commas, and, if the profile shall admit these only,
 * instances separated by commas. Writes for each fetch a line
 *
 *     @ SEC.NNNNNNNNN          or   ! STATUS
 *
 * and after the former for each metric a line
 *
 *     PMID NUMVAL INST=VALUE ...
 *
 * with values as hexadecimal bits, or bytes. After the end of the archive there
 * is for each metric with an instance domain a line
 *
 *     INDOM COUNT SUM          or   INDOM STATUS
 *
 * with the number of instances then, and the sum of their identifiers. A case
 * ends with an empty line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <pcp/pmapi.h>

static char line[1 << 22];

static void
put_value(int format, const pmValue *value, int type)
{
    const unsigned char *bytes;
    int length, i;

    if (format == PM_VAL_INSITU) {
	printf("%x", value->value.lval);
	return;
    }
    bytes = (const unsigned char *)value->value.pval->vbuf;
    length = value->value.pval->vlen - PM_VAL_HDR_SIZE;
    if (type == PM_TYPE_64 || type == PM_TYPE_U64 || type == PM_TYPE_DOUBLE) {
	__uint64_t bits;
	memcpy(&bits, bytes, sizeof(bits));
	printf("%llx", (unsigned long long)bits);
    }
    else if (type == PM_TYPE_FLOAT) {
	__uint32_t bits;
	memcpy(&bits, bytes, sizeof(bits));
	printf("%x", bits);
    }
    else if (type == PM_TYPE_EVENT || type == PM_TYPE_HIGHRES_EVENT)
	putchar('-');	/* in the byte order of this machine */
    else {
	putchar(':');
	for (i = 0; i < length; i++)
	    printf("%02x", bytes[i]);
    }
}

static void
put_result(const pmHighResResult *result)
{
    int i, j;

    printf("@ %lld.%09ld\n", (long long)result->timestamp.tv_sec, (long)result->timestamp.tv_nsec);
    for (i = 0; i < result->numpmid; i++) {
	const pmValueSet *set = result->vset[i];
	pmDesc desc;

	if (pmLookupDesc(set->pmid, &desc) < 0)
	    desc.type = PM_TYPE_UNKNOWN;
	printf("%u %d", set->pmid, set->numval);
	for (j = 0; j < set->numval; j++) {
	    printf(" %d=", set->vlist[j].inst);
	    put_value(set->valfmt, &set->vlist[j], desc.type);
	}
	putchar('\n');
    }
}

static void
put_domain(pmID pmid)
{
    pmDesc desc;
    int *instances, sts, i;
    char **names;
    long long sum = 0;

    if (pmLookupDesc(pmid, &desc) < 0 || desc.indom == PM_INDOM_NULL)
	return;
    if ((sts = pmGetInDom(desc.indom, &instances, &names)) < 0) {
	printf("%u %d\n", desc.indom, sts);
	return;
    }
    for (i = 0; i < sts; i++)
	sum += instances[i];
    printf("%u %d %lld\n", desc.indom, sts, sum);
    if (sts > 0) {
	free(instances);
	free(names);
    }
}

static void
answer(const char *archive, const char *mode, const char *start, long long step, int count,
    char *metrics, char *instances)
{
    static pmID pmids[100000];
    static int admitted[100000];
    struct timespec when, delta;
    int numpmid = 0, numinst = 0, sts, kind, fetch, i;
    char *metric, *instance;

    for (metric = strtok(metrics, ","); metric; metric = strtok(NULL, ","))
	pmids[numpmid++] = strtoul(metric, NULL, 10);
    if ((sts = pmNewContext(PM_CONTEXT_ARCHIVE, archive)) < 0) {
	printf("! %d\n", sts);
	return;
    }
    for (instance = strtok(instances, ","); instance; instance = strtok(NULL, ","))
	admitted[numinst++] = atoi(instance);
    for (i = 0; i < numpmid && numinst > 0; i++) {
	pmDesc desc;

	if (pmLookupDesc(pmids[i], &desc) < 0 || desc.indom == PM_INDOM_NULL)
	    continue;
	pmDelProfile(desc.indom, 0, NULL);
	pmAddProfile(desc.indom, numinst, admitted);
    }
    kind = *mode == 'i' ? PM_MODE_INTERP : strstr(mode, "back") ? PM_MODE_BACK : PM_MODE_FORW;
    delta.tv_sec = step / 1000000000;
    delta.tv_nsec = step % 1000000000;
    if (*start == '-')
	sts = pmSetModeHighRes(kind, NULL, &delta);
    else {
	when.tv_sec = atoll(start);
	when.tv_nsec = atol(strchr(start, '.') + 1);
	sts = pmSetModeHighRes(kind, &when, &delta);
    }
    if (sts < 0) {
	printf("! %d\n", sts);
	return;
    }
    for (fetch = 0; fetch < count; fetch++) {
	pmHighResResult *result;

	if (*mode == 'a')
	    sts = pmFetchHighResArchive(&result);
	else
	    sts = pmFetchHighRes(numpmid, pmids, &result);
	if (sts < 0) {
	    printf("! %d\n", sts);
	    if (sts == PM_ERR_EOL) {
		for (i = 0; i < numpmid; i++)
		    put_domain(pmids[i]);
		break;
	    }
	    continue;
	}
	put_result(result);
	pmFreeHighResResult(result);
    }
}

int
main(void)
{
    static char buffer[1 << 22];

    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    while (fgets(line, sizeof(line), stdin) != NULL) {
	char *field[7];
	int i, status;
	pid_t child;

	line[strcspn(line, "\n")] = '\0';
	field[0] = line;
	for (i = 1; i < 7; i++) {
	    if ((field[i] = strchr(field[i - 1], '\t')) == NULL) {
		fprintf(stderr, "not a case: %s\n", line);
		return 1;
	    }
	    *field[i]++ = '\0';
	}
	fflush(stdout);
	if ((child = fork()) == 0) {
	    alarm(60);
	    answer(field[0], field[1], field[2], atoll(field[3]), atoi(field[4]), field[5], field[6]);
	    fflush(stdout);
	    _exit(0);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
	    printf("\ncrashed %d\n", WTERMSIG(status));
	printf("\n");
    }
    return 0;
}
