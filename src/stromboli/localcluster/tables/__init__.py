"""Server-side printing: the ``Table`` that kubectl shows for lists. Pure."""
