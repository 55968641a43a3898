"""What is searched: named parameters, some of which exist only under a condition, as points of the unit cube."""

from bonas.spaces.listed import Listed as Listed
from bonas.spaces.parameters import Choice as Choice
from bonas.spaces.parameters import Float as Float
from bonas.spaces.parameters import Int as Int
from bonas.spaces.space import Space as Space
