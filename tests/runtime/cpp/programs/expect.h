/* `EXPECT(condition)` ends a test that is not as it should be. Unlike `assert` it is never left out. */
#ifndef EXPECT_H_
#define EXPECT_H_

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(...)                                                                  \
  do {                                                                               \
    if (!(__VA_ARGS__)) {                                                            \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__);      \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

#endif /* EXPECT_H_ */
