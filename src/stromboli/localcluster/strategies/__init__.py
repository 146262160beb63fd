"""What is particular about single built-in kinds on create and update: defaults, server-set fields, essential checks."""
