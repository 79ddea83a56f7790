"""Model files: GGUF headers, catalogue, memory fit. Imports nothing of ours."""
