/* A program outside of nearfield: use() asks those of tests/quality/vendor/use_<header>.c. */
#include <stdio.h>

int use(void);

int main(void)
{
    int right = use();
    printf("%s\n", right ? "the answer is right" : "the answer is wrong");
    return !right;
}
