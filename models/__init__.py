"""Model files: headers, downloads, what fits a machine and how fast it would be. It starts no engine."""
