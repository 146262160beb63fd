"""The hypernode controller: counts the nodes of HyperNodes, and finds HyperNodes by itself (spec 03 section 8)."""
