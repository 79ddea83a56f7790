"""Programs of other people that speak to the endpoint. Begin with ``run.sh``."""
