"""Dynamic resource allocation: which devices the claims of a pod can have on which node (spec 06 section 17.10).

``inventory`` knows the devices that each node can use, ``expressions`` evaluates the CEL selectors of classes and
requests, ``requests`` reads what a claim asks for, ``allocator`` searches for a solution on one node, and ``claiming``
makes a filter and books of it all. Everything here is pure.
"""
