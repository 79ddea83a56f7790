"""Predictions for a model on a machine: memory and speed."""
