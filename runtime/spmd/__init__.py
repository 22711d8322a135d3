"""One program on several devices: exchanging the parts of arrays, and running the program."""
