"""Command lines. Imports lazily so that a command starts fast."""


def main() -> None:
    """Run the ``stromboli`` command."""
    from stromboli.cli.app import app

    app()
