/*
 * Writes a folio with the libpcp_gui of this machine, whose header is seldom
 * installed:
 *
 *   oracle FOLIO REPLAY HOST...
 *
 * The last host is the default one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>

typedef struct {
    FILE *f_config;
    int fd_ipc;
    char *logfile;
    pid_t pid;
    int status;
} pmRecordHost;

extern FILE *pmRecordSetup(const char *, const char *, int);
extern int pmRecordAddHost(const char *, int, pmRecordHost **);
extern int pmRecordControl(pmRecordHost *, int, const char *);

int
main(int argc, char **argv)
{
    pmRecordHost *host;
    int i;

    if (argc < 4 || pmRecordSetup(argv[1], "tests", atoi(argv[2])) == NULL)
	return 1;
    for (i = 3; i < argc; i++) {
	if (pmRecordAddHost(argv[i], i == argc - 1, &host) < 0)
	    return 2;
    }
    /* Fails if a pmlogger has ended so soon; the folio is there by then. */
    pmRecordControl(NULL, 40, NULL);
    while (wait(NULL) > 0)
	;
    return 0;
}
