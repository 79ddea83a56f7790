"""The ways in (command line, desktop, server) and what ties the rooms together."""

__version__ = "0.1.0"
