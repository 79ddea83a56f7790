"""Work that runs to its end: batches, verification, tests of pairs, quantising."""
