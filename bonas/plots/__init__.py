"""Figures from histories and surrogates. Every function draws into the axes it is given, or into new ones, and returns them."""

from bonas.plots.histories import choices as choices
from bonas.plots.histories import efficiency as efficiency
from bonas.plots.look import COLOURS as COLOURS
from bonas.plots.slices import mixed as mixed
from bonas.plots.slices import posterior_slice as posterior_slice
