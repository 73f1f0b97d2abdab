"""A launch over a grid of settings: cells, and their rank by recorded runs."""
