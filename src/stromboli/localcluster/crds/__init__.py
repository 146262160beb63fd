"""Custom resource definitions: from a definition to a served kind, and the definition's own life."""
