"""The prefix cache: texts whose keys and values are kept, on the device, in RAM and on disk.

Begin with ``prefix_tree.py``, then ``segment_store.py``, which also evicts; ``disk_folder.py`` has the files.
"""
