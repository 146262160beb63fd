"""Checks that every kind shares: names, labels, annotations, owner references."""
