"""The bar with the engine's gauges."""
