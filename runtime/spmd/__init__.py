"""One program on several devices: what carries their parts to each other, and who runs it."""
