/*
 * Loads a name space with the libpcp of this machine and shows it:
 *
 *   oracle MODE FILE
 *
 * MODE is "plain" for pmLoadNameSpace, else whether pmLoadASCIINameSpace takes
 * duplicates (0 or 1). Writes the status, and a line of name and identifier
 * for each metric; libpcp's messages go to standard error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pcp/pmapi.h>

static void
show(const char *name)
{
    pmID pmid;

    if (pmLookupName(1, &name, &pmid) >= 0)
	printf("%s %s\n", name, pmIDStr(pmid));
}

int
main(int argc, char **argv)
{
    int sts;

    if (argc != 3)
	return 2;
    if (strcmp(argv[1], "plain") == 0)
	sts = pmLoadNameSpace(argv[2]);
    else
	sts = pmLoadASCIINameSpace(argv[2], atoi(argv[1]));
    printf("%d\n", sts);
    if (sts >= 0)
	pmTraversePMNS("", show);
    return 0;
}
