"""``python -m specmap``."""

from specmap.cli import main

if __name__ == "__main__":
    main()
