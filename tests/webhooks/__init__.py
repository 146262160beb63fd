"""Tests of admission: what is decided (one file a kind), how it is said (errors, causes, reviews) and how it is served.

``test_defects`` is the register of the original's defects and of the tests that hold us to the better behaviour;
``test_fuzz`` sends ten thousand reviews; ``test_keeping`` is about certificates over time; ``e2e/test_refusals`` sends
broken manifests through an API server.
"""
