"""Inference: engine, scheduler, sampling, supervision. No Qt, no HTTP."""
