"""What serves the development of Slipstream: model factories, stand-ins, pictures."""
