/*
 * Answers questions about time with the libpcp of this machine, for comparison.
 *
 * Reads one question a line from standard input, its fields separated by tabs
 * (an option that is absent is a lone NUL mark, "\001"), and writes one line
 * each. In texts of answers newlines are written as "\n".
 *
 *   ctime ZONE SECOND                  text, whether it is summer time
 *   window ZONE START END S T A O      status, start, end, origin or message
 *   interval TEXT                      status, time or message
 *   metric TEXT IS_ARCHIVE SOURCE      status, is_archive, source, metric, instances or message
 *
 * Each question has a process of its own, for the C library remembers where it
 * found the last date and looks there first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <pcp/pmapi.h>

static char line[1 << 16];

static void
put_text(const char *text)
{
    for (; *text; text++) {
	if (*text == '\n')
	    printf("\\n");
	else if (*text == '\t')
	    printf("\\t");
	else
	    putchar(*text);
    }
}

static void
get_time(const char *text, struct timespec *time)
{
    if (strcmp(text, "max") == 0) {
	time->tv_sec = PM_MAX_TIME_T;
	time->tv_nsec = 0;
	return;
    }
    long sec, nsec;
    sscanf(text, "%ld.%ld", &sec, &nsec);
    time->tv_sec = sec;
    time->tv_nsec = nsec;
}

static void
put_time(const struct timespec *time)
{
    if (time->tv_sec >= PM_MAX_TIME_T)
	printf("\tmax");
    else
	printf("\t%" PRId64 ".%09ld", (int64_t)time->tv_sec, (long)time->tv_nsec);
}

static char *
option(char *text)
{
    return strcmp(text, "\001") == 0 ? NULL : text;
}

static void
answer(char **field)
{
    if (strcmp(field[0], "ctime") == 0) {
	time_t second = strtoll(field[2], NULL, 10);
	char text[64];
	struct tm local;

	pmNewZone(field[1]);
	put_text(pmCtime(&second, text));
	pmLocaltime(&second, &local);
	printf("\t%d", local.tm_isdst);
    }
    else if (strcmp(field[0], "window") == 0) {
	struct timespec log_start, log_end, start, end, origin;
	char *message = NULL;
	int sts;

	pmNewZone(field[1]);
	get_time(field[2], &log_start);
	get_time(field[3], &log_end);
	sts = pmParseHighResTimeWindow(option(field[4]), option(field[5]), option(field[6]),
		option(field[7]), &log_start, &log_end, &start, &end, &origin, &message);
	printf("%d", sts);
	if (sts >= 0) {
	    put_time(&start);
	    put_time(&end);
	    put_time(&origin);
	}
	if (sts <= 0) {
	    putchar('\t');
	    put_text(message ? message : "");
	}
    }
    else if (strcmp(field[0], "interval") == 0) {
	struct timespec interval;
	char *message = NULL;
	int sts = pmParseHighResInterval(field[1], &interval, &message);

	printf("%d\t", sts);
	if (sts < 0)
	    put_text(message);
	else
	    printf("%" PRId64 " %ld", (int64_t)interval.tv_sec, (long)interval.tv_nsec);
    }
    else if (strcmp(field[0], "metric") == 0) {
	pmMetricSpec *spec = NULL;
	char *message = NULL;
	int i, sts = pmParseMetricSpec(field[1], atoi(field[2]), option(field[3]), &spec, &message);

	printf("%d\t", sts);
	if (sts < 0)
	    put_text(message ? message : "");
	else {
	    printf("%d\t", spec->isarch);
	    put_text(spec->source ? spec->source : "\001");
	    putchar('\t');
	    put_text(spec->metric);
	    for (i = 0; i < spec->ninst; i++) {
		putchar('\t');
		put_text(spec->inst[i]);
	    }
	}
    }
    else
	printf("unknown question");
}

int
main(void)
{
    while (fgets(line, sizeof(line), stdin) != NULL) {
	char *field[16] = { NULL };
	char *rest = line;
	int count = 0;
	int status;
	pid_t child;

	line[strcspn(line, "\n")] = '\0';
	while (count < 16 && rest != NULL)
	    field[count++] = strsep(&rest, "\t");
	fflush(stdout);
	if ((child = fork()) == 0) {
	    answer(field);
	    putchar('\n');
	    fflush(stdout);
	    _exit(0);
	}
	waitpid(child, &status, 0);
	if (status != 0)
	    printf("crashed %d\n", status);
    }
    return 0;
}
