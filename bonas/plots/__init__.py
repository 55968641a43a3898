"""Figures of searches and surrogates.

Every function draws into the given axes, or into new ones, and returns them.
"""

from bonas.plots.histories import choices as choices
from bonas.plots.histories import efficiency as efficiency
from bonas.plots.slices import mixture_moments as mixture_moments
from bonas.plots.slices import posterior_slice as posterior_slice
from bonas.plots.style import COLORS as COLORS
