"""The controllers: every custom resource's living part."""
