"""The prefix cache: texts whose keys and values are kept, on the device, in RAM and on disk."""
