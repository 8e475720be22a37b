"""The client of threads: generated from `aio`, apart from ``calls``, ``listening`` and ``loss``."""
