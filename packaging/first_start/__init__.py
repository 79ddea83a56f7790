"""The first start: everything that turns a fresh checkout into a running Slipstream, on a bare Python."""
