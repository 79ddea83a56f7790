"""Tools for the development of Slipstream: model factories, stand-ins, pictures, translations."""
