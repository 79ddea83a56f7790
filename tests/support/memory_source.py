"""A source of bytes in memory that counts what is read from it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class MemorySource:
    """Bytes with a name. ``total`` announces more bytes than there are, as a hole at the end of a file would."""

    content: bytes
    name: str = "memory.gguf"
    total: int | None = None
    reads: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.content) if self.total is None else self.total

    @property
    def n_read(self) -> int:
        return sum(n_bytes for _, n_bytes in self.reads)

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        n_bytes = max(0, min(n_bytes, self.size - offset))
        self.reads.append((offset, n_bytes))
        return self.content[offset : offset + n_bytes].ljust(n_bytes, b"\0")
