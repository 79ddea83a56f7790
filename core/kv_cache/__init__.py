"""The KV cache by slots, and how each kind of memory goes back: attention, sliding window, recurrent state.

Begin with ``slot_table.py``, then ``memory.py``. The prefix cache is ``prefix_tree.py``, ``segment_store.py`` (which
also evicts) and ``disk_cache.py``.
"""
