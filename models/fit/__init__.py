"""Whether a model fits a machine, and the best way to place it there."""
