"""A service with endpoints of every type, and requests for each of them.

``service`` is what both servers run; ``requests`` is what both are asked. Nothing in it knows of
Tessera.
"""
