"""The library: models of this machine, the Hub, downloads."""
