/* What the system tells a process of its own memory. */
#include <stdio.h>
#include <string.h>

/* Kilobytes in the line of this name of /proc/self/FILE; -1 where the system does not say. */
static long own_kilobytes(const char *file, const char *name)
{
    char line[256];
    long kb = -1;
    size_t length = strlen(name);
    snprintf(line, sizeof line, "/proc/self/%s", file);
    FILE *f = fopen(line, "r");
    while (kb < 0 && f && fgets(line, sizeof line, f))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            sscanf(line + length + 1, "%ld", &kb);
    if (f)
        fclose(f);
    return kb;
}
