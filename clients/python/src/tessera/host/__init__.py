"""The program of a worker in Python: a node starts it, and it executes the calls of one service.

It needs the standard library only; what it hosts implements ``tessera.sdk.executable``. Its
protocol is version 2 of the host protocol, which ``src/protocol/`` of the node describes.
"""
