"""Two maps: what was gained, lost, renamed. What only moved or changed its name is neither."""
