"""The command kwlab, also when what it stands on is not installed: `pip install kittiwake` brings
the command alone."""

import sys


def main():
    """Runs the command, or says what it lacks."""
    try:
        from .cli import main as command
    except ModuleNotFoundError as missing:
        sys.exit(
            f"kwlab: the Python package {missing.name} is not installed: "
            "pip install 'kittiwake[lab]'"
        )
    command()


if __name__ == "__main__":
    main()
