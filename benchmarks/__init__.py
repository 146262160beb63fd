"""Benchmarks of the scheduler's decisions, and the measure of the tree's own sizes."""
