"""Test doubles that are part of the product: a faulty API server, a fake clock, builders."""
