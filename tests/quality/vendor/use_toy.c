/* A small user of toy.h, built in every way by run.sh. USE: the name of the function, so that two
   copies fit into one program. It returns 1 when the answer is right. C99 and C++ alike. */
#ifdef WITH_STB_DS
#include <stb_ds.h>
#endif
#include "toy.h"

int USE(void);
int USE(void)
{
    const toy_real number[5] = { 1, 2, 1, 2, 1 };
    toy_array array;
    int64_t pairs = -1;
    array.number = number;
    array.n = 5;
    if (toy_count_pairs(&array, &pairs) != TOY_OK) return 0;
    if (pairs != 4) return 0;
#ifdef TOY_WITH_MOST
    {
        toy_real most = 0;
        if (toy_most(&array, &most) != TOY_OK || most < 1 || most > 1) return 0;
    }
#endif
    return 1;
}
