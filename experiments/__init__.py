"""Experiments on bonas, one script per figure, table or claim; run them with `python -m`."""
